import { type ReactNode, useCallback } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { Empty, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { PolicyView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { plural } from '../../model/format.ts'
import { accessPath, clusterPath, Link } from '../../router.tsx'
import { EffectMark, Findings, Refusal, StateMark, useReadAgain } from './parts.tsx'
import { Rules } from './rules.tsx'

/** One policy in words. */
export function PolicyPage({ name }: { name: string }): ReactNode {
  const { client } = useHub()
  const ask = useCallback((signal: AbortSignal) => client.policies(signal), [client])
  const [answer, again] = useAnswer(ask)
  useReadAgain(again)
  if (answer.state === 'waiting') return <Skeleton label="Loading the policy" />
  if (answer.state === 'failed')
    return <Refusal problem={answer.problem} onRetry={again} title="The policy could not be loaded" />
  const place = answer.value.items.findIndex(({ key }) => key === name)
  const policy = answer.value.items[place]
  if (!policy)
    return (
      <Empty title="There is no such policy">
        <p>It may have been taken away since this link was made.</p>
        <Link to={accessPath('policies')} className="button">
          To the policies
        </Link>
      </Empty>
    )
  return <Policy policy={policy} place={place + 1} of={answer.value.items.length} />
}

function Policy({ policy, place, of }: { policy: PolicyView; place: number; of: number }): ReactNode {
  const { findings, rules, effect, defaultAccess, clusters, customTypes } = policy
  return (
    <div className="policy">
      <p className="status-line policy-status">
        <StateMark state={policy.state} />
        <EffectMark effect={effect} />
        <span>
          priority {policy.priority}, looked at as number {place} of {of}
        </span>
        {!policy.enabled && <span className="tag is-warning">▲ switched off</span>}
      </p>
      {policy.state !== 'Active' && policy.message && <p>{policy.message}</p>}
      {findings.length > 0 && (
        <section className="panel" aria-labelledby="findings">
          <h2 id="findings">What its author should know</h2>
          <Findings findings={findings} />
        </section>
      )}
      <div className="policy-parts">
        <section className="panel" aria-labelledby="rules">
          <h2 id="rules">What it says</h2>
          <Rules rules={rules} effect={effect} defaultAccess={defaultAccess} />
        </section>
        <div className="stack">
          <Subjects policy={policy} />
          <section className="panel" aria-labelledby="selects">
            <h2 id="selects">Clusters it selects now</h2>
            {clusters.length === 0 ? (
              <p className="calm">None of the fleet.</p>
            ) : (
              <ul className="tags">
                {clusters.map((cluster) => (
                  <li key={cluster}>
                    <Link className="tag" to={clusterPath(cluster)}>
                      <ClusterName name={cluster} />
                    </Link>
                  </li>
                ))}
              </ul>
            )}
          </section>
          <section className="panel" aria-labelledby="when">
            <h2 id="when">When, and which content</h2>
            <dl className="pairs">
              <Moment name="Valid from" at={policy.notBefore} otherwise="always" />
              <Moment name="Valid until" at={policy.notAfter} otherwise="for ever" />
              <Moment name="In force since" at={policy.compiledAt || null} otherwise="never" />
              <div>
                <dt>Hash</dt>
                <dd className="mono">{policy.hash || <Missing why="it never came into force" focusable />}</dd>
              </div>
              {customTypes.length > 0 && (
                <div>
                  <dt>Types of MetricSources</dt>
                  <dd>{customTypes.join(', ')}</dd>
                </div>
              )}
            </dl>
          </section>
          <p>
            <Link to={`${accessPath('try')}?remove=${encodeURIComponent(policy.key)}`} className="button">
              What would change without it?
            </Link>
          </p>
        </div>
      </div>
    </div>
  )
}

function Subjects({ policy: { users, groups, serviceAccounts } }: { policy: PolicyView }): ReactNode {
  const none = users.length + groups.length + serviceAccounts.length === 0
  const seenPath = (key: 'user' | 'groups', value: string) =>
    `${accessPath('seen')}?${key}=${encodeURIComponent(value)}`
  const lists = [
    { noun: 'user', names: users, to: (name: string) => seenPath('user', name) },
    { noun: 'group', names: groups, to: (name: string) => seenPath('groups', name) },
    { noun: 'service account', names: serviceAccounts, to: null },
  ]
  return (
    <section className="panel" aria-labelledby="subjects">
      <h2 id="subjects">Whom it is about</h2>
      {none && <p className="calm">Nobody.</p>}
      {lists.map(
        ({ noun, names, to }) =>
          names.length > 0 && (
            <div key={noun} className="subjects">
              <h3>{plural(names.length, noun)}</h3>
              <ul className="tags">
                {names.slice(0, 200).map((name) => (
                  <li key={name}>
                    {to ? (
                      <Link className="tag mono" to={to(name)}>
                        {name}
                        <span className="vh">: what does this {noun} see?</span>
                      </Link>
                    ) : (
                      <span className="tag mono">{name}</span>
                    )}
                  </li>
                ))}
                {names.length > 200 && <li className="fine">and {names.length - 200} more</li>}
              </ul>
            </div>
          ),
      )}
    </section>
  )
}

function Moment({ name, at, otherwise }: { name: string; at: string | null; otherwise: string }): ReactNode {
  const time = at === null ? Number.NaN : Date.parse(at)
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {at === null ? (
          otherwise
        ) : Number.isNaN(time) ? (
          <span className="short">▲ {at}</span>
        ) : (
          <>
            <span className="mono">{at}</span>
            {time < Date.now() && (
              <span className="sub">
                <Age at={time} suffix=" ago" />
              </span>
            )}
          </>
        )}
      </dd>
    </div>
  )
}
