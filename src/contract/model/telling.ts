import type { SourceId } from './rows.ts'

/**
 * What a column says of namespaces besides that of its row, of which policies may hide some.
 *
 *   namespaces   names of them, with commas between
 *   object       `namespace/name`; a name alone is of what is in no namespace
 *   else         a text about objects, or a number of them, in the namespaces that another column names
 */
export type Telling = 'namespaces' | 'object' | NamedElsewhere

/** Where it is said in which namespaces objects are that a column speaks of. What is not known there may be any. */
export interface NamedElsewhere {
  /** rows of which table of the cluster, in the namespace of the row; null: the row itself */
  readonly source: SourceId | null
  /** their column that names namespaces, with commas between */
  readonly column: string
  /** rows of that table count, too, that are in no namespace */
  readonly withCluster: boolean
}
