/*
 * node step.ts ROWS STEPS: what one changed row costs a hub, from the bytes of a step to the stored change in our own keys. CPU of the process
 * in ms, each of one step: `all` of steps that go their whole way one after the other, then each part by itself. With a further word, each
 * step is a round: `moved`, in which every row changes, told as differences, and `whole`, in which every row is told again.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Batch, type BatchView, type ClusterState, parseClusterName, Table } from '#model'
import { decodeBody, encodeBody, viewOf } from '#wire'
import { batchCheck } from '../../src/pipeline/ingest/check-batch.ts'
import { encodeLogEntry } from '../../src/pipeline/ingest/log-record.ts'
import { applyRecord } from '../../src/pipeline/state/fleet.ts'
import { StoredRows } from '../../src/pipeline/state/stored-rows.ts'
import { fields, hex, mixed, pod } from './pods.ts'

/** Steps between two readings of the clock: short ones measured one by one would measure the reading. */
const [rows, steps] = process.argv.slice(2).map(Number) as [number, number]
const isRound = process.argv[4] !== undefined
const BLOCK = isRound ? 1 : 100

const cluster = parseClusterName('bench')
const head = { cluster, origin: 'agent', collectedAt: 1000 }
const batchOf = (sequence: number, table: Table): Batch => {
  const facts = { hash: 'hash', aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
  const tables = [{ source: 'pods', durationMs: 1, outcome: 'complete' as const, rows: table, ...facts }]
  return { ...head, sequence, source: 'push', durationMs: 1, parts: [], tables, partial: true }
}

/** of each block, ms per step */
const spent = new Map<string, number[]>()
function cpu<T>(part: string, run: () => T): T {
  const before = process.cpuUsage()
  const result = run()
  const { user, system } = process.cpuUsage(before)
  const all = spent.get(part) ?? []
  all.push((user + system) / 1000 / BLOCK)
  spent.set(part, all)
  return result
}

/** A step as it comes. */
interface Told {
  readonly bytes: Uint8Array
  readonly sequence: number
  /** default: the one before; 0: it is told whole */
  readonly base?: number
}
/** What a hub has of the cluster. */
interface Hub {
  view: BatchView
  state: ClusterState | undefined
}

let table = Table.of(
  fields,
  Array.from({ length: rows }, (_, i) => pod(i)),
)
const first = batchOf(1, table)
const check = batchCheck()
let agent = viewOf(first)
let sequence = 1
const record = (batch: Batch) => ({ kind: 'batch' as const, batch, receivedAt: 1000 })
const hub: Hub = { view: viewOf(first), state: applyRecord(undefined, record(first), 1).next }

const decode = ({ bytes, sequence, base = sequence - 1 }: Told): Batch => {
  const { batch, view } = decodeBody(
    bytes,
    { ...head, sequence, ...(base > 0 && { base }) },
    base > 0 ? hub.view : undefined,
  )
  hub.view = view
  return batch
}
const log = (batch: Batch) => encodeLogEntry({ record: record(batch), audience: new Set(['state']) })
const apply = (batch: Batch): readonly [before: ClusterState | undefined, after: ClusterState | undefined] => {
  const before = hub.state
  hub.state = applyRecord(before, record(batch), batch.sequence).next
  return [before, hub.state]
}
const stored = new StoredRows()
const store = (before: ClusterState | undefined, after: ClusterState | undefined): void => {
  for (const _ of stored.changed(before?.tables, after?.tables ?? new Map())) void _
}
store(undefined, hub.state)

type Change = (turn: number) => readonly [put: Table, removed: readonly string[]]
const changed: Change = (turn) => {
  const row = table.row(mixed(turn) % table.size)
  const values = { ...row.values, restarts: turn % 9, cpuCores: turn / 8, node: `worker-${turn % 1000}` }
  return [Table.of(fields, [{ ...row, values }]), []]
}
const replaced: Change = (turn) => {
  const row = table.row(mixed(turn) % table.size)
  return [Table.of(fields, [{ ...row, name: `${row.name.slice(0, -5)}${hex(turn, 5)}` }]), [idOf(row)]]
}
const MOVING = ['phase', 'ready', 'restarts', 'lastRestart', 'cpuCores', 'memoryBytes']
/** Usage, restarts and phase of every row move. */
const moved: Change = (turn) => {
  const all = [...table.rows()].map((row, at) => {
    const { values } = pod(at + turn)
    const now = MOVING.map((name) => [name, values[name] ?? null])
    return { ...row, values: { ...row.values, ...Object.fromEntries(now) } }
  })
  return [Table.of(fields, all), []]
}
const idOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => `${namespace}/${name}`

let turn = 0
function tell(change: Change, isWhole = false): Told {
  table = table.patch(...change(turn++))
  const told = batchOf(++sequence, table)
  const bytes = encodeBody(told, isWhole ? undefined : agent, { rowSums: true })
  agent = viewOf(told, agent)
  return { bytes, sequence }
}

function handle(batch: Batch): void {
  check(batch)
  log(batch)
  store(...apply(batch))
}

/** One block, the whole way or part by part. */
function run(change: Change, part: string | undefined): void {
  const told = Array.from({ length: BLOCK }, () => tell(change))
  if (part !== undefined) {
    cpu(part, () => {
      for (const one of told) handle(decode(one))
    })
    return
  }
  const batches = cpu('decode', () => told.map(decode))
  cpu('check', () => batches.forEach(check))
  cpu('log', () => batches.forEach(log))
  const states = cpu('state', () => batches.map(apply))
  cpu('store', () => states.forEach((both) => void store(...both)))
}

/** Each block in a turn of its own, as steps come: what is weakly held lives until its end. */
async function runAll(change: Change, part: string | undefined, blocks: number): Promise<void> {
  for (let i = 0; i < blocks; i++) {
    run(change, part)
    await nextTurn()
  }
}

const blocks = Math.max(1, Math.ceil(steps / BLOCK))
if (isRound) {
  for (const part of ['warm', 'moved']) await runAll(moved, part, blocks)
  for (let i = 0; i < blocks; i++) {
    const told = tell(moved, true)
    cpu('whole', () => handle(decode({ ...told, base: 0 })))
    await nextTurn()
  }
} else {
  await runAll(changed, 'warm', blocks)
  await runAll(changed, undefined, blocks)
  await runAll(changed, 'all', blocks)
  await runAll(replaced, 'warm', blocks)
  await runAll(replaced, 'replaced', blocks)
}
// The median of all blocks, and their mean: now and then one holds a collection of garbage, or the work of others.
const each = [...spent].map(([part, all]) => {
  const mean = all.reduce((sum, ms) => sum + ms, 0) / all.length
  return [part, { median: all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)], mean }]
})
process.stdout.write(JSON.stringify(Object.fromEntries(each)))
