import type { Row } from '#extract'
import type { RowKey } from '#sinks'

/** Which target; namespace '' for one of the cluster. */
export interface TargetKey {
  readonly namespace: string
  readonly name: string
}

/** Where targets put their rows, and whoever composes inventories finds them. */
export interface RowSink {
  /** The rows of a target, made when it is first asked for. They count as incomplete until it says otherwise. */
  target(key: TargetKey): TargetRows
}

/** The rows of one target. */
export interface TargetRows {
  readonly size: number
  /** Rows that are new or changed; an equal one changes nothing and wakes nobody. */
  put(rows: Iterable<Row>): void
  /** Rows that are gone; one that is not there changes nothing. */
  remove(keys: Iterable<RowKey>): void
  /** All rows there are: those that are not among them are gone. */
  replace(rows: Iterable<Row>): void
  /**
   * Whether all that the target chooses stands in its rows: its lists were read to their end, its watches live, nothing was refused. While
   * one target of an inventory says no, sinks delete nothing.
   * @param isHindered something is in the way; else what is not complete is being read
   * @param isRead all of its lists were read to their end once, whatever came of single objects; that stays so
   */
  setComplete(isComplete: boolean, isHindered?: boolean, isRead?: boolean): void
  /** Takes the target away with its rows: it is deleted, suspended by a scope, or chooses nothing any more. */
  drop(): void
}
