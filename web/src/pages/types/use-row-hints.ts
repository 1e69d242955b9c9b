import { useEffect, useMemo, useState } from 'react'
import type { Client, ColumnView, SourceView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import type { RowsPage, ShownRow } from '../../live/row-pages.ts'
import type { FieldKind, FilterTarget } from '../../model/filter.ts'
import { commonLabels, fillExample, filterHints } from '../../model/hints.ts'
import { scalarOf } from '../../model/row-values.ts'

/** Some rows of a type, whatever is asked for now. */
interface Sample {
  readonly rows: readonly ShownRow[]
  /** there are no others */
  readonly isWhole: boolean
}

const sampled = 500

interface Asked {
  /** null: of all clusters */
  readonly cluster: string | null
  readonly type: string
  readonly source: string
  readonly info: SourceView
  /** the filter as it was asked */
  readonly text: string
  /** rows that were shown first */
  readonly sample: readonly ShownRow[]
  readonly page: RowsPage | undefined
  /** what was said of terms already */
  readonly faults: readonly string[]
}

/** What the box of a filter says of rows that the hub filters: an example, labels, and what was probably meant where nothing fits. */
export function useRowHints({ cluster, type, source, info, text, sample, page, faults }: Asked) {
  const { client } = useHub()
  const [asked, setAsked] = useState<Sample | null>(null)
  const isEmpty = text !== '' && page?.total === 0
  useEffect(() => {
    if (!isEmpty) return
    const asking = new AbortController()
    void sampleOf(client, { cluster, type, source }, asking.signal).then(setAsked, () => setAsked(null)) // no hint is no harm
    return () => asking.abort()
  }, [client, cluster, type, source, isEmpty])

  const target = useMemo(() => targetOf(info.columns), [info.columns])
  const hints = useMemo(() => {
    if (!isEmpty || !asked) return []
    const all = filterHints(text, target, asked.rows, 'rows', asked.isWhole)
    return all.filter((hint) => !faults.some((fault) => fault.includes(hint.split(/[:\s]/, 1)[0] ?? hint)))
  }, [isEmpty, asked, text, target, faults])
  const [example, labels] = useMemo(
    () => [fillExample(templateOf(info.columns), target, sample), commonLabels(target, sample)],
    [info.columns, target, sample],
  )
  return { example, labels, hints }
}

async function sampleOf(
  client: Client,
  { cluster, type, source }: Pick<Asked, 'cluster' | 'type' | 'source'>,
  signal: AbortSignal,
): Promise<Sample> {
  const query = { limit: sampled, ...(source !== '' && { source }) }
  if (cluster === null) {
    const { items, next } = await client.fleetRows(type, query, signal)
    return { rows: items.map((row) => ({ ...row, rowId: row.id })), isWhole: next === null }
  }
  const { items, next } = await client.customRows(cluster, type, query, signal)
  return { rows: items.map((row) => ({ ...row, cluster, rowId: row.id })), isWhole: next === null }
}

const kindOf = ({ kind, unit }: ColumnView): FieldKind =>
  unit === 'time' ? 'time' : kind === 'number' ? 'number' : 'text'

/** The rows as the filter knows them: by their columns, their labels and all that is written in them. */
function targetOf(columns: readonly ColumnView[]): FilterTarget<ShownRow> {
  const read = (name: string) => (row: ShownRow) => scalarOf(row.values[name])
  return {
    fields: {
      ...Object.fromEntries(columns.map((column) => [column.name, { kind: kindOf(column), read: read(column.name) }])),
      name: { kind: 'text', read: ({ name }) => name },
      namespace: { kind: 'text', read: ({ namespace }) => namespace },
      cluster: { kind: 'text', read: ({ cluster }) => cluster },
    },
    labels: ({ labels }) => labels,
    words: ({ name, namespace, values }) => [name, namespace, ...Object.values(values).map(scalarOf)].join(' '),
  }
}

const amounts = { bytes: '>10Gi', percent: '>80', cores: '>2', seconds: '>1h', time: '<1d', none: '>0' }

/** An example to fill: how well a row is, a label, an amount, a beginning of a name. */
function templateOf(columns: readonly ColumnView[]): string {
  const text =
    columns.find(({ health }) => health !== null) ??
    columns.find(({ kind, unit }) => kind === 'string' && unit !== 'time')
  const amount = columns.find(({ kind }) => kind === 'number')
  return [text && `${text.name}:*`, '*=*', amount && `${amount.name}${amounts[amount.unit]}`, 'name~*']
    .filter(Boolean)
    .join(' ')
}
