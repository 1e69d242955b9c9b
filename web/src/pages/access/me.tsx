import { IconEyeOff } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo } from 'react'
import { ClusterCell } from '../../components/cluster-name.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import type { OwnPoliciesView, PermissionsView } from '../../contract.ts'
import { useDisplayName, useHub } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { filterLines, permissionText, rulesOfDocument } from '../../model/access.ts'
import { displayNameExport } from '../../model/export-columns.ts'
import { formatCount, plural } from '../../model/format.ts'
import { clusterPath, Link, whyPath } from '../../router.tsx'
import { methodWord, useSession } from '../../session.ts'
import { EffectMark, LevelMark, Refusal, StateMark } from './parts.tsx'
import { Rules } from './rules.tsx'

interface Line {
  readonly cluster: string
  readonly level: string
  readonly permissions: readonly string[]
  readonly filters: PermissionsView['clusters'][string]['filters']
}

const columns: readonly Column<Line>[] = [
  {
    id: 'cluster',
    header: 'Cluster',
    width: 260,
    value: ({ cluster }) => cluster,
    cell: ({ cluster }) => <ClusterCell name={cluster} to={clusterPath(cluster)} />,
  },
  {
    id: 'level',
    header: 'Access',
    width: 130,
    value: ({ level }) => level,
    cell: ({ level }) => <LevelMark level={level} />,
  },
  {
    id: 'may',
    header: 'You may',
    width: 250,
    value: ({ permissions }) => permissions,
    exports: [{ id: 'may', header: 'You may', value: ({ permissions }) => permissionText(permissions) }],
    cell: ({ permissions }) => permissionText(permissions),
  },
  {
    id: 'filtered',
    header: 'Shown in part, or not',
    value: ({ filters }) =>
      Object.entries(filters).map(([type, filter]) => `${type}: ${filterLines(filter).join(', ')}`),
    cell: ({ filters }) => <FilterWords filters={filters} />,
  },
  {
    id: 'why',
    header: 'Why',
    width: 110,
    value: () => null,
    exports: [],
    cell: ({ cluster }) => (
      <Link to={whyPath({ cluster })}>
        the reason<span className="vh"> for {cluster}</span>
      </Link>
    ),
  },
]
const nameOf = ({ cluster }: Line) => cluster

function FilterWords({ filters }: Pick<Line, 'filters'>): ReactNode {
  const texts = Object.entries(filters).map(([type, filter]) => `${type}: ${filterLines(filter).join(', ')}`)
  if (texts.length === 0) return <span className="quiet">no filter</span>
  return (
    <span className="clip" data-tip={texts.join('; ')}>
      {texts.join('; ')}
    </span>
  )
}

/** Who I am to this hub, what I may see because of it, and by which policies. */
export function MePage(): ReactNode {
  const { client } = useHub()
  const ask = useCallback(
    (signal: AbortSignal) => Promise.all([client.permissions(signal), client.ownPolicies(signal)]),
    [client],
  )
  const [answer, again] = useAnswer(ask)
  if (answer.state === 'waiting') return <Skeleton label="Loading what you may see" />
  if (answer.state === 'failed')
    return <Refusal problem={answer.problem} onRetry={again} title="What you may see could not be loaded" />
  const [permissions, policies] = answer.value
  return (
    <div className="stack me">
      <Identity permissions={permissions} />
      <Clusters permissions={permissions} />
      <OwnPolicies policies={policies} />
    </div>
  )
}

function Identity({ permissions }: { permissions: PermissionsView }): ReactNode {
  const session = useSession()
  const { user, summary } = permissions
  const method = session?.user?.method
  const administrator = session?.user?.administrator === true
  return (
    <section className="panel" aria-labelledby="identity">
      <h2 id="identity">Who you are</h2>
      <p>
        You are known as <b>{user.username}</b>
        {user.email && ` (${user.email})`}, {user.groups.length > 0 ? `in ${user.groups.join(', ')}` : 'in no group'}
        {method && `, by ${methodWord[method] ?? method}`}.{' '}
        {administrator
          ? 'As an administrator you see everything, whatever policies say.'
          : `You see ${plural(summary.accessible_clusters, 'cluster')}.`}
      </p>
    </section>
  )
}

function Clusters({ permissions }: { permissions: PermissionsView }): ReactNode {
  const called = useDisplayName()
  const wordsOf = useCallback(({ cluster }: Line) => `${cluster} ${called(cluster) ?? ''}`, [called])
  const rows = useMemo(
    () =>
      new Map(
        Object.entries(permissions.clusters).map(
          ([cluster, { access_level, permissions, filters }]): [string, Line] => [
            cluster,
            { cluster, level: access_level, permissions, filters },
          ],
        ),
      ),
    [permissions],
  )
  return (
    <section aria-labelledby="clusters">
      <h2 id="clusters" className="section-title">
        Clusters
      </h2>
      <ResourceTable
        caption="Clusters you may see"
        id="my-access"
        noun={rows.size === 1 ? 'cluster' : 'clusters'}
        rows={rows}
        columns={columns}
        words={wordsOf}
        rowKey={nameOf}
        sort="cluster"
        rowHeight={46}
        alsoExported={[displayNameExport(called)]}
        example="level:* name"
        empty={
          <Empty title="No cluster is shown to you" icon={<IconEyeOff size={30} aria-hidden="true" />}>
            <p>
              No policy in force grants you one. Ask whoever runs this hub, and name your groups as they stand above.
            </p>
          </Empty>
        }
      />
    </section>
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

function OwnPolicies({ policies }: { policies: OwnPoliciesView }): ReactNode {
  const found = policies.policies
  return (
    <section aria-labelledby="own">
      <h2 id="own" className="section-title">
        Policies about you, in the order in which they are looked at{' '}
        <span className="tab-count">{formatCount(found.length)}</span>
      </h2>
      {found.length === 0 ? (
        <p className="panel calm">There is none.</p>
      ) : (
        <ol className="own-policies">
          {found.map((each, place) => {
            const policy = each.policy as Readonly<Record<string, unknown>> // the document as stored
            const name = `${textOf(policy.namespace)}/${textOf(policy.policy_name)}`
            const effect = textOf(policy.effect)
            return (
              <li key={`${name} ${each.source}`} className="panel">
                <details open={found.length === 1}>
                  <summary>
                    <span className="own-place">{place + 1}</span>
                    <span className="mono own-name">{name}</span>
                    <EffectMark effect={effect} />
                    <StateMark state={each.state} />
                    <span className="sub own-source">
                      priority {each.priority}, {sourceText(each.source)}
                    </span>
                  </summary>
                  {each.state !== 'Active' && each.message && <p className="fine">{each.message}</p>}
                  <Rules
                    rules={rulesOfDocument(policy)}
                    effect={effect}
                    defaultAccess={textOf(policy.default_cluster_access)}
                  />
                </details>
              </li>
            )
          })}
        </ol>
      )}
    </section>
  )
}

function sourceText(source: string): string {
  if (source === 'user') return 'names you'
  if (source === 'serviceaccount') return 'names your service account'
  const group = /^group:(.+)$/.exec(source)?.[1]
  return group === undefined ? source : `names your group ${group}`
}
