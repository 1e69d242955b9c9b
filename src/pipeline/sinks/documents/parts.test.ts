import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalRow, type Row } from '#extract'
import type { Delivery } from '../sink.ts'
import { checksumOf } from './envelope.ts'
import { documentFormats, type FormatName } from './format.ts'
import { envelopeParts, packRows } from './parts.ts'

const row = (name: string, attributes: Row['attributes'] = {}): Row => ({
  targetNamespace: 'team-a',
  targetName: 'deployments',
  namespace: 'shop',
  name,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${name}`,
  attributes,
})

const delivery = (rows: readonly Row[], more: Partial<Delivery> = {}): Delivery => ({
  writing: { cluster: 'west', namespace: 'team-a', inventory: 'api' },
  position: { epoch: 9_007_199_254_740_993n, sequence: 2n },
  generation: 3,
  complete: true,
  checksum: 'c'.repeat(64),
  itemCount: rows.length,
  takenAt: 0,
  rows: () => rows,
  maxPartBytes: 1_572_864,
  ...more,
})

const read = (text: string) => JSON.parse(text) as Record<string, unknown>

describe('an envelope', () => {
  it('says who wrote it, when, in which order, and whether it is all', () => {
    const [part, ...more] = envelopeParts(delivery([row('a'), row('b')]))
    expect(more).toEqual([])
    expect(read(part!.text)).toEqual({
      schemaVersion: 'kollect.dev/v1alpha1',
      checksum: checksumOf([row('a'), row('b')].map(canonicalRow)),
      generation: 3,
      itemCount: 2,
      exportedAt: '1970-01-01T00:00:00.000Z',
      cluster: 'west',
      epoch: '9007199254740993', // a number would be rounded
      sequence: '2',
      snapshotId: '9007199254740993-2',
      complete: true,
      items: [row('a'), row('b')],
    })
  })

  it('of nothing is one document, with the checksum of []', () => {
    const [part, ...more] = envelopeParts(delivery([], { generation: 0, complete: false }))
    expect(more).toEqual([])
    const body = read(part!.text)
    // printf '[]' | sha256sum
    expect(body.checksum).toBe('4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945')
    expect(body).toMatchObject({ itemCount: 0, complete: false, items: [] })
    expect(body).not.toHaveProperty('generation')
    expect(body).not.toHaveProperty('partTotal')
  })

  it('of which there are several counts them densely, each with a checksum of its own', () => {
    const rows = Array.from({ length: 30 }, (_, i) => row(`n${String(i).padStart(2, '0')}`, { text: 'x'.repeat(100) }))
    const bodies = [...envelopeParts(delivery(rows), 2000)].map(({ text }) => read(text))
    expect(bodies.length).toBeGreaterThan(3)
    expect(bodies.map(({ partIndex }) => partIndex)).toEqual(bodies.map((_, i) => i + 1))
    expect(new Set(bodies.map(({ partTotal }) => partTotal))).toEqual(new Set([bodies.length]))
    expect(new Set(bodies.map(({ snapshotId }) => snapshotId)).size).toBe(1)
    expect(bodies.flatMap(({ items }) => items)).toEqual(rows)
    for (const { items, checksum, itemCount } of bodies) {
      expect(checksum).toBe(checksumOf((items as Row[]).map(canonicalRow)))
      expect(itemCount).toBe((items as Row[]).length)
    }
  })
})

describe('a row that no document can hold', () => {
  it('fails by its name, and nothing is left out without a word', () => {
    const rows = [row('small'), row('big', { text: 'x'.repeat(3000) })]
    expect(() => [...envelopeParts(delivery(rows), 2000)]).toThrow(
      expect.objectContaining({
        errorClass: 'terminal',
        message: expect.stringMatching(
          /^the row of Deployment shop\/big has 3\d\d\d bytes.*\(2000\).*maxExportBytes up to MAX_EXPORT_BYTES/,
        ),
      }),
    )
  })
})

const anyRow = fc
  .record({
    name: fc.string({ unit: 'grapheme', maxLength: 20 }),
    attributes: fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 }),
  })
  .map(({ name, attributes }) => row(name, attributes as Row['attributes']))

describe.each(Object.keys(documentFormats) as FormatName[])('parts in %s', (name) => {
  const format = documentFormats[name]

  it('hold every row once, in order, below the ceiling, and no two neighbours would fit into one', () =>
    fc.assert(
      fc.property(fc.array(anyRow, { maxLength: 40 }), fc.integer({ min: 3000, max: 9000 }), (rows, maxBytes) => {
        const head = { cluster: 'west', complete: true, exportedAt: '1970-01-01T00:00:00.000Z' }
        const parts = [...packRows({ head, rows: () => rows, maxBytes }, format).parts()]
        const texts = rows.map((one) => format.row(one))
        let at = 0
        for (const [i, { index, total, itemCount, text }] of parts.entries()) {
          expect([index, total]).toEqual([i + 1, parts.length])
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes)
          const part = parts.length > 1 ? { part: { index, total } } : {}
          expect(text).toBe(format.document({ ...head, ...part }, texts.slice(at, at + itemCount)))
          at += itemCount
        }
        expect(at).toBe(rows.length)
        for (const [i, part] of parts.entries()) {
          const next = parts[i + 1]
          if (next) expect(Buffer.byteLength(part.text) + Buffer.byteLength(next.text)).toBeGreaterThan(maxBytes - 200)
        }
      }),
      { numRuns: 50 },
    ))
})
