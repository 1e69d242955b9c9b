import { IconLock, IconPlugConnectedX } from '@tabler/icons-react'
import { Fragment, type ReactNode } from 'react'
import { Empty } from '../../components/states.tsx'
import { Age, Cause } from '../../components/text.tsx'
import { type ClusterView, causeIn, type PartView } from '../../contract.ts'
import { partTexts, type ReadType } from '../../model/part-texts.ts'
import { Link, whyPath } from '../../router.tsx'

interface FailedPart {
  readonly type: ReadType
  readonly part: PartView
}

/** One box per cause, however many parts it fails. */
export function PartFailures({ failed }: { failed: readonly FailedPart[] }): ReactNode {
  const causes = new Map<string, [FailedPart, ...FailedPart[]]>()
  for (const each of failed) {
    const { outcome, code, message } = each.part
    // One account lacks all the rights that are missing.
    const key = outcome === 'forbidden' ? outcome : `${code} ${causeIn(message)}`
    const others = causes.get(key)
    if (others) others.push(each)
    else causes.set(key, [each])
  }
  return [...causes].map(([key, parts]) => <PartFailure key={key} parts={parts} />)
}

function PartFailure({ parts }: { parts: readonly [FailedPart, ...FailedPart[]] }): ReactNode {
  const [{ part }] = parts
  const nouns = parts.map(({ type }) => partTexts[type].noun).join(', ')
  const kept = parts.some(({ part }) => part.freshness) ? ` What is shown was read before.` : ''
  if (part.outcome === 'forbidden') {
    return (
      <div className="notice is-degraded">
        <IconLock size={20} aria-hidden="true" />
        <div>
          <p>
            <b>ClusterPulse may not read the {nouns} of this cluster:</b>{' '}
            {[...new Set(parts.map(({ part }) => part.message))].map((message) => (
              <Fragment key={message}>
                <Cause message={message} />{' '}
              </Fragment>
            ))}
            {kept}
          </p>
          <p>Give its account a ClusterRole with {parts.length === 1 ? 'this rule' : 'these rules'}:</p>
          <pre>{parts.map(({ type }) => partTexts[type].grant).join('\n\n')}</pre>
        </div>
      </div>
    )
  }
  return (
    <div className="notice is-unhealthy">
      <IconPlugConnectedX size={20} aria-hidden="true" />
      <p>
        <b>The {nouns} could not be read:</b> <Cause message={part.message} /> <code>{part.code}</code> tried{' '}
        <Age at={part.attemptedAt} suffix=" ago" focusable />; the next round tries again.{kept}
      </p>
    </div>
  )
}

/** Read, and none left. Who sees a part of the cluster is told the way to the reason. */
export const noneOf = (noun: string, { name, filtered }: ClusterView, type: string): ReactNode => (
  <Empty title={filtered ? `No ${noun} are shown to you` : `No ${noun} here`}>
    <p>They were read, and there are none that you may see.</p>
    {filtered && (
      <Link to={whyPath({ cluster: name, type })} className="button">
        Why?
      </Link>
    )}
  </Empty>
)
