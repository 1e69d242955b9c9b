import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { checksumOf } from '../documents/envelope.ts'
import type { Delivery } from '../sink.ts'
import { eventMessages, tombstone } from './messages.ts'
import { EventReader } from './testing/event-reader.ts'

const row = (name: string, text = ''): Row => ({
  ...{ targetNamespace: 'team-a', targetName: 'deployments', namespace: 'shop', name },
  ...{ group: 'apps', version: 'v1', kind: 'Deployment', uid: `uid-${name}`, attributes: { text } },
})
const writing = { cluster: 'eu.west-1', namespace: 'team-a', inventory: 'api' }
const delivery = (rows: readonly Row[], sequence: bigint, more: Partial<Delivery> = {}): Delivery => ({
  writing,
  position: { epoch: 9_007_199_254_740_993n, sequence },
  generation: 3,
  complete: true,
  checksum: 'c'.repeat(64),
  itemCount: rows.length,
  takenAt: 0,
  rows: () => rows,
  maxPartBytes: 2 ** 24,
  ...more,
})
const messagesOf = (given: Delivery, maxBytes = 2 ** 20) =>
  [...eventMessages({ delivery: given, writer: 'agent-1', maxBytes })].map(({ part, headers, body }) => ({
    ...{ part, headers, body },
    header: (name: string) => headers[name] ?? '',
  }))

describe('a message', () => {
  it('says in its headers whose it is, how new, and which part', () => {
    const [only, ...more] = messagesOf(tombstone(writing, { epoch: 1n, sequence: 2n }, 0))
    expect(more).toEqual([])
    expect(only?.headers).toEqual({
      'kollect.dev/cluster': 'eu.west-1',
      'kollect.dev/namespace': 'team-a',
      'kollect.dev/inventory': 'api',
      'kollect.dev/checksum': checksumOf([]),
      'kollect.dev/schema-version': 'kollect.dev/v1alpha1',
      'kollect.dev/epoch': '1',
      'kollect.dev/sequence': '2',
      'kollect.dev/complete': 'true',
      'kollect.dev/part': '1',
      'kollect.dev/parts': '1',
      'kollect.dev/writer': 'agent-1',
    })
    expect(JSON.parse(only?.body ?? '')).toEqual({
      schemaVersion: 'kollect.dev/v1alpha1',
      timestamp: '1970-01-01T00:00:00.000Z',
      cluster: 'eu.west-1',
      namespace: 'team-a',
      payload: expect.objectContaining({ itemCount: 0, items: [], complete: true }),
    })
  })

  it('that is to hold more than a server takes is refused by the name of the row', () => {
    const big = delivery([row('small'), row('big', 'x'.repeat(70_000))], 1n)
    expect(() => messagesOf(big, 65_536)).toThrow(/^the row of Deployment shop\/big has 70\d\d\d bytes/)
    expect(() => messagesOf(delivery([row('small')], 1n), 2000)).toThrow(/at least 64 KiB/)
  })

  it('never outgrows the ceiling, headers and key included', () =>
    fc.assert(
      fc.property(
        fc.array(fc.nat(3000), { maxLength: 40 }),
        fc.integer({ min: 8192, max: 32_768 }),
        (sizes, maxBytes) => {
          const rows = sizes.map((size, n) => row(`n${n}`, 'ü'.repeat(size / 2)))
          for (const { headers, body } of messagesOf(delivery(rows, 1n), maxBytes))
            expect(Buffer.byteLength(JSON.stringify(headers)) + Buffer.byteLength(body) + 512).toBeLessThanOrEqual(
              maxBytes,
            )
        },
      ),
    ))
})

describe('a consumer', () => {
  const snapshot = fc.record({
    names: fc.uniqueArray(fc.constantFrom(...'abcdefgh'), { maxLength: 8 }),
    text: fc.constantFrom('', 'x'.repeat(3000)),
  })

  it('ends with the newest snapshot, however often and in which order parts come', () =>
    fc.assert(
      fc.property(fc.array(snapshot, { minLength: 1, maxLength: 5 }), fc.infiniteStream(fc.nat()), (all, chance) => {
        const rowsOf = (at: number) => (all[at]?.names ?? []).map((name) => row(name, all[at]?.text))
        const checksums = all.map((_, at) => `${at}`)
        const messages = all.flatMap((_, at) => {
          const rows = rowsOf(at)
          const parts = messagesOf(delivery(rows, BigInt(at), { checksum: checksums[at] ?? '' }), 8192)
          // The one checksum that a reader can verify by itself.
          return parts.length > 1
            ? parts
            : messagesOf(delivery(rows, BigInt(at), { checksum: checksumOfRows(rows) }), 8192)
        })
        const shuffled = [...messages, ...messages]
          .map((message) => ({ message, at: chance.next().value }))
          .sort((a, b) => a.at - b.at)
          .map(({ message }) => message)
        expect(EventReader.of(shuffled).rows(writing)).toEqual(rowsOf(all.length - 1))
      }),
    ))

  it('keeps the snapshot it has until all parts of the next are there', () => {
    const old = messagesOf(delivery([row('a')], 1n, { checksum: checksumOfRows([row('a')]) }))
    const next = messagesOf(delivery([row('b', 'x'.repeat(3000)), row('c', 'x'.repeat(3000))], 2n), 8192)
    expect(next.length).toBeGreaterThan(1)
    const reader = EventReader.of([...old, ...next.slice(0, -1)])
    expect(reader.rows(writing)).toEqual([row('a')])
    reader.take(next.at(-1)!)
    expect(reader.rows(writing)?.map(({ name }) => name)).toEqual(['b', 'c'])
  })
})

function checksumOfRows(rows: readonly Row[]): string {
  const [only] = messagesOf(delivery(rows, 1n), 2 ** 24)
  return JSON.parse(only?.body ?? '').payload.checksum
}
