import {
  type Chunk,
  Column,
  columnAt,
  columnOfOne,
  type JsonValue,
  type Keys,
  type ScalarValue,
  scalarOf,
} from '#model'
import { RefusedError } from './problem.ts'
import type { VisibleType } from './visible-types.ts'

/** A column of a type as people name it, chunk by chunk. */
export interface RowColumn {
  /** of one and the same column for as long as its values are the same */
  of(chunk: Chunk): Column
  /** as it is compared and shown */
  read(value: JsonValue): ScalarValue
  /** equal words: `read` does the same */
  readonly reading: string
}

const isScalar = (value: JsonValue): boolean => typeof value !== 'object' || value === null

/** What can be compared and shown: items of a list with commas, of an object its JSON. */
export const textOf = (value: JsonValue): ScalarValue =>
  Array.isArray(value) && value.every(isScalar) ? value.join(', ') || null : scalarOf(value)

const asText = { read: textOf, reading: '' }
const nothing = columnOfOne<JsonValue>(null)
const nameColumns = new WeakMap<Keys, Column>()

function namesOf({ keys }: Chunk): Column {
  const known = nameColumns.get(keys) ?? new Column<JsonValue>(keys.names, null, null)
  nameColumns.set(keys, known)
  return known
}

/** @throws RefusedError `invalid_parameter` with the columns there are */
export function columnOf({ source, cluster, rows }: VisibleType, name: string): RowColumn {
  if (name === 'name')
    return { of: namesOf, read: (value) => source.rowName(String(value)), reading: `name of ${source.id}` }
  if (name === 'cluster') {
    const own = columnOfOne<JsonValue>(cluster.name)
    return { of: () => own, ...asText }
  }
  if (name === 'namespace') return { of: ({ keys }) => keys.namespaces as Column, ...asText } // of texts
  const at = rows.fields.indexOf(name)
  if (at >= 0) return { of: (chunk) => columnAt(chunk, at), ...asText }
  const columns = source.columns.map((column) => column.name)
  if (columns.includes(name)) return { of: () => nothing, ...asText } // declared, and not collected yet
  const known = ['name', 'namespace', 'cluster', ...columns].join(', ')
  throw new RefusedError('invalid_parameter', `there is no column ${JSON.stringify(name.slice(0, 80))}: use ${known}`)
}
