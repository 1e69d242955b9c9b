import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { samplesOf } from '#history'
import { type Batch, type ClusterName, ownerOf, parseClusterName } from '#model'
import { type Log, LogFullError, type Logger, type LogOptions, openLog, silentLogger } from '#runtime'
import { EmbeddedStateStore, type StateRecord } from '#state'
import { batchFromOriginal, encodeRequest, originalFromBatch, readOriginal } from '#wire'
import {
  aBatch,
  aNode,
  anAgent,
  complete,
  connected,
  east,
  facts,
  removed,
  seen,
  sizes,
  T0,
  west,
} from '../state/test/fleet-words.ts'
import { type AudienceWord, audienceOf } from './audience.ts'
import { divideLogs, type FormerLog } from './division.ts'
import { Ingester } from './ingester.ts'
import { LedgerFile } from './ledger-file.ts'
import { decodeLogEntry, encodeLogEntry, type LogEntry } from './log-record.ts'
import { FileHistory } from './test/file-history.ts'

let directory: string
const opened: Log[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'divide-'))
})
afterEach(async () => {
  for (const log of opened.splice(0)) await log[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

async function aLog(name: string, options: Partial<LogOptions> = {}): Promise<Log> {
  const log = await openLog({ directory: join(directory, name), ...options })
  opened.push(log)
  return log
}

const write = (log: Log, entries: readonly LogEntry[]) =>
  Promise.all(entries.map((entry) => log.append(encodeLogEntry(entry))))

async function payloadsOf(log: Log): Promise<Buffer[]> {
  const payloads: Buffer[] = []
  for await (const { payload } of log.read(0)) payloads.push(payload)
  return payloads
}

const ledgerOf = async (log: Log) => (await LedgerFile.open(log, silentLogger, () => undefined)).ledger

/** Remembers the sentences it is told. */
function listening() {
  const told: [sentence: string, facts: object][] = []
  const error: Logger['error'] = (facts, sentence) => told.push([sentence, facts])
  return { told, logger: { ...silentLogger, error, child: () => silentLogger } satisfies Logger }
}

const at = (state: number, history: number) => ({ positions: { state, history } })
const behind = at(-1, -1)
const batch = aBatch(west, 5, [complete('node', aNode('n1'))], { origin: 'a', source: 'push' })
const samples = samplesOf(batch)
if (!samples) throw new Error('it has some')
const batchEntry = (into: AudienceWord, more: Partial<Batch> = {}): LogEntry => ({
  record: { kind: 'batch', batch: { ...batch, ...more }, receivedAt: T0 },
  audience: audienceOf({ into }),
  ...(into !== 'state' && into !== 'none' && { samples }),
})
const loss = {
  origin: 'a',
  sequence: 9,
  lost: [[2, 3]],
  from: T0,
  to: T0 + 1,
  cause: 'dropped',
  count: 2,
  keptEveryMs: 0,
} as const
const lostEntry = (more: { into?: AudienceWord; count?: number } = {}): LogEntry => {
  const { into, count = 2 } = more
  return {
    record: { kind: 'lost', cluster: west, loss: { ...loss, count }, at: T0 },
    ...(into && { audience: audienceOf({ into }) }),
  }
}
const original = (() => {
  const message = encodeRequest({ payload: { case: 'metrics', value: originalFromBatch(batch) } })
  const read = readOriginal(message)
  if (!read) throw new Error('it is one')
  const head = { cluster: west, origin: 'original', sequence: 7, collectedAt: T0 }
  const record = {
    kind: 'batch',
    batch: batchFromOriginal(read.metrics, head, undefined, read.nodes),
    receivedAt: T0,
  } as const
  return { record, audience: audienceOf({ into: 'both' }), message, samples } satisfies LogEntry
})()

type Left = 'both' | 'state' | 'history' | undefined
/** Where stores are: what is left for whom of a record that was for both, for state, for history. */
const positions = {
  'both behind': { ...at(-1, -1), both: 'both', state: 'state', history: 'history' },
  'state ahead': { ...at(0, -1), both: 'history', state: undefined, history: 'history' },
  'history ahead': { ...at(-1, 0), both: 'state', state: 'state', history: undefined },
  'both at the end': { ...at(0, 0), both: undefined, state: undefined, history: undefined },
} satisfies Record<string, Omit<FormerLog, 'log'> & Record<'both' | 'state' | 'history', Left>>

const kinds: [name: string, entry: LogEntry, was: 'both' | 'state' | 'history' | 'none'][] = [
  ['a batch for both', batchEntry('both'), 'both'],
  ['a batch for state', batchEntry('state'), 'state'],
  ['a batch for history', batchEntry('history'), 'history'],
  ['a batch for nobody', batchEntry('none'), 'none'],
  ['a batch of MetricSources', batchEntry('both', { tables: [seen(sizes({ a: 1 }))] }), 'both'],
  [
    'a difference',
    batchEntry('both', {
      base: 4,
      parts: [{ type: 'node', collector: 'c', durationMs: 1, outcome: 'changed', put: [aNode('n2')], removed: ['n1'] }],
    }),
    'both',
  ],
  ['a batch of an original', original, 'both'],
  ['a loss', lostEntry(), 'both'],
  ['a loss that was divided before', lostEntry({ into: 'history' }), 'history'],
  ['a loss of nothing', lostEntry({ count: 0 }), 'none'],
  ['a connection', { record: connected(west) }, 'state'],
  ['an agent', { record: { kind: 'agent', cluster: west, agent: anAgent(), at: T0 } }, 'state'],
  [
    'a source that is removed',
    { record: { kind: 'source-removed', cluster: west, source: 'team/sizes', at: T0 } },
    'state',
  ],
  ['a removal', { record: removed(west) }, 'state'],
]
const table = kinds.flatMap(([name, entry, was]) =>
  Object.entries(positions).map(
    ([where, place]) => [name, where, entry, place, was === 'none' ? undefined : place[was]] as const,
  ),
)

describe('divideLogs', () => {
  it.each(table)('carries of %s what is lacking: %s', async (_name, _where, entry, place, left) => {
    const [former, to] = [await aLog('former'), await aLog('new')]
    await write(former, [entry])
    const divided = await divideLogs({ from: [{ log: former, ...place }], to: [to], logger: silentLogger })
    const [payload, ...others] = await payloadsOf(to)
    expect(others).toEqual([])
    expect(divided.records).toBe(left ? 1 : 0)
    if (!left) return expect(payload).toBeUndefined()
    const { record } = entry
    const isTold = record.kind === 'batch' || (record.kind === 'lost' && left !== 'both')
    const audience = isTold && { audience: audienceOf({ into: left }) }
    const bytes = payload as Buffer
    if (record.kind !== 'batch') return expect(decodeLogEntry(bytes)).toEqual({ record, ...audience })
    const without = { ...record, batch: { ...record.batch, parts: [] } }
    const { tables: _, ...plain } = without.batch
    const kept = left === 'history' ? { ...without, batch: plain } : record
    expect(decodeLogEntry(bytes)).toEqual({ record: kept, ...audience })
    const own = left === 'state' ? undefined : samples
    expect(decodeLogEntry(bytes, 'samples')?.samples).toEqual(own)
    // What an original told stays as it told it.
    if (entry.message && left !== 'history') expect(bytes.includes(Buffer.from(entry.message))).toBe(true)
  })

  it('makes of records of the first version what a store would have made of them', async () => {
    const record = { kind: 'batch', batch, receivedAt: T0 } as const
    const left = async (name: string, place: Omit<FormerLog, 'log'>) => {
      const [former, to] = [await aLog(`former ${name}`), await aLog(name)]
      await former.append(Buffer.from(`1${JSON.stringify(record)}`))
      await divideLogs({ from: [{ log: former, ...place }], to: [to], logger: silentLogger })
      const [payload = Buffer.alloc(0)] = await payloadsOf(to)
      return [decodeLogEntry(payload), decodeLogEntry(payload, 'samples')?.samples]
    }
    expect(await left('both', positions['both behind'])).toEqual([{ record }, undefined])
    expect(await left('state', positions['history ahead'])).toEqual([
      { record, audience: new Set(['state']) },
      undefined,
    ])
    const late = { record: { ...record, batch: { ...batch, parts: [] } }, audience: new Set(['history']) }
    expect(await left('history', positions['state ahead'])).toEqual([late, samples])
    expect(await left('none', positions['both at the end'])).toEqual([undefined, undefined])
  })

  it('gives each cluster to its owner, in the order of its records, above every index before', async () => {
    const names = Array.from({ length: 12 }, (_, i) => parseClusterName(`c${i}`))
    const former = [await aLog('f1'), await aLog('f2')]
    for (const [i, log] of former.entries()) {
      const mine = names.filter((name) => ownerOf(name, 2) === i + 1)
      for (const sequence of [1, 2, 3]) {
        await write(
          log,
          mine.map((cluster) => batchEntry('both', { cluster, sequence })),
        )
      }
    }
    const before = Math.max(...former.map((log) => log.lastIndex()))
    const to = [await aLog('t1'), await aLog('t2'), await aLog('t3')]
    const from = former.map((log, i) => ({ log, ...at(-1, i === 0 ? 500 : -1) }))
    const divided = await divideLogs({ from, to, logger: silentLogger })
    expect(divided).toEqual({ clusters: 12, records: 36, unreadable: 0 })
    for (const [i, log] of to.entries()) {
      const mine = names.filter((name) => ownerOf(name, 3) === i + 1)
      const told = (await payloadsOf(log)).map((payload) => decodeLogEntry(payload)?.record)
      for (const name of mine) {
        const own = told.flatMap((record) =>
          record?.kind === 'batch' && record.batch.cluster === name ? [record.batch.sequence] : [],
        )
        expect(own).toEqual([1, 2, 3])
      }
      expect(told).toHaveLength(mine.length * 3)
      expect(log.firstIndex()).toBeGreaterThan(Math.max(before, 500))
      const ledger = await ledgerOf(log)
      expect(names.filter((name) => ledger.has(name, 'a', 2))).toEqual(mine)
    }
  })

  it('has indices above all former ones also where nothing was left to carry', async () => {
    const former = await aLog('former')
    await write(former, [{ record: connected(west) }, batchEntry('both')])
    const to = await aLog('new')
    const place = at(former.lastIndex(), former.lastIndex())
    expect((await divideLogs({ from: [{ log: former, ...place }], to: [to], logger: silentLogger })).records).toBe(0)
    await to[Symbol.asyncDispose]()
    const again = await aLog('new')
    expect((await ledgerOf(again)).received(west, 'a')).toEqual([[5, 5]])
    expect(await again.append(encodeLogEntry({ record: connected(west) }))).toBeGreaterThan(former.lastIndex())
  })

  it('leaves to the stores what was carried over, and no more: a backlog counts no index of former logs', async () => {
    const former = await aLog('former')
    former.advance(1_000_000)
    await write(former, [{ record: connected(west) }, batchEntry('both')])
    const to = await aLog('new')
    await divideLogs({ from: [{ log: former, ...behind }], to: [to], logger: silentLogger })
    const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 60_000 })
    await using _ = state
    await using ingester = await Ingester.open({ log: to, state, events: openEvents({ kind: 'in-process' }) })
    expect(ingester.backlog()).toBe(2)
    await ingester.flushed()
    expect(ingester.backlog()).toBe(2) // applied, and not yet on disk
    await state.flush()
    expect(ingester.backlog()).toBe(0)
  })

  it('does not take as received anew what history alone lacks of a cluster that was gone since', async () => {
    const former = await aLog('former')
    for (const entry of [
      { record: connected(west) },
      batchEntry('both'),
      { record: removed(west) },
      { record: connected(west) },
    ])
      await write(former, [entry])
    const to = await aLog('new')
    const from = [{ log: former, ...at(former.lastIndex(), -1) }]
    expect((await divideLogs({ from, to: [to], logger: silentLogger })).records).toBe(1)
    await using state = await EmbeddedStateStore.open({ directory: join(directory, 'state') })
    await state.apply([connected(west)], -1)
    await using ingester = await Ingester.open({ log: to, state, events: openEvents({ kind: 'in-process' }) })
    expect(ingester.received(west, 'a')).toEqual([])
    expect(await ingester.accept({ batch })).toEqual({ sequence: 5, duplicate: false })
  })

  it('keeps every copy until the stores took it, however many there are', async () => {
    const former = await aLog('former')
    const sequences = Array.from({ length: 60 }, (_, i) => i + 1)
    await write(
      former,
      sequences.map((sequence) => batchEntry('both', { sequence })),
    )
    const small = { segmentBytes: 1000, retainBytes: 0, retainMs: 0 }
    const to = await aLog('new', small)
    await divideLogs({ from: [{ log: former, ...behind }], to: [to], logger: silentLogger })
    expect((await readdir(join(directory, 'new'))).filter((name) => name.endsWith('.segment')).length).toBeGreaterThan(
      1,
    )
    await to[Symbol.asyncDispose]()
    expect(await payloadsOf(await aLog('new', small))).toHaveLength(60)
  })

  it('joins what several former logs tell of one cluster', async () => {
    const former = [await aLog('f1'), await aLog('f2')]
    const [f1, f2] = former as [Log, Log]
    await write(f1, [{ record: connected(west) }, ...[1, 2, 8].map((sequence) => batchEntry('both', { sequence }))])
    await write(f2, [
      { record: connected(west) },
      ...[3, 9].map((sequence) => batchEntry('both', { sequence })),
      batchEntry('history', { origin: 'b', sequence: 4 }),
    ])
    const to = await aLog('new')
    const from = former.map((log) => ({ log, ...at(log.lastIndex(), log.lastIndex()) }))
    expect(await divideLogs({ from, to: [to], logger: silentLogger })).toEqual({
      clusters: 1,
      records: 0,
      unreadable: 0,
    })
    const ledger = await ledgerOf(to)
    expect(ledger.received(west, 'a')).toEqual([
      [1, 3],
      [8, 9],
    ])
    expect(ledger.received(west, 'b')).toEqual([[4, 4]])
    expect(ledger.live(west)?.sequence).toBe(9)
  })

  it('reports records that are damaged or of an unknown form, and carries over the others', async () => {
    const { told, logger } = listening()
    {
      const log = await aLog('former')
      for (const sequence of [1, 2, 3]) await write(log, [batchEntry('both', { sequence })])
      await log.append(Buffer.from('9 of a later version'))
      await write(log, [batchEntry('both', { sequence: 4 })])
      await log[Symbol.asyncDispose]()
    }
    const path = join(directory, 'former', '0000000000000000.segment')
    const bytes = await readFile(path)
    const second = bytes.indexOf('"sequence":2')
    bytes[second] = 0
    await writeFile(path, bytes)
    const damage: number[] = []
    const former = await aLog('former', { onDamage: ({ index }) => damage.push(index ?? -1) })
    const to = await aLog('new')
    const divided = await divideLogs({ from: [{ log: former, ...behind }], to: [to], logger })
    expect(divided).toEqual({ clusters: 1, records: 3, unreadable: 2 })
    expect(damage).toEqual([1])
    expect(told.map(([, facts]) => facts)).toMatchObject([{ index: 3 }, { places: 1 }])
    expect((await ledgerOf(to)).received(west, 'a')).toEqual([
      [1, 1],
      [3, 4],
    ])
  })

  it('leaves the former logs as they are, and ends with the reason when it is told to, or a new log is full', async () => {
    const former = await aLog('former')
    await write(
      former,
      Array.from({ length: 50 }, (_, i) => batchEntry('both', { sequence: i + 1 })),
    )
    const before = await contentOf(join(directory, 'former'))
    const from = [{ log: former, ...behind }]
    const reason = new Error('the process ends')
    const stopped = divideLogs({
      from,
      to: [await aLog('n1')],
      logger: silentLogger,
      signal: AbortSignal.abort(reason),
    })
    await expect(stopped).rejects.toBe(reason)
    const full = await aLog('n2', { maxBytes: 8_000, maxRecordBytes: 2_000 })
    await expect(divideLogs({ from, to: [full], logger: silentLogger })).rejects.toBeInstanceOf(LogFullError)
    await expect(divideLogs({ from, to: [full], logger: silentLogger })).rejects.toThrow('a new log holds nothing')
    expect(await contentOf(join(directory, 'former'))).toEqual(before)
    const whole = await divideLogs({ from, to: [await aLog('n3')], logger: silentLogger })
    expect(whole).toEqual({ clusters: 1, records: 50, unreadable: 0 })
  })

  it('of a ledger that was lost takes the rest from state, but nothing of a cluster that is gone', async () => {
    const state = await EmbeddedStateStore.open({ directory: join(directory, 'state') })
    await using _ = state
    const agents = { origin: 'a', source: 'push' } as const
    const known = (cluster: ClusterName): StateRecord[] => [
      connected(cluster, { mode: 'push' }),
      {
        kind: 'batch',
        batch: aBatch(cluster, 20, [complete('node', aNode('n1'))], agents),
        receivedAt: T0,
      },
    ]
    await state.apply([...known(west), ...known(east)], -1)
    // The log that told of them is gone, and so is the ledger; what it has is newer.
    const former = await aLog('former')
    await write(former, [{ record: removed(east) }, batchEntry('both', { sequence: 22 })])
    const to = await aLog('new')
    await divideLogs({ from: [{ log: former, ...behind }], to: [to], logger: silentLogger })
    await using ingester = await Ingester.open({ log: to, state, events: openEvents({ kind: 'in-process' }) })
    expect(ingester.received(west, 'a')).toEqual([
      [20, 20],
      [22, 22],
    ])
    expect(ingester.received(east, 'a')).toEqual([])
    await ingester.flushed()
    expect([state.cluster('west')?.sequence, state.cluster('east')]).toEqual([22, undefined])
  })
})

describe('a loss that only one store lacks', () => {
  it.each([
    ['history', 0, 1],
    ['state', 1, 0],
  ] as const)('is told to %s alone', async (into, events, losses) => {
    const log = await aLog('log')
    await write(log, [{ record: connected(west) }, lostEntry({ into })])
    await using state = await EmbeddedStateStore.open({ directory: join(directory, 'state') })
    await using history = await FileHistory.open(join(directory, 'history'))
    await using ingester = await Ingester.open({ log, state, history, events: openEvents({ kind: 'in-process' }) })
    await ingester.connect(west, facts())
    await ingester.flushed()
    await ingester.flushed('history')
    expect(state.cluster('west')?.events.filter(({ type }) => type === 'collection.lost')).toHaveLength(events)
    expect(history.lossesOf('west')).toHaveLength(losses)
  })
})

async function contentOf(folder: string): Promise<Record<string, string>> {
  const files = (await readdir(folder)).filter((name) => name !== 'lock').sort()
  const digests = files.map(async (name) => [
    name,
    createHash('sha256')
      .update(await readFile(join(folder, name)))
      .digest('hex'),
  ])
  return Object.fromEntries(await Promise.all(digests)) as Record<string, string>
}
