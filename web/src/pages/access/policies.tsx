import { IconShieldPlus } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo } from 'react'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import type { PolicyView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { countFindings, subjectCount } from '../../model/access.ts'
import { formatCount, plural } from '../../model/format.ts'
import { accessPath, Link, policyPath } from '../../router.tsx'
import { EffectMark, Refusal, StateMark, useReadAgain } from './parts.tsx'

interface Line extends PolicyView {
  /** from 1: the place in the order of evaluation */
  readonly place: number
}

const columns: readonly Column<Line>[] = [
  {
    id: 'policy',
    header: 'Policy',
    value: ({ key }) => key,
    cell: ({ key }) => (
      <span className="mono">
        <RowLink to={policyPath(key)}>{key}</RowLink>
      </span>
    ),
  },
  { id: 'order', header: 'Order', width: 76, align: 'end', kind: 'number', value: ({ place }) => place },
  {
    id: 'state',
    header: 'State',
    width: 118,
    value: ({ state }) => state,
    cell: ({ state, message }) => (
      <span data-tip={message}>
        <StateMark state={state} />
      </span>
    ),
  },
  {
    id: 'effect',
    header: 'Effect',
    width: 92,
    value: ({ effect }) => effect,
    cell: ({ effect }) => <EffectMark effect={effect} />,
  },
  {
    id: 'priority',
    header: 'Priority',
    width: 88,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ priority }) => priority,
  },
  {
    id: 'subjects',
    header: 'Subjects',
    width: 210,
    value: ({ users, groups, serviceAccounts }) => [...users, ...groups, ...serviceAccounts],
    cell: (policy) => (
      <span className="clip" data-tip={[...policy.users, ...policy.groups, ...policy.serviceAccounts].join(', ')}>
        {subjectCount(policy)}
      </span>
    ),
  },
  {
    id: 'clusters',
    header: 'Clusters',
    width: 100,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ clusters }) => clusters.length,
    cell: ({ clusters }) => <span data-tip={clusters.join(', ')}>{formatCount(clusters.length)}</span>,
  },
  {
    id: 'findings',
    header: 'Findings',
    width: 150,
    kind: 'number',
    descendingFirst: true,
    value: ({ findings }) => findings.length,
    exports: [
      { id: 'errors', header: 'Errors', value: ({ findings }) => countFindings(findings).errors },
      { id: 'warnings', header: 'Warnings', value: ({ findings }) => countFindings(findings).warnings },
    ],
    cell: ({ findings }) => <FindingCount findings={findings} />,
  },
  { id: 'hash', header: 'Hash', width: 170, extra: true, value: ({ hash }) => hash },
  { id: 'compiled', header: 'In force since', width: 190, extra: true, value: ({ compiledAt }) => compiledAt },
  { id: 'until', header: 'Valid until', width: 190, extra: true, value: ({ notAfter }) => notAfter },
]

function FindingCount({ findings }: Pick<PolicyView, 'findings'>): ReactNode {
  const { errors, warnings } = countFindings(findings)
  if (errors + warnings === 0) return <span className="quiet">none</span>
  return (
    <span className="short" data-tip={findings.map(({ path, message }) => `${path}: ${message}`).join('\n')}>
      ▲{' '}
      {[errors > 0 && plural(errors, 'error'), warnings > 0 && plural(warnings, 'warning')].filter(Boolean).join(', ')}
    </span>
  )
}

const fields = {
  user: { kind: 'text' as const, read: ({ users }: Line) => users },
  group: { kind: 'text' as const, read: ({ groups }: Line) => groups },
  cluster: { kind: 'text' as const, read: ({ clusters }: Line) => clusters },
  type: { kind: 'text' as const, read: ({ rules }: Line) => rules.flatMap(({ filters }) => Object.keys(filters)) },
}
const keyOf = ({ key }: Line) => key
const wordsOf = ({ key, users, groups }: Line) => `${key} ${users.join(' ')} ${groups.join(' ')}`

/** All policies, in the order in which they are looked at. */
export function PoliciesPage(): ReactNode {
  const { client } = useHub()
  const ask = useCallback((signal: AbortSignal) => client.policies(signal), [client])
  const [answer, again] = useAnswer(ask)
  useReadAgain(again)
  const rows = useMemo(
    () =>
      answer.state === 'here'
        ? new Map(
            answer.value.items.map((policy, index): [string, Line] => [policy.key, { ...policy, place: index + 1 }]),
          )
        : new Map<string, Line>(),
    [answer],
  )
  if (answer.state === 'waiting') return <Skeleton label="Loading the policies" />
  if (answer.state === 'failed')
    return <Refusal problem={answer.problem} onRetry={again} title="The policies could not be loaded" />
  const { generation, semantics } = answer.value
  return (
    <ResourceTable
      caption="Access policies"
      id="policies"
      noun={rows.size === 1 ? 'policy' : 'policies'}
      rows={rows}
      columns={columns}
      fields={fields}
      words={wordsOf}
      rowKey={keyOf}
      sort="order"
      rowHeight={44}
      example="effect:* group:* findings>0"
      dim={({ state }) => state !== 'Active'}
      controls={
        <button type="button" className="button" onClick={again}>
          Read again
        </button>
      }
      note={
        <span className="as-of">
          {semantics} semantics · generation <code>{generation}</code>
        </span>
      }
      empty={
        <Empty title="There is no policy" icon={<IconShieldPlus size={30} aria-hidden="true" />}>
          <p>
            Only administrators see anything. Apply a MonitorAccessPolicy to let others in; see first what it would do.
          </p>
          <Link to={accessPath('try')} className="button">
            Try a change
          </Link>
        </Empty>
      }
    />
  )
}
