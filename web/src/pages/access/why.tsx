import { IconHelpCircle } from '@tabler/icons-react'
import { type FormEvent, type ReactNode, useCallback, useId, useState } from 'react'
import { Empty, Skeleton } from '../../components/states.tsx'
import type { ExplainQuery, ExplanationView } from '../../contract.ts'
import { useClusters, useHub, useLive } from '../../live/hooks.ts'
import { useAnswer } from '../../live/use-answer.ts'
import { answerText, permissionText, selectedBy, skipWord, splitList } from '../../model/access.ts'
import { accessPath, Link, pushQuery, usePlace } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { Field } from './field.tsx'
import { EffectMark, Filters, PolicyName, Refusal, ruleText, VerdictMark } from './parts.tsx'
import { SubjectFields } from './subject-fields.tsx'

const fields = ['cluster', 'action', 'type', 'name', 'namespace', 'as', 'groups'] as const
type Asked = Record<(typeof fields)[number], string>
const types = ['nodes', 'namespaces', 'pods', 'operators', 'alerts', 'events']

const readAsked = (query: string): Asked => {
  const values = new URLSearchParams(query)
  return Object.fromEntries(fields.map((field) => [field, values.get(field) ?? ''])) as Asked // of every field
}

/** The question stands in the address: a link to it is a link to its answer. */
export function WhyPage(): ReactNode {
  const { query } = usePlace()
  const asked = readAsked(query)
  const epoch = useLive((live) => live.fleet.epoch)
  return (
    <div className="why-page">
      <QuestionForm key={query} asked={asked} />
      {asked.cluster === '' ? <NotAsked /> : <Answer key={`${query} ${epoch}`} query={query} />}
    </div>
  )
}

function QuestionForm({ asked }: { asked: Asked }): ReactNode {
  const id = useId()
  const [draft, setDraft] = useState(asked)
  const administrator = useSession()?.user?.administrator === true
  const clusters = useClusters()
  const set = (field: keyof Asked) => (value: string) => setDraft((before) => ({ ...before, [field]: value }))
  const send = (event: FormEvent) => {
    event.preventDefault()
    pushQuery(Object.fromEntries(fields.map((field) => [field, draft[field].trim() || null])))
  }
  return (
    <form className="panel form" onSubmit={send} aria-label="The question">
      <div className="fields">
        <Field
          id={`${id}-cluster`}
          label="Cluster"
          value={draft.cluster}
          onChange={set('cluster')}
          options={[...clusters.keys()]}
          required
        />
        <Field
          id={`${id}-type`}
          label="Type"
          hint="if not the cluster itself"
          value={draft.type}
          onChange={set('type')}
          options={types}
        />
        <Field id={`${id}-name`} label="Name" hint="of one item" value={draft.name} onChange={set('name')} />
        <Field
          id={`${id}-namespace`}
          label="Namespace"
          hint="of that item"
          value={draft.namespace}
          onChange={set('namespace')}
        />
        <label className="field" htmlFor={`${id}-action`}>
          <span className="field-label">To see</span>
          <select id={`${id}-action`} value={draft.action} onChange={(event) => set('action')(event.target.value)}>
            <option value="">that it is there, and its lists</option>
            <option value="view_metrics">its usage and history</option>
          </select>
        </label>
      </div>
      {administrator && (
        <div className="fields">
          <SubjectFields
            user={draft.as}
            groups={draft.groups}
            onUser={set('as')}
            onGroups={set('groups')}
            userLabel="As somebody else"
          />
        </div>
      )}
      <p className="form-end">
        <button type="submit" className="button is-primary">
          Explain
        </button>
      </p>
    </form>
  )
}

const NotAsked = (): ReactNode => (
  <Empty title="Ask about a cluster, or about something in it" icon={<IconHelpCircle size={30} aria-hidden="true" />}>
    <p>The answer names the policy and the rule that decides, and every policy that was passed over.</p>
  </Empty>
)

const questionOf = ({ cluster, action, type, name, namespace, as, groups }: Asked): ExplainQuery => ({
  cluster,
  ...(action === 'view_metrics' && { action }),
  ...(type && { type }),
  ...(name && { name }),
  ...(namespace && { namespace }),
  ...(as && { as }),
  ...(groups && { groups: splitList(groups) }),
})

