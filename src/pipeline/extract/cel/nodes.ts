/** A node of the parser's tree, as far as it is used here. The library says less of it in its types than it has. */
export interface Node {
  op: string
  args: unknown
  readonly meta: {
    evaluate: Evaluate
    /** what a macro became */
    readonly alternate?: Node
    readonly macro?: Readonly<Record<string, unknown>>
  }
  evaluate: Evaluate
}
export type Evaluate = (evaluator: unknown, node: unknown, context: unknown) => unknown

/** Of `map`, `filter`, `all`, `exists`, `exists_one`. */
export interface Comprehension {
  readonly iterable: Node
  readonly iterVarName: string
  readonly init: Node
  readonly step: Node
  /** false ends the loop */
  condition?: (soFar: unknown) => boolean
}

/** Of `cel.bind`. */
export interface Binding {
  readonly var: string
  readonly val: Node
  readonly exp: Node
}

export const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'op' in value && 'meta' in value && 'args' in value

export const isBinding = (macro: Readonly<Record<string, unknown>>): boolean =>
  typeof macro.var === 'string' && isNode(macro.val) && isNode(macro.exp)

/** Nodes right below; of a macro those it keeps. */
export function childrenOf(node: Node): readonly Node[] {
  const { alternate, macro } = node.meta
  if (alternate) return [alternate]
  // `ast` is the node itself, and what `has` keeps are pieces of its argument.
  if (!macro) return nodesIn(node.args)
  return nodesIn(
    Object.entries(macro).flatMap(([key, value]) => (key === 'ast' || key === 'macroHasProps' ? [] : [value])),
  )
}

function nodesIn(value: unknown): readonly Node[] {
  if (isNode(value)) return [value]
  if (Array.isArray(value)) return value.flatMap(nodesIn)
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  return isPlain ? Object.values(value).flatMap(nodesIn) : []
}

/** Every node once, whatever stands for others; parents first. */
export function allNodes(root: Node): ReadonlySet<Node> {
  const seen = new Set<Node>()
  const open = [root]
  for (let node = open.pop(); node; node = open.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    open.push(...childrenOf(node))
  }
  return seen
}
