import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Node } from './ast.ts'
import { compileExpression } from './compile.ts'
import { parse } from './parse.ts'
import { Problems } from './problems.ts'
import { anyNode, NAMES, slots, typedNode } from './testing/arbitrary.ts'
import { print } from './testing/print.ts'
import { walk } from './testing/reference.ts'
import type { Value } from './types.ts'

const NOW = Date.UTC(2026, 0, 1, 12, 30, 15, 250)

const withoutPlaces = (node: Node): unknown =>
  JSON.parse(
    JSON.stringify(node, (key, value) =>
      key === 'from' || key === 'to' || key === 'at' || key === 'callee' ? undefined : value,
    ),
  )

function expected(node: Node, values: readonly Value[]): Value {
  const value = walk(node, new Map(NAMES.map(({ name }, place) => [name, values[place] ?? null])), NOW)
  return value === 0 ? 0 : value
}

function agrees(node: Node, values: readonly Value[]): void {
  const text = print(node)
  const { expression, problems } = compileExpression(text, { names: NAMES })
  // Nothing is refused for what it means, only for how it is written.
  if (!expression) throw new Error(`${text}: ${JSON.stringify(problems)}`)
  const value = expression.evaluate(values, { now: NOW })
  expect(value, text).toBe(expected(node, values))
  if (value !== null && expression.kind !== 'any') expect(typeof value, text).toBe(expression.kind)
}

describe('closures', () => {
  it('give what the plain walk over the tree gives, for what people write', () =>
    fc.assert(fc.property(typedNode, slots, agrees), { numRuns: 4000 }))

  it('give what the plain walk over the tree gives, for whatever the grammar allows', () =>
    fc.assert(fc.property(anyNode, slots, agrees), { numRuns: 6000 }))

  it('give the same again, and do not touch the slots', () =>
    fc.assert(
      fc.property(anyNode, slots, (node, values) => {
        const { expression } = compileExpression(print(node), { names: NAMES })
        const before = [...values]
        const first = expression?.evaluate(values, { now: NOW })
        expect(expression?.evaluate(Object.freeze([...values]), { now: NOW })).toBe(first)
        expect(values).toEqual(before)
      }),
      { numRuns: 500 },
    ))

  it('depend on the clock only where they say so', () =>
    fc.assert(
      fc.property(anyNode, slots, fc.integer({ min: 0, max: 4e12 }), (node, values, later) => {
        const { expression } = compileExpression(print(node), { names: NAMES })
        if (!expression || expression.isTimeDependent) return
        expect(expression.evaluate(values, { now: later })).toBe(expression.evaluate(values, { now: NOW }))
      }),
      { numRuns: 1000 },
    ))
})

describe('a tree', () => {
  it('is the same after it was printed and read again', () =>
    fc.assert(
      fc.property(fc.oneof(anyNode, typedNode), (node) => {
        const problems = new Problems()
        const again = parse(print(node), problems)
        expect(problems.list.filter(({ severity }) => severity === 'error')).toEqual([])
        expect(again && withoutPlaces(again)).toEqual(withoutPlaces(node))
      }),
      { numRuns: 3000 },
    ))
})
