import type { Table } from '#model'

/** Rows of one kind of a cluster at one moment, and what is measured of them, which is kept apart. */
export interface RowsAt {
  readonly rows: Table
  /** empty: nothing is */
  readonly measured: Table
}

/** Rows that differ between two moments, or whose measurements do: one that changed is in both. */
export interface MovedRows {
  readonly before: Table
  readonly now: Table
}

export const isAt = (one: RowsAt, other: RowsAt): boolean => one.rows === other.rows && one.measured === other.measured

/** Nothing is looked at but the chunks that are others. */
export function movedRows(older: RowsAt, newer: RowsAt): MovedRows {
  const { changed, before, added, removed } = newer.rows.changes(older.rows)
  const measured = measuredNames(older.measured, newer.measured)
  return {
    before: older.rows.only(rising([before, removed, placesIn(older.rows, measured)])),
    now: newer.rows.only(rising([changed, added, placesIn(newer.rows, measured)])),
  }
}

type RowName = readonly [namespace: string, name: string]

function measuredNames(older: Table, newer: Table): readonly RowName[] {
  if (older === newer) return []
  const { changed, added, removed } = newer.changes(older)
  const named = (table: Table) => (place: number) => [table.namespaceAt(place), table.nameAt(place)] as const
  return [...changed.map(named(newer)), ...added.map(named(newer)), ...removed.map(named(older))]
}

const placesIn = (table: Table, names: readonly RowName[]): readonly number[] =>
  names.map(([namespace, name]) => table.indexOf(namespace, name)).filter((place) => place >= 0)

const rising = (lists: readonly (readonly number[])[]): readonly number[] =>
  [...new Set(lists.flat())].sort((left, right) => left - right)
