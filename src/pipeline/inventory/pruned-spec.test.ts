import { expect, it } from 'vitest'
import { prunedSpec } from './pruned-spec.ts'

it('keeps the very same spec where nothing of it is too much', () => {
  const spec = { databaseSinkRefs: ['a', { name: 'b', exportMinInterval: '5m' }], suspend: true }
  expect(prunedSpec(spec)).toBe(spec)
  expect([prunedSpec(undefined), prunedSpec(7)]).toEqual([undefined, 7])
})

it('takes away what is nested where a schema bounds nothing, and leaves the fault', () => {
  const junk = Array.from({ length: 1000 }, () => [])
  const spec = { type: 'postgres', mongodb: { junk }, databaseSinkRefs: [{ name: 'x', junk }, junk, 'y'] }
  expect(prunedSpec(spec)).toEqual({
    ...{ type: 'postgres', mongodb: {} },
    databaseSinkRefs: [{ name: 'x', junk: null }, [], 'y'],
  })
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, 1]))
  const [first] = prunedSpec({ eventSinkRefs: [many] }).eventSinkRefs
  expect(Object.keys(first ?? {})).toHaveLength(20)
  const long = 'z'.repeat(1_500_000)
  const [reference, text] = prunedSpec({ snapshotSinkRefs: [{ name: 'x', [long]: long }, long] }).snapshotSinkRefs
  expect(JSON.stringify([reference, text]).length).toBeLessThan(4000)
})
