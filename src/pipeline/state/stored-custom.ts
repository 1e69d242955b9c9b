import { type CustomState, packTable, type SourceId, Table, unpackTable } from '#model'

/*
 * Two fields per MetricSource beside those of the cluster: what moves with every collection, and the rows, which often stay
 * as they are. A field that is gone is a source that is gone.
 */
const HEAD = 'custom:'
const ROWS = 'rows:'

type Custom = ReadonlyMap<SourceId, CustomState>
const NONE: Custom = new Map()

/** Fields that differ; undefined: it is to be deleted. */
export function* changedCustomFields(
  before: Custom = NONE,
  after: Custom,
): Generator<readonly [field: string, text: string | undefined]> {
  if (before === after) return
  for (const [source, state] of after) {
    const old = before.get(source)
    if (old === state) continue
    const { rows, ...head } = state
    yield [HEAD + source, JSON.stringify(head)]
    if (rows !== old?.rows) yield [ROWS + source, JSON.stringify(packTable(rows))]
  }
  for (const source of before.keys()) {
    if (after.has(source)) continue
    yield [HEAD + source, undefined]
    yield [ROWS + source, undefined]
  }
}

/**
 * Every source of the fields. `before` lends the rows that are not among them.
 * @throws where a source has no rows, or something else
 */
export function customOf(fields: Readonly<Record<string, string>>, before: Custom = NONE): Custom {
  const custom = new Map<SourceId, CustomState>()
  for (const [field, text] of Object.entries(fields)) {
    if (!field.startsWith(HEAD)) continue
    const source = field.slice(HEAD.length)
    // Written by changedCustomFields.
    const head = JSON.parse(text) as Omit<CustomState, 'rows'>
    custom.set(source, { ...head, rows: rowsOf(fields[ROWS + source], before.get(source)?.rows) })
  }
  return custom
}

function rowsOf(text: string | undefined, before: Table | undefined): Table {
  const rows = text === undefined ? before : unpackTable(JSON.parse(text))
  // A head without its rows must not look like an empty collection: what is stored is broken.
  if (!rows) throw new Error('rows are missing')
  return rows.size === 0 && rows.fields.length === 0 ? Table.empty : rows
}
