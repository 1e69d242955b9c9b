import type { Value } from './types.ts'

/** How tightly binary operators bind: a higher level binds tighter. All are left-associative. */
export const LEVELS = {
  '??': 1,
  '||': 2,
  '&&': 3,
  '==': 4,
  '!=': 4,
  '<': 5,
  '<=': 5,
  '>': 5,
  '>=': 5,
  '+': 6,
  '-': 6,
  '*': 7,
  '/': 7,
  '%': 7,
} as const

export type BinaryOperator = keyof typeof LEVELS
export type UnaryOperator = '!' | '-'

/** A place in the text: UTF-16 offsets, `to` exclusive. */
export interface Place {
  readonly from: number
  readonly to: number
}

/**
 * A parsed expression. Operators of one level in a row are one `chain`, not a tree that leans left: so the depth of a tree is
 * bounded by its brackets, and nothing that walks it recurses deeper than those.
 */
export type Node = Place &
  (
    | { readonly type: 'literal'; readonly value: Value }
    | { readonly type: 'name'; readonly name: string }
    | { readonly type: 'unary'; readonly operator: UnaryOperator; readonly operand: Node }
    | { readonly type: 'chain'; readonly first: Node; readonly steps: readonly Step[] }
    | { readonly type: 'call'; readonly name: string; readonly callee: Place; readonly args: readonly Node[] }
  )

/** One more operator and its right side; all operators of a chain have the same level. */
export interface Step {
  readonly operator: BinaryOperator
  readonly at: Place
  readonly operand: Node
}
