import { IconCircleMinus, IconEye, IconEyeOff, IconFilter, IconLock } from '@tabler/icons-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Empty, Failure } from '../../components/states.tsx'
import type { ApiProblem, ExplanationView, FindingView } from '../../contract.ts'
import { useLive } from '../../live/hooks.ts'
import { type FilterView, filterLines, type Verdict } from '../../model/access.ts'
import type { Need } from '../../model/cluster.ts'
import { Link, policyPath } from '../../router.tsx'
import { useSession } from '../../session.ts'

const verdictIcon = { shown: IconEye, part: IconFilter, hidden: IconEyeOff }

/** Shape, word and colour of an answer. */
export function VerdictMark({ verdict, children }: { verdict: Verdict; children: ReactNode }): ReactNode {
  const Icon = verdictIcon[verdict]
  return (
    <span className={`verdict is-${verdict}`}>
      <Icon size={17} aria-hidden="true" />
      <span>{children}</span>
    </span>
  )
}

const levelVerdict: Readonly<Record<string, Verdict>> = { full: 'shown', limited: 'part', none: 'hidden' }
export const LevelMark = ({ level }: { level: string }): ReactNode => (
  <VerdictMark verdict={levelVerdict[level] ?? 'part'}>{level}</VerdictMark>
)

const stateNeed: Readonly<Record<string, Need>> = {
  Active: 'healthy',
  Inactive: 'unknown',
  Expired: 'stale',
  Error: 'unhealthy',
}
export const StateMark = ({ state }: { state: string }): ReactNode => (
  <HealthMark need={stateNeed[state] ?? 'unknown'} word={state || 'not known'} />
)

export function EffectMark({ effect }: { effect: string }): ReactNode {
  const denies = effect !== 'Allow'
  return (
    <span className={`tag effect${denies ? ' is-deny' : ''}`}>
      {denies && <IconCircleMinus size={12} aria-hidden="true" />}
      {effect}
    </span>
  )
}

/** The name of a policy; for administrators it leads to its page. */
export function PolicyName({ name }: { name: string }): ReactNode {
  const administrator = useSession()?.user?.administrator === true
  return administrator ? (
    <Link to={policyPath(name)} className="mono">
      {name}
    </Link>
  ) : (
    <span className="mono">{name}</span>
  )
}

type Decider = NonNullable<ExplanationView['decidedBy']>

/** The rule as people count: from 1. */
export const ruleText = ({ rule }: Decider): string => (rule === null ? 'its default' : `rule ${rule + 1}`)

export function DeciderCell({ decider }: { decider: Decider | null }): ReactNode {
  if (decider === null) return <span className="quiet">no policy grants it</span>
  return (
    <span className="name-cell">
      <PolicyName name={decider.policy} />
      <span className="sub">
        {decider.effect}, {ruleText(decider)}
      </span>
    </span>
  )
}

/** What is let through, type by type. A type that is not named is shown whole. */
export function Filters({
  filters,
  rest,
}: {
  filters: Readonly<Record<string, FilterView>>
  rest?: string
}): ReactNode {
  const entries = Object.entries(filters)
  return (
    <dl className="pairs filters">
      {entries.map(([type, filter]) => (
        <div key={type}>
          <dt>{type}</dt>
          <dd>
            {filterLines(filter).map((line) => (
              <span key={line} className="filter-condition">
                {line}
              </span>
            ))}
          </dd>
        </div>
      ))}
      {rest && (
        <div>
          <dt>{entries.length === 0 ? 'every type' : 'everything else'}</dt>
          <dd>{rest}</dd>
        </div>
      )}
    </dl>
  )
}

export function Findings({ findings }: { findings: readonly (FindingView & { policy?: string })[] }): ReactNode {
  return (
    <ul className="findings">
      {findings.map(({ severity, code, path, message, policy }) => (
        <li key={`${policy ?? ''} ${path} ${code} ${message}`}>
          <HealthMark
            need={severity === 'error' ? 'unhealthy' : 'degraded'}
            word={severity === 'error' ? 'Error' : 'Warning'}
          />
          <div>
            <p>{message}</p>
            <p className="finding-place">
              {policy && <span className="mono">{policy}</span>}
              {path && <code>{path}</code>} <code>{code}</code>
            </p>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** Why there is no answer: kept from you, the policies themselves are away, or something went wrong. */
export function Refusal({
  problem,
  onRetry,
  title,
}: {
  problem: ApiProblem
  onRetry: () => void
  title: string
}): ReactNode {
  if (problem.code === 'policies_unavailable')
    return (
      <Failure problem={problem} onRetry={onRetry} title="The policies cannot be read">
        <p>Nothing is decided, and nothing is shown, until they can.</p>
      </Failure>
    )
  if (problem.status === 403)
    return (
      <Empty title="You may not ask this" icon={<IconLock size={30} aria-hidden="true" />}>
        <p>{problem.message}</p>
        <p className="codes">
          <code>{problem.code}</code>
          {problem.requestId && <code>request {problem.requestId}</code>}
        </p>
      </Empty>
    )
  return <Failure problem={problem} onRetry={onRetry} title={title} />
}

const readAgainMs = 30_000

/** Asks again every half minute while the tab is shown: no stream tells of policies. */
export function useReadAgain(again: () => void): void {
  useAgainOnChange(again)
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) again()
    }, readAgainMs)
    return () => clearInterval(timer)
  }, [again])
}

/** Asks again when what may be seen became another, without throwing away what somebody is writing. */
export function useAgainOnChange(again: () => void): void {
  const epoch = useLive((live) => live.fleet.epoch)
  const before = useRef(epoch)
  useEffect(() => {
    if (before.current === epoch) return
    before.current = epoch
    again()
  }, [epoch, again])
}
