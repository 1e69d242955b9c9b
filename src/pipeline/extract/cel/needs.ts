import { MISSING, ownValue, type View } from '#path'
import { type Binding, type Comprehension, childrenOf, isBinding, isNode, type Node } from './nodes.ts'

/** Which parts of `object` expressions look at: only those are made for them. */
export class Needs {
  readonly #keys = new Map<string, Needs>()
  #each: Needs | undefined
  #isWhole = false

  /** Adds what an expression looks at. */
  add(root: Node): void {
    visit(root, new Map([['object', this]]))
  }

  key(name: string): Needs {
    const known = this.#keys.get(name)
    if (known) return known
    const made = new Needs()
    this.#keys.set(name, made)
    return made
  }

  /** the entries of a list */
  each(): Needs {
    this.#each ??= new Needs()
    return this.#each
  }

  whole(): void {
    this.#isWhole = true
  }

  /**
   * The value with nothing but what is looked at.
   * @param view decides what is shown of a value @param whole makes a part that is looked at as a whole
   */
  project(value: unknown, view: View, whole: (value: unknown) => unknown): unknown {
    if (this.#isWhole || typeof value !== 'object' || value === null) return whole(value)
    if (Array.isArray(value)) {
      const each = this.#each
      if (!each) return whole(value)
      return value.map((one: unknown, i) => each.project(view(value, i, one), view, whole) ?? null)
    }
    // Of a map whose keys are gone over, everything is seen.
    if (this.#each) return whole(value)
    const map = value as Readonly<Record<string, unknown>>
    const part: Record<string, unknown> = {}
    for (const [name, needs] of this.#keys) {
      const value = name === '__proto__' ? MISSING : ownValue(map, name)
      if (value === MISSING) continue
      const shown = view(map, name, value)
      if (shown !== undefined) part[name] = needs.project(shown, view, whole)
    }
    return part
  }
}

/** Names in scope, and the parts they stand for; undefined: for something that was made. */
type Scope = ReadonlyMap<string, Needs | undefined>

function visit(node: Node, scope: Scope): void {
  const part = partOf(node, scope)
  if (part) {
    part.whole()
    return
  }
  const { alternate, macro } = node.meta
  if (alternate) visit(alternate, scope)
  else if (node.op === 'comprehension') visitLoop(node.args as Comprehension, scope)
  else if (macro && isBinding(macro)) visitBinding(macro as unknown as Binding, scope)
  else for (const child of childrenOf(node)) visit(child, scope)
}

function visitLoop({ iterable, iterVarName, init, step }: Comprehension, scope: Scope): void {
  const list = partOf(iterable, scope)
  if (!list) visit(iterable, scope)
  const inner = new Map(scope).set(iterVarName, list?.each())
  visit(init, inner)
  visit(step, inner)
}

function visitBinding({ var: name, val, exp }: Binding, scope: Scope): void {
  const part = partOf(val, scope)
  if (!part) visit(val, scope)
  visit(exp, new Map(scope).set(name, part))
}

/** The part of the object that a chain of keys leads to. */
function partOf(node: Node, scope: Scope): Needs | undefined {
  if (node.meta.alternate || node.meta.macro) return undefined
  if (node.op === 'id') return scope.get(String(node.args))
  if (!['.', '.?', '[]', '[?]'].includes(node.op)) return undefined
  const [left, right] = node.args as readonly [Node, Node | string]
  const parent = partOf(left, scope)
  if (!parent) return undefined
  const key = isNode(right) ? (right.op === 'value' ? right.args : undefined) : right
  if (typeof key === 'string') return parent.key(key)
  return typeof key === 'bigint' ? parent.each() : undefined
}
