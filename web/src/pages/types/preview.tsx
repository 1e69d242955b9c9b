import { IconAlertTriangle, IconInfoCircle } from '@tabler/icons-react'
import { type ReactNode, useMemo } from 'react'
import { ResourceTable } from '../../components/resource-table.tsx'
import { Empty } from '../../components/states.tsx'
import type { SourceTrialView, SourceView, TableRowView } from '../../contract.ts'
import { formatCount, formatPercent, plural } from '../../model/format.ts'
import { rowColumns } from './rows-table.tsx'
import { Tiles } from './tiles.tsx'

type Result = NonNullable<SourceTrialView['result']>

/** What a declaration gives on the chosen cluster. */
export function Preview({
  result,
  source,
  cluster,
  isOld,
}: {
  result: Result
  source: SourceView
  cluster: string
  /** of the text before its last change */
  isOld: boolean
}): ReactNode {
  const rows = useMemo(() => new Map(result.items.map((row) => [row.id, row])), [result.items])
  const columns = useMemo(() => rowColumns(source, () => null), [source])
  const { part } = result
  return (
    <section className={`stack preview${isOld ? ' is-old' : ''}`} aria-label={`What it gives on ${cluster}`}>
      <p className="answer-line" role="status">
        {part.outcome === 'complete'
          ? `${plural(result.total, 'row')} on ${cluster}, read in ${formatCount(result.durationMs)} ms`
          : `${cluster} could not be read`}
        {result.truncated && <span className="short"> · truncated: there are more than the limit</span>}
        {isOld && <span className="short"> · of the text before the last change</span>}
      </p>
      {part.outcome !== 'complete' && (
        <p className="notice is-degraded">
          <IconAlertTriangle size={18} aria-hidden="true" />
          <span>
            <b>{outcomeText[part.outcome]}</b> {part.message} <code>{part.code}</code>
          </span>
        </p>
      )}
      {result.errors.length > 0 && (
        <p className="notice is-degraded">
          <IconAlertTriangle size={18} aria-hidden="true" />
          <span>
            <b>{plural(result.errors.length, 'namespace')} could not be read:</b>{' '}
            {result.errors
              .slice(0, 5)
              .map(({ namespace, message }) => `${namespace || 'all'}: ${message}`)
              .join('; ')}
          </span>
        </p>
      )}
      <Tiles aggregations={source.aggregations} values={result.aggregations} dim={isOld} />
      <Reports result={result} />
      <ResourceTable<TableRowView>
        caption={`Rows of the preview on ${cluster}`}
        id="preview"
        noun={rows.size === 1 ? 'row' : 'rows'}
        rows={rows}
        columns={columns}
        words={wordsOf}
        rowKey={keyOf}
        sort="name"
        rowHeight={36}
        example="words"
        dim={() => isOld}
        note={
          result.total > rows.size && <span className="quiet">the first of {formatCount(result.total)} are shown</span>
        }
        empty={
          <Empty title="No object fits">
            <p>The kind is served, and nothing of it passes namespaces and selector.</p>
          </Empty>
        }
      />
    </section>
  )
}

const outcomeText = {
  complete: '',
  absent: 'The cluster does not serve this kind.',
  forbidden: 'ClusterPulse may not read it there.',
  unreachable: 'The cluster did not answer.',
}
const keyOf = ({ id }: TableRowView) => id
const wordsOf = ({ id, values }: TableRowView) => `${id} ${Object.values(values).join(' ')}`

/** How often each field was found: a path that is wrong shows here first. */
function Reports({ result: { reports, total } }: { result: Result }): ReactNode {
  const odd = reports.filter(({ missing, malformed }) => missing + malformed > 0)
  if (total === 0) return null
  if (odd.length === 0)
    return (
      <p className="fine hit-rates">
        <IconInfoCircle size={14} aria-hidden="true" /> Every field was found in every object.
      </p>
    )
  return (
    <section className="panel" aria-labelledby="reports">
      <h2 id="reports">Fields that were not found everywhere</h2>
      <div className="scroll-x">
        <table className="facts">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Found</th>
              <th scope="col">Missing</th>
              <th scope="col">Not of its type</th>
              <th scope="col">Example</th>
            </tr>
          </thead>
          <tbody>
            {odd.map(({ field, missing, malformed, example }) => {
              const found = Math.max(0, total - missing - malformed)
              return (
                <tr key={field}>
                  <th scope="row" className="mono">
                    {field}
                  </th>
                  <td className={found === 0 ? 'short' : ''}>
                    {found === 0 && '▲ '}
                    {formatPercent(found / total)}
                  </td>
                  <td>{formatCount(missing)}</td>
                  <td className={malformed > 0 ? 'short' : ''}>{formatCount(malformed)}</td>
                  <td>{example && <code>{example}</code>}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}
