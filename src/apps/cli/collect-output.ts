import { createHash } from 'node:crypto'
import { stringify } from 'yaml'
import { canonicalRow, compareRows, type Row } from '#extract'
import { envelope } from '#sinks'
import type { ClusterResult } from './collect-cluster.ts'
import type { CollectFormat } from './collect-words.ts'

/** What one cluster gave, in canonical order. */
export interface Collected {
  readonly cluster: string
  readonly rows: readonly Row[]
  /** every target was read to its end, and every object has its row */
  readonly isComplete: boolean
  /** when reading began, RFC 3339 */
  readonly exportedAt: string
  readonly failure?: string
}

export function collectedOf({ cluster, targets, failure }: ClusterResult, exportedAt: string): Collected {
  const rows = targets.flatMap((target) => target.rows).sort(compareRows)
  const isComplete =
    failure === undefined && targets.every(({ state }) => state === 'collected' || state === 'suspended')
  return { cluster, rows, isComplete, exportedAt, ...(failure !== undefined && { failure }) }
}

/**
 * Rows of clusters as text. ndjson and yaml: rows, each with its cluster; json: one envelope, or a list of them.
 * @param asList several clusters were asked for, however many there are
 */
export function written(format: CollectFormat, clusters: readonly Collected[], asList: boolean): string {
  if (format === 'json') {
    const envelopes = clusters.map(({ rows, isComplete, ...head }) =>
      envelope({ ...head, complete: isComplete }, rows.map(canonicalRow)),
    )
    return asList ? `[${envelopes.join(',\n')}]\n` : `${envelopes.join('\n')}\n`
  }
  const lines = clusters.flatMap(({ cluster, rows }) =>
    rows.map((row) => `{"cluster":${JSON.stringify(cluster)},${canonicalRow(row).slice(1)}`),
  )
  if (format === 'ndjson') return lines.map((line) => `${line}\n`).join('')
  return lines.length === 0
    ? '[]\n'
    : stringify(
        lines.map((line) => JSON.parse(line) as unknown),
        { aliasDuplicateObjects: false, lineWidth: 0 },
      )
}

/** A file name for a cluster: contexts may be called anything. */
export function fileOf(cluster: string, format: CollectFormat): string {
  const safe = cluster
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(0, 100)
  // What was changed might be equal now.
  const mark = safe === cluster ? '' : `-${createHash('sha256').update(cluster).digest('hex').slice(0, 8)}`
  return `${safe}${mark}.${format}`
}
