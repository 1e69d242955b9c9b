import type { Freshness, Outcome } from './freshness.ts'
import type { Table } from './table.ts'

/** A value of a field of a MetricSource, or of an aggregation. Numbers are finite; a list or an object was made text (compact JSON) or counted. */
export type ScalarValue = string | number | boolean | null

/** `namespace/name` of a MetricSource; the plural of a kind of row that is compiled in, such as `pods`. */
export type SourceId = string

/** Whether it is of a MetricSource; else it names a kind of row that is compiled in. */
export const isDeclaredSource = (id: SourceId): boolean => id.includes('/')

/** The result of one aggregation: a value, or a value per group. */
export type Aggregated = ScalarValue | Readonly<Record<string, ScalarValue>>

/** How often a field could be read in one collection: of `rows` objects, `missing` had nothing there, `malformed` something that did not fit its type. */
export interface FieldReport {
  readonly field: string
  readonly missing: number
  readonly malformed: number
  /** the first text that did not fit, cut; '' where none */
  readonly example: string
}

/** A namespace, or the list as a whole (namespace ''), that could not be read. */
export interface RowsError {
  readonly namespace: string
  readonly outcome: 'absent' | 'forbidden' | 'unreachable'
  readonly code: string
  readonly message: string
}

/** Code of the errors of a collection that saw a part: its rows are added to those that stood, and none of these is taken as gone. */
export const ROWS_INCOMPLETE = 'incomplete'

/** Whether rows that a collection does not name stay. */
export const keepsRows = ({ errors }: Pick<RowsFacts, 'errors'>): boolean =>
  errors.some(({ code }) => code === ROWS_INCOMPLETE)

const OF_TARGET = /^the target (\S+) is incomplete: /

/** The message of an error with that code: rows of this target are not all known. @param target as the column `target` has it */
export const incompleteMessage = (target: string, why: string): string => `the target ${target} is incomplete: ${why}`

/**
 * The targets of which rows stay that a collection does not name, as the column `target` has them.
 * @returns undefined: any may, as not all of them are named
 */
export function incompleteTargets({
  errors,
  errorCount,
}: Pick<RowsFacts, 'errors' | 'errorCount'>): ReadonlySet<string> | undefined {
  const named = errors.flatMap(({ code, message }) => (code === ROWS_INCOMPLETE ? [OF_TARGET.exec(message)?.[1]] : []))
  if (errorCount > errors.length || named.includes(undefined)) return undefined
  return new Set(named as string[]) // none is missing
}

/** How many errors of namespaces are named; the count tells of all. */
export const ROWS_ERRORS_KEPT = 20

/** What a collection says besides its rows. */
export interface RowsFacts {
  readonly aggregations: Readonly<Record<string, Aggregated>>
  /** rows beyond the limit were left out */
  readonly truncated: boolean
  readonly errors: readonly RowsError[]
  /** of all namespaces that could not be read; `errors` names the first of them */
  readonly errorCount: number
  readonly reports: readonly FieldReport[]
}

/**
 * What one MetricSource saw on one cluster at one time. `complete` replaces all its rows (namespaces that could not be read are
 * named, and their rows are gone), unless an error says `incomplete`: then rows stay of the targets of which that is said; `changed` is a complete collection told as a difference to the
 * batch's `base`.
 * The others replace nothing.
 */
export type RowsPart = {
  readonly source: SourceId
  /** of the definition it was collected by */
  readonly hash: string
  readonly durationMs: number
} & (
  | ({ readonly outcome: 'complete'; readonly rows: Table } & RowsFacts)
  | ({ readonly outcome: 'changed'; readonly put: Table; readonly removed: readonly string[] } & RowsFacts)
  | { readonly outcome: 'absent' | 'forbidden' | 'unreachable'; readonly code: string; readonly message: string }
)

/** What is known now of rows that are kept in this process and read of no list. */
export type RowsRead =
  | ({ readonly outcome: 'complete'; readonly rows: Table } & Pick<RowsFacts, 'truncated' | 'errors' | 'errorCount'>)
  | { readonly outcome: 'absent' | 'forbidden' | 'unreachable'; readonly code: string; readonly message: string }

/** Rows of one kind that are kept in this process, for who tells a hub of them. */
export interface RowFeed {
  /** of a kind that is compiled in */
  readonly source: SourceId
  /** as of now; equal rows are the very same table */
  read(): RowsRead
  /** @param listener hears that something is otherwise; must neither wait nor throw. @returns takes it back */
  onChange(listener: () => void): () => void
}

/** What the hub knows of one MetricSource on one cluster. Rows and facts are those of the last complete collection. */
export interface RowsState extends RowsFacts {
  readonly source: SourceId
  /** of the definition the rows were collected by; where none were yet, of the last one that was tried */
  readonly hash: string
  /** of the definition that failed last, where it is another than that of the rows */
  readonly failedHash?: string
  readonly durationMs: number
  readonly outcome: Outcome
  /** why the last collection was not complete; empty otherwise */
  readonly code: string
  readonly message: string
  /** when the last collection was tried, by the collector's clock */
  readonly attemptedAt: number
  /** null when none was ever complete */
  readonly freshness: Freshness | null
  readonly rows: Table
}
