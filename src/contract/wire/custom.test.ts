import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, type CustomPart, parseClusterName } from '#model'
import { decodeBody, encodeBody } from './body.ts'
import { headOf } from './testing/arbitrary.ts'
import { customParts, plain } from './testing/custom.ts'
import { viewOf } from './view.ts'

const batch = (custom: readonly CustomPart[], more: Partial<Batch> = {}): Batch => ({
  cluster: parseClusterName('west'),
  origin: 'a1',
  sequence: 5,
  source: 'push',
  collectedAt: 1_700_000_000_000,
  durationMs: 12,
  parts: [],
  partial: true,
  ...(custom.length > 0 && { custom }),
  ...more,
})
const again = (one: Batch) => decodeBody(encodeBody(one), headOf(one))

describe('what MetricSources saw', () => {
  it('comes back exactly as it was', () => {
    fc.assert(
      fc.property(customParts(), fc.boolean(), (parts, partial) => {
        const { partial: _, ...round } = batch(parts)
        const sent = partial ? batch(parts) : round
        const { batch: decoded, view } = again(sent)
        expect(plain(decoded)).toEqual(plain(sent))
        expect(plain(view)).toEqual(plain(viewOf(sent)))
      }),
      { numRuns: 300 },
    )
  })

  it('leads as a difference from the view of any batch to that of any other', () => {
    const fields = fc.constantFrom(['f', 'g'], ['f'], undefined)
    fc.assert(
      fc.property(
        fields.chain((one) => fc.tuple(customParts(one), customParts(one))),
        ([before, after]) => {
          const [first, second] = [batch(before), batch(after, { sequence: 6 })]
          const body = encodeBody(second, viewOf(first))
          const { batch: told, view } = decodeBody(body, { ...headOf(second), base: 5 }, again(first).view)
          expect(plain(view.customFacts)).toEqual(plain(viewOf(second, viewOf(first)).customFacts))
          const expected = viewOf(second, viewOf(first)).custom
          expect([...(view.custom?.keys() ?? [])]).toEqual([...(expected?.keys() ?? [])])
          for (const [source, rows] of expected ?? []) expect(view.custom?.get(source)?.equals(rows)).toBe(true)
          expect(told.custom?.map(({ source }) => source)).toEqual(second.custom?.map(({ source }) => source))
        },
      ),
      { numRuns: 300 },
    )
  })
})