function Answer({ query }: { query: string }): ReactNode {
  const { client } = useHub()
  const ask = useCallback(
    (signal: AbortSignal) => {
      return client.explain(questionOf(readAsked(query)), signal)
    },
    [client, query],
  )
  const [answer, again] = useAnswer(ask)
  if (answer.state === 'waiting') return <Skeleton label="Asking why" lines={4} />
  if (answer.state === 'here') return <Explanation explanation={answer.value} />
  if (answer.problem.status === 404) return <Unknown cluster={readAsked(query).cluster} />
  return <Refusal problem={answer.problem} onRetry={again} title="This could not be explained" />
}

const Unknown = ({ cluster }: { cluster: string }): ReactNode => (
  <Empty title={`There is no cluster ${cluster}, or you may not see it`}>
    <p>
      The two look the same on purpose: whoever may not see a cluster is not told that it is there. Policies that are
      about you are listed among what you may see; if none of them names this cluster, ask whoever runs this hub.
    </p>
    <Link to={accessPath('me')} className="button">
      What may I see?
    </Link>
  </Empty>
)

function Explanation({ explanation }: { explanation: ExplanationView }): ReactNode {
  const { principal, decidedBy, skipped, filters, item, permissions, reason, result } = explanation
  const session = useSession()
  const self = session?.user?.username === principal.username && session.user.groups.join() === principal.groups.join()
  const { verdict, text } = answerText(explanation, self ? 'You' : principal.username || 'Whoever that is')
  return (
    <section className="stack" aria-label="Explanation">
      <section className="panel answer" aria-labelledby="answer">
        <h2 id="answer" className="vh">
          The answer
        </h2>
        <p className="answer-line" role="status">
          <VerdictMark verdict={verdict}>{text}</VerdictMark>
        </p>
        <p>{item ? `${item.why}${item.shown ? ', if it is there' : ''}. ${reason}.` : `${reason}.`}</p>
        <p className="fine">
          Asked for {self ? 'you, ' : ''}
          <b>{principal.username || 'nobody by name'}</b>
          {principal.groups.length > 0 ? ` in ${principal.groups.join(', ')}` : ', in no group'}
          {principal.administrator && ', an administrator, who sees everything, whatever policies say'}.
        </p>
      </section>
      <div className="answer-parts">
        <section className="panel" aria-labelledby="decided">
          <h2 id="decided">What decides</h2>
          {decidedBy ? (
            <dl className="pairs">
              <div>
                <dt>Policy</dt>
                <dd>
                  <PolicyName name={decidedBy.policy} />
                </dd>
              </div>
              <div>
                <dt>Effect</dt>
                <dd>
                  <EffectMark effect={decidedBy.effect} /> at priority {decidedBy.priority}
                </dd>
              </div>
              <div>
                <dt>Through</dt>
                <dd>
                  {ruleText(decidedBy)}, which selects the cluster {selectedBy(decidedBy.selectedBy)}
                </dd>
              </div>
              <div>
                <dt>Content</dt>
                <dd className="mono" data-tip="Hash of the policy as it is in force">
                  {decidedBy.hash}
                </dd>
              </div>
            </dl>
          ) : (
            <p>
              {principal.administrator
                ? 'No policy: administrators see everything.'
                : 'No policy says anything about it, and what no policy allows is not shown.'}
            </p>
          )}
        </section>
        <section className="panel" aria-labelledby="lets">
          <h2 id="lets">What it lets through</h2>
          {result === 'deny' ? (
            <p>Nothing.</p>
          ) : (
            <>
              <p className="answer-may">May {permissionText(permissions)}.</p>
              <Filters filters={filters} rest="all are shown" />
            </>
          )}
        </section>
      </div>
      <Skipped skipped={skipped} />
      <p className="fine">
        Decided by {explanation.semantics} semantics, policies of generation <code>{explanation.generation}</code>.
      </p>
    </section>
  )
}

function Skipped({ skipped }: { skipped: ExplanationView['skipped'] }): ReactNode {
  return (
    <section className="panel" aria-labelledby="skipped">
      <h2 id="skipped">Passed over</h2>
      {skipped.length === 0 ? (
        <p className="calm">There is no other policy about this person.</p>
      ) : (
        <div className="scroll-x">
          <table className="facts">
            <thead>
              <tr>
                <th scope="col">Policy</th>
                <th scope="col">Effect</th>
                <th scope="col">Priority</th>
                <th scope="col">Why it did not decide</th>
              </tr>
            </thead>
            <tbody>
              {skipped.map(({ policy, effect, priority, why, detail }) => (
                <tr key={policy}>
                  <th scope="row">
                    <PolicyName name={policy} />
                  </th>
                  <td>
                    <EffectMark effect={effect} />
                  </td>
                  <td>{priority}</td>
                  <td>
                    It {skipWord(why)}
                    {detail && <span className="sub">{detail}</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
