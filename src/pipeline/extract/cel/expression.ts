import type { View } from '#path'
import { ExtractionFault } from '../fault.ts'
import { Budget } from './budget.ts'
import { environment } from './environment.ts'
import { Needs } from './needs.ts'
import { allNodes, type Comprehension, type Node } from './nodes.ts'
import { fromCel, toCel } from './values.ts'

/** Letters of an expression. */
const MAX_LENGTH = 8192
/** Operators whose results are made anew, and so may be large. */
const MAKING = new Set(['call', 'rcall', 'list', 'map', '+', 'comprehension', '==', '!=', 'in'])
/** Functions of the library that ours stand in for: bounded, and RE2 instead of JavaScript's regular expressions. */
const REPLACED: Readonly<Record<string, string>> = { matches: '_matches', join: '_join' }

/** A compiled expression over `object`. */
export interface Expression {
  /** @throws ExtractionFault */
  evaluate(object: unknown): unknown
}

/** Expressions of one profile: what they look at of an object is made once for all of them. */
export class Expressions {
  readonly #needs = new Needs()

  /** @returns a sentence where it is no expression */
  compile(text: string): Expression | string {
    if (text.length > MAX_LENGTH) return `an expression may have ${MAX_LENGTH} letters, this has ${text.length}`
    try {
      const { ast, evaluate } = parsed(text)
      this.#needs.add(ast)
      return { evaluate }
    } catch (error) {
      return summaryOf(error)
    }
  }

  /** The object as expressions get it. @param whole makes a part of it that is looked at as a whole */
  project(object: unknown, view: View, whole: (value: unknown) => unknown): unknown {
    return this.#needs.project(object, view, (value) => toCel(whole(value)))
  }
}

function parsed(text: string): { readonly ast: Node; readonly evaluate: (object: unknown) => unknown } {
  const expression = environment().parse(text)
  const ast = expression.ast as unknown as Node // the library declares the public part only
  for (const { op, args } of allNodes(ast)) if (op === 'rcall') rename(args as unknown[])
  const { valid, error } = expression.check()
  if (!valid) throw error
  const budget = new Budget()
  for (const node of allNodes(ast)) bound(node, budget)
  const evaluate = (object: unknown): unknown => {
    budget.begin()
    try {
      const result: unknown = expression({ object })
      // An error that the expression passed over may have been the end of its budget.
      budget.check()
      return fromCel(result)
    } catch (error) {
      budget.check()
      throw error instanceof ExtractionFault ? error : new ExtractionFault(summaryOf(error))
    }
  }
  return { ast, evaluate }
}

function rename(args: unknown[]): void {
  const name = REPLACED[String(args[0])]
  if (name !== undefined) args[0] = name
}

/** Makes a node count what it does. */
function bound(node: Node, budget: Budget): void {
  const { meta, op } = node
  if (meta.alternate || meta.macro || !MAKING.has(op)) return
  const { evaluate } = meta
  node.evaluate = (evaluator, self, context) => budget.made(evaluate(evaluator, self, context))
  if (op !== 'comprehension') return
  const loop = node.args as Comprehension
  const goesOn = loop.condition
  loop.condition = (soFar) => {
    budget.spend(1)
    return goesOn?.(soFar) ?? true
  }
}

/** The library's sentence without the piece of source below it. */
function summaryOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const summary: unknown = (error as { summary?: unknown }).summary
  const text = typeof summary === 'string' ? summary : error.message
  return text.split('\n', 1)[0]?.slice(0, 200) ?? ''
}
