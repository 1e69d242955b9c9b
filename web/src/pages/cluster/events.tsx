import { type ReactNode, useCallback, useMemo } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Jointed, WithNames } from '../../components/name.tsx'
import { type Column, ResourceTable, type TableView } from '../../components/resource-table.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { Age } from '../../components/text.tsx'
import { useNarrow } from '../../components/use-media.ts'
import { usePrinting } from '../../components/use-printing.ts'
import type { ClusterView, EventView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useDisplayName, useHub, useLive } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { type EventLine, eventLine } from '../../model/events.ts'
import { displayNameExport } from '../../model/export-columns.ts'
import { noneOf } from './part.tsx'

const columns: readonly Column<EventLine>[] = [
  {
    id: 'when',
    header: 'When',
    width: 96,
    kind: 'time',
    descendingFirst: true,
    value: ({ at }) => at,
    cell: ({ at }) => <Age at={at} suffix=" ago" />,
  },
  {
    id: 'what',
    header: 'What',
    value: ({ text }) => text,
    exports: [
      { id: 'cluster', header: 'Cluster', value: ({ cluster }) => cluster },
      { id: 'what', header: 'What', value: ({ text }) => text },
    ],
    cell: ({ need, text, detail }) => (
      <span className="event-line">
        <HealthMark need={need} bare word="" />
        <span className="clip" data-tip={detail || text}>
          <WithNames text={text} />
        </span>
      </span>
    ),
  },
  {
    id: 'type',
    header: 'Type',
    width: 190,
    value: ({ type }) => type,
    cell: ({ type }) => <span className="mono">{type}</span>,
  },
]

/** Where there is little room a sentence takes the lines it needs. */
const EventList = ({ rows, gone }: TableView<EventLine>): ReactNode => (
  <ol className="event-list">
    {rows
      .filter(({ key }) => !gone.has(key))
      .map(({ key, need, text, detail, at, type }) => (
        <li key={key}>
          <HealthMark need={need} bare word="" />
          <span {...(detail !== '' && { 'data-tip': detail, tabIndex: 0 })}>
            <Jointed text={text} />
          </span>
          <span className="fine">
            <Age at={at} suffix=" ago" /> <span className="mono">{type}</span>
          </span>
        </li>
      ))}
  </ol>
)

const wordsOf = ({ text, type }: EventLine) => `${text} ${type}`
const keyOf = ({ key }: EventLine) => key

/** What happened to one cluster: the last hundred events the hub remembers, and those that come while you look. */
export function EventsTab({ cluster }: { cluster: ClusterView }): ReactNode {
  const { client } = useHub()
  const called = useDisplayName()
  const isNarrow = useNarrow()
  const isPrinting = usePrinting()
  const { name } = cluster
  const ask = useCallback((signal: AbortSignal) => client.events(name, { limit: 100 }, signal), [client, name])
  const [answer, again] = useAnswer(ask)
  const heard = useLive((live) => live.fleet.events)
  const lines = useMemo(() => {
    const mine = heard.filter((event) => event.cluster === name)
    const told: readonly EventView[] = answer.state === 'here' ? answer.value.items : []
    const shown = newestFirst(mine, told).filter(({ type }) => type !== 'cluster.reconciled')
    return new Map(shown.map(eventLine).map((line) => [line.key, line]))
  }, [heard, answer, name])
  if (answer.state === 'waiting') return <Skeleton label="Loading events" />
  if (answer.state === 'failed')
    return <Failure problem={answer.problem} onRetry={again} title="The events could not be loaded" />
  return (
    <ResourceTable
      caption={`Events of ${name}`}
      id="events"
      noun="events"
      rows={lines}
      columns={columns}
      words={wordsOf}
      rowKey={keyOf}
      sort="when"
      example="type:* when<1h words"
      instead={isNarrow && !isPrinting ? EventList : undefined}
      empty={noneOf('events', cluster, 'events')}
      alsoExported={[displayNameExport(called)]}
    />
  )
}
