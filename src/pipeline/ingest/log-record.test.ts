import { describe, expect, it } from 'vitest'
import { samplesOf } from '#history'
import { batchFromOriginal, decodeRequest, encodeRequest, originalFromBatch } from '#wire'
import { aBatch, aNode, complete, connected, failed, removed, west } from '../state/test/fleet-words.ts'
import { decodeLogEntry, encodeLogEntry, type LogEntry } from './log-record.ts'

const quiet = <T extends 'node' | 'cluster'>(type: T) =>
  ({ type, collector: 'test', durationMs: 3, outcome: 'changed', put: [], removed: [] }) as const
const batch = aBatch(west, 3, [complete('node', aNode('n1'), aNode('ñ2')), failed('operator', 'absent')], {
  origin: 'agent',
  backfill: true,
})
const samples = samplesOf(batch)
const both = new Set(['state', 'history'])

describe("records of the hub's log", () => {
  it.each([
    ['a connection', { record: connected(west) }],
    ['a removal', { record: removed(west) }],
    ['a whole batch', { record: { kind: 'batch', batch, receivedAt: 5 }, audience: both } as const],
    ['one for others', { record: { kind: 'batch', batch, receivedAt: 5 }, audience: new Set(['inventory']) } as const],
    [
      'differences',
      {
        record: {
          kind: 'batch',
          batch: aBatch(west, 4, [quiet('cluster'), { ...quiet('node'), put: [aNode('n3')], removed: ['n1'] }], {
            base: 3,
          }),
          receivedAt: 5,
        },
        audience: new Set(['state', 'z', 'b']),
      } as const,
    ],
    [
      'a round that failed',
      {
        record: {
          kind: 'batch',
          batch: aBatch(west, 4, [], { failure: { code: 'c', message: 'm' } }),
          receivedAt: 5,
        },
        audience: new Set(['state']),
      } as const,
    ],
  ])('come back as they were: %s', (_, entry: LogEntry) => {
    expect(decodeLogEntry(encodeLogEntry(entry))).toEqual(entry)
  })

  it('give state no samples, and history no parts', () => {
    const record = { kind: 'batch', batch, receivedAt: 5 } as const
    const payload = encodeLogEntry({ record, audience: both, ...(samples && { samples }) })
    expect(decodeLogEntry(payload)).toEqual({ record, audience: both })
    expect(decodeLogEntry(payload, 'samples')).toEqual({
      record: { ...record, batch: { ...batch, parts: [] } },
      audience: both,
      samples,
    })
  })

  it('keep no parts of a batch that is for history only', () => {
    const record = { kind: 'batch', batch, receivedAt: 5 } as const
    const audience = new Set(['history'])
    expect(decodeLogEntry(encodeLogEntry({ record, audience }))?.record).toEqual({
      ...record,
      batch: { ...batch, parts: [] },
    })
  })

  it('hold 100 000 nodes of one round below the bound of a record, and give them back', () => {
    const nodes = Array.from({ length: 20_000 }, (_, i) =>
      aNode(`worker-${i}.west.example`, {
        createdAt: 1.7e12 + i * 1000,
        requested: { cpuCores: (i % 640) / 10, memoryBytes: i * 2 ** 20 },
        used: { cpuCores: i / 777, memoryBytes: i * 1.5e6 + 1 },
        kubeletVersion: `v1.${i % 30}.${i % 7}`,
      }),
    )
    const parts = [complete('node', ...nodes), failed('operator', 'absent')]
    const record = { kind: 'batch', batch: aBatch(west, 3, parts), receivedAt: 5 } as const
    const payload = encodeLogEntry({ record, audience: both })
    expect(payload.length / nodes.length).toBeLessThan((32 * 2 ** 20) / 100_000)
    expect(JSON.stringify(parts).length / nodes.length).toBeGreaterThan((32 * 2 ** 20) / 100_000)
    expect(decodeLogEntry(payload)).toEqual({ record, audience: both })
  })

  it('keep of a batch of the original what it told, which state reads and history passes over', () => {
    const message = encodeRequest({ payload: { case: 'metrics', value: originalFromBatch(batch) } })
    const { payload } = decodeRequest(message)
    if (payload.case !== 'metrics') throw new Error('it is one')
    const head = { cluster: west, origin: 'original', sequence: 7, collectedAt: 1_000 }
    const read = batchFromOriginal(payload.value, head)
    const record = { kind: 'batch', batch: read, receivedAt: 5 } as const
    const bytes = encodeLogEntry({ record, message, ...(samples && { samples }) })
    expect(decodeLogEntry(bytes)).toEqual({ record })
    expect(decodeLogEntry(bytes, 'samples')).toEqual({ record: { ...record, batch: { ...read, parts: [] } }, samples })
    expect(encodeLogEntry({ record, message }).length).toBeLessThan(encodeLogEntry({ record }).length)
    // What is for history only is kept without it, as everything is.
    const audience = new Set(['history'])
    expect(encodeLogEntry({ record, audience, message })).toEqual(encodeLogEntry({ record, audience }))
  })

  it('of a message that is no batch are no record', () => {
    const record = { kind: 'batch', batch, receivedAt: 5 } as const
    for (const message of [
      Uint8Array.of(),
      Uint8Array.of(0x0a, 9),
      encodeRequest({ payload: { case: 'loss', value: {} } }),
    ])
      expect(decodeLogEntry(encodeLogEntry({ record, message }))).toBeUndefined()
  })

  it('of the former version are read, for state and for history', () => {
    const record = { kind: 'batch', batch, receivedAt: 5 } as const
    const payload = Buffer.from(`1${JSON.stringify(record)}`)
    expect(decodeLogEntry(payload)).toEqual({ record })
    expect(decodeLogEntry(payload, 'samples')).toEqual({ record })
  })

  it('name those they are for as every version did, and others beside', () => {
    const headOf = (audience?: ReadonlySet<string>) => {
      const payload = encodeLogEntry({ record: { kind: 'batch', batch, receivedAt: 5 }, audience })
      return JSON.parse(payload.toString('utf8', 9, 9 + payload.readUInt32LE(1))) as Record<string, unknown>
    }
    expect(headOf()).not.toHaveProperty('into')
    for (const [into, names] of Object.entries({
      both: ['history', 'state'],
      state: ['state'],
      history: ['history'],
      none: [],
    })) {
      expect(headOf(new Set(names))).toMatchObject({ into })
      expect(headOf(new Set(names))).not.toHaveProperty('also')
      expect(headOf(new Set(['z', ...names, 'b']))).toMatchObject({ into, also: ['b', 'z'] })
    }
  })

  it('of no known form are no record, whatever the bytes', () => {
    const good = encodeLogEntry({ record: connected(west) })
    for (const bytes of ['', '2', '2 ', '1{', '1null', '3{}', '1{"kind":"other"}']) {
      expect(decodeLogEntry(Buffer.from(bytes)), bytes).toBeUndefined()
    }
    const wrongLength = Buffer.from(good)
    wrongLength.writeUInt32LE(good.length + 1, 1)
    expect(decodeLogEntry(wrongLength)).toBeUndefined()
  })

  it('cost little where nothing changed', () => {
    const types = ['cluster', 'node'] as const
    const difference = aBatch(west, 4, types.map(quiet), { base: 3, origin: 'agent' })
    const size = encodeLogEntry({
      record: { kind: 'batch', batch: difference, receivedAt: 5 },
      audience: new Set(['state']),
    }).length
    expect(size).toBeLessThan(300)
  })
})
