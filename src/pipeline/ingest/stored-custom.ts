import { type Batch, type CustomPart, type PackedTable, packTable, type Table, unpackTable } from '#model'

type Packed<T> = Omit<T, 'rows' | 'put'> & { readonly rows?: PackedTable; readonly put?: PackedTable }
/** A CustomPart whose rows are plain JSON: a Table has none. */
export type StoredCustom = Packed<CustomPart>

export function storedCustom(part: CustomPart): StoredCustom {
  if (part.outcome === 'complete') return { ...part, rows: packTable(part.rows) }
  if (part.outcome === 'changed') return { ...part, put: packTable(part.put) }
  return part
}

/** What storedCustom gave, after JSON. @throws where it is nothing of the sort */
export function customOf(stored: StoredCustom): CustomPart {
  const { rows, put, ...part } = stored
  const made = { ...part, ...(rows && { rows: unpacked(rows) }), ...(put && { put: unpacked(put) }) }
  // It was a CustomPart; only its rows were something else.
  return made as CustomPart
}

function unpacked(packed: PackedTable): Table {
  const rows = unpackTable(packed)
  if (!rows) throw new Error('these are no rows of a source')
  return rows
}

/** A batch that JSON can tell. */
export type PlainBatch = Omit<Batch, 'custom'> & { readonly custom?: readonly StoredCustom[] }

export const plainBatch = ({ custom, ...batch }: Batch): PlainBatch =>
  custom ? { ...batch, custom: custom.map(storedCustom) } : batch

/** What plainBatch gave, after JSON. @throws where its rows are none */
export const batchOf = ({ custom, ...batch }: PlainBatch): Batch =>
  custom ? { ...batch, custom: custom.map(customOf) } : batch
