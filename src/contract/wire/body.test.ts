import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, type BatchView, snapshotTypes } from '#model'
import { decodeBody, encodeBody } from './body.ts'
import { batches, following, headOf } from './testing/arbitrary.ts'
import { viewOf } from './view.ts'

const again = (batch: Batch) => decodeBody(encodeBody(batch), headOf(batch))

describe('a complete body', () => {
  it('gives back any batch exactly as it was', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const { batch: decoded, view } = again(batch)
        expect(decoded).toEqual(batch)
        expect(view).toEqual(viewOf(batch))
      }),
      { numRuns: 300 },
    )
  })
})

describe('a difference', () => {
  const pairs = batches.chain((batch) => fc.tuple(fc.constant(batch), following(batch, {})))

  it('leads from the view of any batch to that of any other', () => {
    fc.assert(
      fc.property(pairs, ([before, after]) => {
        const base = again(before).view
        const body = encodeBody(after, viewOf(before))
        const { view, batch } = decodeBody(body, { ...headOf(after), base: before.sequence }, base)
        expect(view).toEqual(viewOf(after, viewOf(before)))
        expect(viewOf(batch, base)).toEqual(view)
        expect(batch.parts.length).toBe(after.parts.length)
      }),
      { numRuns: 300 },
    )
  })

  it('keeps the very objects of what did not change', () => {
    fc.assert(
      fc.property(pairs, ([before, after]) => {
        const base = again(before).view
        const { view } = decodeBody(encodeBody(after, viewOf(before)), headOf(after), base)
        for (const type of snapshotTypes) {
          const was: ReadonlyMap<string, unknown> | undefined = base[type as keyof BatchView]
          const told = after.parts.filter((part) => part.type === type && part.outcome === 'complete')
          if (told.length > 1) continue
          for (const [name, item] of view[type] ?? [])
            if (was?.has(name) && equal(was.get(name), item) && hasOnce(told, name)) expect(was.get(name)).toBe(item)
        }
      }),
      { numRuns: 300 },
    )
  })
})

function hasOnce(parts: readonly Batch['parts'][number][], name: string): boolean {
  return parts.every(
    (part) =>
      part.outcome === 'complete' &&
      new Set(part.items.map((item) => item.name)).size === part.items.length &&
      name !== undefined,
  )
}

function equal(a: unknown, b: unknown): boolean {
  try {
    expect(a).toEqual(b)
    return true
  } catch {
    return false
  }
}
