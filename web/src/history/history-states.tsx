import { IconHistoryOff, IconLock } from '@tabler/icons-react'
import { type ReactNode, useCallback } from 'react'
import { Empty, Failure } from '../components/states.tsx'
import { Age } from '../components/text.tsx'
import type { ApiProblem } from '../contract.ts'
import { useHub } from '../live/hooks.ts'
import { useAnswer } from '../live/use-answer.ts'
import { Link, whyPath } from '../router.tsx'
import { pictureOf, spanGroups } from './picture.ts'
import type { Bounds } from './range.ts'
import { askHistory, type Subject } from './use-history.ts'

/** Why there is no picture: off, refused, gone, a wrong range and a backend that is down are five answers. */
export function NoPicture({
  problem,
  subject: { cluster, type },
  onRetry,
  onReset,
}: {
  problem: ApiProblem
  subject: Subject
  onRetry: () => void
  onReset: () => void
}): ReactNode {
  const codes = (
    <p className="codes">
      <code>{problem.code}</code>
      <code>HTTP {problem.status}</code>
      {problem.requestId && <code>request {problem.requestId}</code>}
    </p>
  )
  if (problem.status === 501) {
    return (
      <Empty title="This hub keeps no history" icon={<IconHistoryOff size={30} aria-hidden="true" />}>
        <p>{problem.message}</p>
        <p>Charts begin with the moment in which whoever runs it turns history on.</p>
        {codes}
      </Empty>
    )
  }
  if (problem.status === 401 || problem.status === 403) {
    return (
      <Empty title="You may not see this history" icon={<IconLock size={30} aria-hidden="true" />}>
        <p>{problem.message}</p>
        {problem.code === 'history_filtered' && (
          <p>
            {type
              ? 'These are numbers over all rows in the cluster, and your access shows you only some of them.'
              : 'These are sums over everything in the cluster, and your access shows you only part of it.'}
          </p>
        )}
        {codes}
        <Link to={whyPath({ cluster, action: 'view_metrics', ...(type && { type: type.name }) })} className="button">
          Why?
        </Link>
      </Empty>
    )
  }
  if (problem.status === 404) {
    return (
      <Empty
        title="There is no history of this that you may see"
        icon={<IconHistoryOff size={30} aria-hidden="true" />}
      >
        <p>{problem.message}</p>
        {codes}
      </Empty>
    )
  }
  if (problem.status === 400) {
    return (
      <Empty title="This range cannot be shown" icon={<IconHistoryOff size={30} aria-hidden="true" />}>
        <p>{problem.message}</p>
        {codes}
        <button type="button" className="button is-primary" onClick={onReset}>
          Show the usual range
        </button>
      </Empty>
    )
  }
  return <Failure problem={problem} onRetry={onRetry} title={failureTitle(problem.status)} />
}

const failureTitle = (status: number): string => {
  if (status === 0) return 'The hub cannot be reached'
  if (status === 504) return 'History took too long to answer'
  return status === 502 || status === 503 ? 'History cannot answer now' : 'The history could not be loaded'
}

/** @param lost what is known to have been lost meanwhile; null: nothing */
const noneAtAll = (lost: string | null): string =>
  lost === null
    ? 'No samples yet at all: collection has not begun, or nothing was kept in the last 30 days.'
    : `No samples at all in the last 30 days. Lost: ${lost}.`

const probeStepMs = 2 * 3_600_000

/** Nothing in this range; where there is something, it says where. */
export function NoSamples({
  subject,
  metrics,
  isFilling,
  onShow,
}: {
  subject: Subject
  metrics: readonly string[]
  /** more of the past is on its way */
  isFilling: boolean
  onShow: (bounds: Bounds) => void
}): ReactNode {
  const { client } = useHub()
  const metric = metrics.join(',')
  const ask = useCallback(
    async (signal: AbortSignal) => {
      const query = { metric: metric.split(','), range: '30d', step: probeStepMs / 1000 }
      const picture = pictureOf(await askHistory(client, subject, query, signal))
      const known = picture.times.filter((_, index) =>
        [...picture.columns.values()].some((values) => (values[index] ?? null) !== null),
      )
      const lost = spanGroups(picture).find(({ kind }) => kind === 'lost')
      return { first: known[0] ?? null, last: known.at(-1) ?? null, to: picture.to, lost: lost?.text ?? null }
    },
    [client, subject, metric],
  )
  const [answer] = useAnswer(ask)
  const found = answer.state === 'here' ? answer.value : null
  return (
    <Empty title="No samples in this range" icon={<IconHistoryOff size={30} aria-hidden="true" />}>
      {answer.state === 'waiting' && <p>Looking for the nearest…</p>}
      {answer.state === 'failed' && (
        <p>Whether there are some elsewhere could not be asked: {answer.problem.message}</p>
      )}
      {isFilling && <p>The past is being filled, the newest first; what belongs here appears by itself.</p>}
      {found && found.first === null && !isFilling && <p>{noneAtAll(found.lost)}</p>}
      {found?.first != null && found.last != null && (
        <>
          <p>
            Collection began <Age at={found.first} suffix=" ago" focusable /> as far as this hub remembers; the newest
            samples are <Age at={found.last} suffix=" old" focusable />, give or take two hours.
          </p>
          <button
            type="button"
            className="button is-primary"
            onClick={() =>
              onShow({
                from: Math.max(found.first ?? 0, (found.last ?? 0) - 12 * probeStepMs),
                to: Math.min((found.last ?? 0) + probeStepMs, found.to),
              })
            }
          >
            Show the newest
          </button>
        </>
      )}
    </Empty>
  )
}
