import { type Batch, type PackedTable, packTable, type RowsPart, type Table, unpackTable } from '#model'

type Packed<T> = Omit<T, 'rows' | 'put'> & { readonly rows?: PackedTable; readonly put?: PackedTable }
/** A RowsPart whose rows are plain JSON: a Table has none. */
export type StoredRows = Packed<RowsPart>

export function storedRows(part: RowsPart): StoredRows {
  if (part.outcome === 'complete') return { ...part, rows: packTable(part.rows) }
  if (part.outcome === 'changed') return { ...part, put: packTable(part.put) }
  return part
}

/** What storedRows gave, after JSON. @throws where it is nothing of the sort */
export function rowsPartOf(stored: StoredRows): RowsPart {
  const { rows, put, ...part } = stored
  const made = { ...part, ...(rows && { rows: unpacked(rows) }), ...(put && { put: unpacked(put) }) }
  // It was a RowsPart; only its rows were something else.
  return made as RowsPart
}

function unpacked(packed: PackedTable): Table {
  const rows = unpackTable(packed)
  if (!rows) throw new Error('these are no rows of a source')
  return rows
}

/** A batch that JSON can tell. */
export type PlainBatch = Omit<Batch, 'tables'> & { readonly custom?: readonly StoredRows[] }

export const plainBatch = ({ tables, ...batch }: Batch): PlainBatch =>
  tables ? { ...batch, custom: tables.map(storedRows) } : batch

/** What plainBatch gave, after JSON. @throws where its rows are none */
export const batchOf = ({ custom, ...batch }: PlainBatch): Batch =>
  custom ? { ...batch, tables: custom.map(rowsPartOf) } : batch
