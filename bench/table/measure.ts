/*
 * node --expose-gc measure.ts MODULE CLASS ROWS STEPS: what rows cost in one process. The class is a Table, or the CustomRows of a
 * former build under its own names of the same things. Times are CPU of the process in ms, each of one step.
 */
import type { TableColumns, TableRow } from '#model'
import { fields, hex, mixed, pod } from './pods.ts'

/** Rows as both have them. */
interface Rows {
  readonly size: number
  row(place: number): TableRow
  column(field: string): unknown
}
interface Kind {
  of(fields: readonly string[], rows: Iterable<TableRow>): Rows
  from(columns: TableColumns): Rows | undefined
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

function keptBytes(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** As they come from a store or the wire: every text anew. In a function of its own, so that nothing else holds on to them. */
function read(kind: Kind, text: string): Rows {
  const columns = JSON.parse(text) as TableColumns
  const shared = new Map<string, TableColumns['labels'][number]>()
  const labels = columns.labels.map((one) => {
    const key = JSON.stringify(one)
    const known = shared.get(key) ?? one
    shared.set(key, known)
    return known
  })
  const rows = kind.from({ ...columns, labels })
  if (!rows) throw new Error('these are columns')
  return rows
}

function columnsText(count: number): string {
  const pods = Array.from({ length: count }, (_, i) => pod(i))
  const columns: TableColumns = {
    fields,
    namespaces: pods.map(({ namespace }) => namespace),
    names: pods.map(({ name }) => name),
    labels: pods.map(({ labels }) => labels),
    values: fields.map((field) => pods.map(({ values }) => values[field] ?? null)),
  }
  return JSON.stringify(columns)
}

async function main([module = '', name = '', rows = '', steps = '']: readonly string[]): Promise<void> {
  const kind = ((await import(module)) as Readonly<Record<string, Kind>>)[name] as Kind
  const isTable = name === 'Table'
  // biome-ignore lint/suspicious/noExplicitAny: two classes with other names for the same
  const patch = (on: any, put: Rows, gone: readonly string[]): Rows => on[isTable ? 'patch' : 'patched'](put, gone)
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const diff = (now: any, older: Rows) => now[isTable ? 'diff' : 'since'](older)
  const text = columnsText(Number(rows))
  const empty = keptBytes()
  let table = read(kind, text)
  const bytes = (keptBytes() - empty) / table.size
  const chosen = Array.from({ length: Number(steps) }, (_, i) => mixed(i) % table.size)
  const run = (change: (row: TableRow, turn: number) => TableRow, removes: boolean) => {
    // The first quarter warms up.
    const warm = Math.floor(chosen.length / 4)
    const puts = chosen.map((place, turn) => {
      const row = table.row(place)
      const id = `${row.namespace}/${row.name}`
      return { put: kind.of(fields, [change(row, turn)]), gone: removes ? [id] : [] }
    })
    const states = [table]
    const step = ({ put, gone }: (typeof puts)[number]) => states.push(patch(states.at(-1), put, gone))
    for (const one of puts.slice(0, warm)) step(one)
    const patchMs = cpuMs(() => puts.slice(warm).forEach(step)) / (puts.length - warm)
    const differ = (i: number) => void diff(states[i + 1], states[i] as Rows)
    for (let i = 0; i < warm; i++) differ(i)
    const differAll = () => {
      for (let i = warm; i < puts.length; i++) differ(i)
    }
    const diffMs = cpuMs(differAll) / (puts.length - warm)
    table = states.at(-1) as Rows
    return { patchMs, diffMs }
  }
  const changed = run(
    (row, turn) => ({
      ...row,
      values: { ...row.values, restarts: turn % 9, cpuCores: turn / 8, node: `worker-${turn % 1000}` },
    }),
    false,
  )
  const replaced = run((row, turn) => ({ ...row, name: `${row.name.slice(0, -5)}${hex(turn, 5)}` }), true)
  const scanned = fields.map((field) => table.column(field) as ((place: number) => unknown) | readonly unknown[])
  const scan = () => {
    let there = 0
    for (const column of scanned) {
      if (typeof column === 'function') {
        for (let place = 0; place < table.size; place++) if (column(place) !== null) there++
      } else for (let place = 0; place < table.size; place++) if (column[place] !== null) there++
    }
    return there
  }
  scan()
  const scanMs = cpuMs(() => Array.from({ length: 20 }, scan)) / 20 / fields.length
  process.stdout.write(JSON.stringify({ bytes, changed, replaced, scanMs }))
}

await main(process.argv.slice(2))
