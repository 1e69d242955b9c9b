import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cpuMs } from '../../../../test/cpu.ts'
import type { Schema } from '../types.ts'
import { applyStrategicPatch, PatchError } from './index.ts'
import { applyPairwise } from './test/pairwise-patch.ts'

const schema: Schema = {
  type: 'object',
  properties: {
    set: { type: 'array', 'x-kubernetes-patch-strategy': 'merge' },
    map: {
      type: 'array',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
      items: { type: 'object', properties: { set: { type: 'array', 'x-kubernetes-patch-strategy': 'merge' } } },
    },
  },
}

const id = fc.oneof(
  fc.constantFrom<unknown>('a', 'b', 'c', '1', 1, -0, 0, null, true),
  fc.constantFrom<unknown>({}, { a: 1, b: 2 }, { b: 2, a: 1 }, { a: null }, ['a'], '{}', '["a"]', 'null'),
)
const item = fc.record({ name: id, value: id, set: fc.array(id, { maxLength: 3 }) }, { requiredKeys: [] })
const patchItem = fc.record(
  { name: id, value: id, set: fc.array(id, { maxLength: 3 }), $patch: fc.constantFrom('delete', 'replace') },
  { requiredKeys: ['name'] },
)
const list = <T>(one: fc.Arbitrary<T>) => fc.array(one, { maxLength: 8 })
const docs = fc.record({
  set: list(id),
  map: list(fc.oneof({ weight: 9, arbitrary: item }, { weight: 1, arbitrary: id })),
})
const patches = fc.record(
  {
    set: list(id),
    map: list(patchItem),
    '$setElementOrder/set': list(id),
    '$setElementOrder/map': list(fc.record({ name: id })),
    '$deleteFromPrimitiveList/set': list(id),
  },
  { requiredKeys: [] },
)

const outcome = (patch: () => unknown): unknown => {
  try {
    return { value: patch() }
  } catch (error) {
    if (error instanceof PatchError) return { status: error.status, message: error.message }
    throw error
  }
}

it('a strategic merge patch means what comparing every item with every other means', () => {
  fc.assert(
    fc.property(docs, patches, (doc, patch) => {
      expect(outcome(() => applyStrategicPatch(doc, patch, schema))).toEqual(
        outcome(() => applyPairwise(doc, patch, schema)),
      )
    }),
    { numRuns: 3000 },
  )
})

const numbered = (count: number): string[] => Array.from({ length: count }, (_, at) => `example.com/${at}`)
const named = (count: number) => numbered(count).map((name) => ({ name }))

it.each([
  ['a set in reverse order', (n: number) => [{ set: numbered(n) }, { '$setElementOrder/set': numbered(n).reverse() }]],
  ['a set put in front of another', (n: number) => [{ set: numbered(n) }, { set: numbered(2 * n).reverse() }]],
  [
    'what leaves a set',
    (n: number) => [{ set: numbered(n) }, { '$deleteFromPrimitiveList/set': numbered(n).reverse() }],
  ],
  [
    'merged items in another order',
    (n: number) => [{ map: named(n) }, { map: named(n).reverse(), '$setElementOrder/map': named(n).reverse() }],
  ],
  ['items that go', (n: number) => [{ map: named(n) }, { map: named(n).map((one) => ({ ...one, $patch: 'delete' })) }]],
])('the time for %s grows with the patch, not with its square', (_, of) => {
  const timeOf = (count: number): number => {
    const [doc, patch] = of(count)
    const times = Array.from({ length: 3 }, () => {
      const startedAt = process.cpuUsage()
      applyStrategicPatch(doc, patch, schema)
      return cpuMs(startedAt)
    })
    return Math.min(...times)
  }
  timeOf(2000) // compiled by now
  // 16 times as many: 16 times as long, or 256 times.
  expect(timeOf(32_000)).toBeLessThan(80 * Math.max(timeOf(2000), 1))
})
