import { type ReactNode, useState } from 'react'
import { Dialog } from '../../components/dialog.tsx'
import { Jointed, Name } from '../../components/name.tsx'
import { type ApiProblem, FORGET_CERTIFICATE, type MemberDecision, type MemberDecisionsView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { problemOf } from '../../live/problem.ts'
import type { Answer } from '../../live/use-answer.ts'
import { beginningSentence } from '../../model/format.ts'
import type { MemberRequest, Return } from '../../model/members.ts'
import { guidePath, Link } from '../../router.tsx'

/** What is about to be decided: said before it is done. */
export interface Asked {
  readonly decision: MemberDecision
  readonly member: string
  /** of several that wait, the one that is meant */
  readonly request?: string
  /** of that request, what nobody decided yet */
  readonly missing?: MemberRequest['missing']
  /** what is known of who asks, for the one who decides */
  readonly facts?: ReactNode
  /** where it is accepted, now or after it was revoked, and no request waits */
  readonly becomes?: Return
}

interface Words {
  readonly verb: string
  readonly title: string
  /** what it does, sentence by sentence */
  readonly does: readonly string[]
}

const compare = 'Compare the key with the one the agent shows on its machine.'
const monitored = 'From then on it is monitored like every other cluster.'

/** What accepting one without a request does. */
const accepted: Readonly<Record<Return, readonly string[]>> = {
  'comes back': [
    'The cluster gets the rights of its agent back, and is monitored again.',
    'Its agent comes back by itself, within about a minute, with the certificate it has.',
  ],
  'comes back unless revoked': [
    'The cluster gets the rights of its agent back.',
    'Its agent comes back by itself with the certificate it has, unless that was revoked: then it must ask anew.',
  ],
  'must join anew': [
    'The cluster may be a member again, but its certificates stay revoked.',
    'Its machine must join anew, with a new join token.',
  ],
  'must ask anew': [
    'The cluster may be a member again, once its agent has asked anew and that was approved.',
    `On the cluster: ${FORGET_CERTIFICATE}, then restart the agent, which asks with its bootstrap kubeconfig.`,
  ],
  'never joined': [
    'The cluster gets a namespace, and rights in it for its agent; nobody has a certificate for them yet.',
    'A machine becomes this member when it asks with a new join token, and that request is approved.',
  ],
}

function acceptanceOf({ missing = [], becomes }: Asked): readonly string[] {
  if (becomes !== undefined) return accepted[becomes]
  if (missing.length !== 1)
    return [
      'The hub signs a certificate for this key, and gives the cluster a namespace and the rights of its agent in it.',
      `${monitored} ${compare}`,
    ]
  return missing.includes('acceptance')
    ? [
        'The certificate for this key is approved already: the cluster gets a namespace and the rights of its agent in it.',
        `${monitored} ${compare}`,
      ]
    : [
        `The hub signs a certificate for this key; the cluster is accepted already. ${compare}`,
        'Where another machine is this member, two speak for one cluster from now on: the newer stream is served, the other is made to wait.',
      ]
}

function denialOf({ request, missing = [] }: Asked): readonly string[] {
  if (request === undefined)
    return [
      'Its requests are turned down and its membership ends: rights and stream at once. Accepted again, it comes back by itself.',
    ]
  return missing.includes('approval')
    ? ['This request is turned down; the machine behind it gets no certificate. Others stay as they are.']
    : ['This request is turned down: that its certificate was approved counts no more. Others stay as they are.']
}

function wordsOf(asked: Asked): Words {
  const { decision, request } = asked
  switch (decision) {
    case 'accept':
      return { verb: 'Accept', title: 'Accept as a member:', does: acceptanceOf(asked) }
    case 'deny':
      return {
        verb: 'Deny',
        title: request === undefined ? 'Deny:' : 'Deny the request of:',
        does: denialOf(asked),
      }
    case 'revoke':
      return {
        verb: 'Revoke',
        title: 'Revoke for good:',
        does: [
          'No certificate and no token of this cluster counts any more, and its stream ends within seconds.',
          asked.becomes === 'must ask anew'
            ? 'Accepted again, it is a member once its agent has asked anew and that was approved.'
            : 'Accepted again, it must join anew with a new join token.',
        ],
      }
    case 'detach':
      return {
        verb: 'Detach',
        title: 'Detach from the hub:',
        does: [
          'Its add-ons and works are cleaned up in order, then it loses its rights and is no longer monitored.',
          'What cannot be cleaned up because the cluster is away stays on the cluster. Its namespace on the hub stays.',
        ],
      }
  }
}

/** Asks once more, with what it does; carries it out; says what was done, or why not. */
function DecisionDialog({
  asked,
  onClose,
  onDone,
}: {
  asked: Asked
  onClose: () => void
  onDone: (done: readonly string[]) => void
}): ReactNode {
  const { client } = useHub()
  const [state, setState] = useState<{ busy: boolean; problem: ApiProblem | null }>({ busy: false, problem: null })
  const { decision, member, request, facts } = asked
  const { verb, title, does } = wordsOf(asked)
  const carryOut = () => {
    setState({ busy: true, problem: null })
    client.decideMember(member, decision, request === undefined ? {} : { request }).then(
      ({ done }) => onDone(done),
      (cause: unknown) => setState({ busy: false, problem: problemOf(cause) }),
    )
  }
  const { busy, problem } = state
  return (
    <Dialog
      className="decision"
      title={
        <>
          {title} <Name text={member} className="mono" />
        </>
      }
      onClose={onClose}
    >
      {facts}
      {does.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {problem && (
        <div role="alert">
          <p className="short">
            <Jointed text={problem.message} />
          </p>
          <p className="codes">
            <code>{problem.code}</code> {problem.requestId && <code>request {problem.requestId}</code>}
          </p>
        </div>
      )}
      <p className="decision-ways">
        <button
          type="button"
          className={decision === 'accept' ? 'button is-primary' : 'button is-grave'}
          onClick={carryOut}
          disabled={busy}
        >
          {busy ? 'Deciding…' : `${verb} ${member}`}
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </p>
    </Dialog>
  )
}

const either = new Intl.ListFormat('en', { type: 'disjunction' })

/** Which of these decisions whoever looks may not carry out, and what they lack for it. */
export function Lacking({
  decisions,
  of,
  onRetry,
}: {
  decisions: Answer<MemberDecisionsView>
  of: readonly MemberDecision[]
  onRetry: () => void
}): ReactNode {
  if (decisions.state === 'failed')
    return (
      <p className="fine lacking">
        {beginningSentence(decisions.problem.message)}.{' '}
        <button type="button" className="text-button" onClick={onRetry}>
          Retry
        </button>
      </p>
    )
  if (decisions.state !== 'here') return null
  const { may, lacks } = decisions.value
  const missing = of.filter((decision) => !may.includes(decision))
  if (missing.length === 0) return null
  const rights = [...new Set(missing.flatMap((decision) => lacks[decision] ?? []))]
  return (
    <p className="fine lacking">
      You may not {either.format(missing)}. What is missing at the hub’s API:{' '}
      {rights.map((right, place) => (
        <span key={right}>
          {place > 0 && ', '}
          <span className="mono">
            <Jointed text={right} />
          </span>
        </span>
      ))}
      . <Link to={guidePath('members')}>Who may decide</Link>
    </p>
  )
}

/** Buttons that decide, the question before each, and what was done after. */
export function useDecisions(onDecided: () => void): {
  readonly ask: (asked: Asked) => void
  readonly shown: ReactNode
} {
  const [asked, setAsked] = useState<Asked | null>(null)
  const [done, setDone] = useState<readonly string[]>([])
  const ask = (next: Asked) => {
    setDone([])
    setAsked(next)
  }
  const shown = (
    <>
      <div role="status">
        {done.length > 0 && (
          <div className="notice is-done">
            <ul>
              {done.map((line) => (
                <li key={line}>
                  <Jointed text={line} />
                </li>
              ))}
            </ul>
            <button type="button" className="text-button" onClick={() => setDone([])}>
              Dismiss
            </button>
          </div>
        )}
      </div>
      {asked && (
        <DecisionDialog
          asked={asked}
          onClose={() => setAsked(null)}
          onDone={(lines) => {
            setAsked(null)
            setDone(lines)
            onDecided()
          }}
        />
      )}
    </>
  )
  return { ask, shown }
}
