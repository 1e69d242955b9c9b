import { IconAlertTriangle } from '@tabler/icons-react'
import { type ReactNode, useEffect, useId, useRef, useSyncExternalStore } from 'react'
import { createPortal } from 'react-dom'
import type { ApiProblem } from '../contract.ts'
import { useUnheard } from '../live/hooks.ts'
import { useNoteOld } from '../live/unanswered.ts'
import { beginningSentence } from '../model/format.ts'
import { Notices } from '../model/notices.ts'
import { Age } from './text.tsx'

const notices = new Notices()

/** Of what lies over the lower edge of the page. */
export const afloatId = 'afloat'

/**
 * What is shown is from before: the last look brought no answer. One cause is told once, whatever on the page it is the cause of,
 * and not where the banner tells it already. It comes and goes by itself, so it lies over the lower edge of the page and moves nothing.
 */
export function NotUpdated({
  problem,
  asOf = null,
  inPlace = false,
  onRetry,
}: {
  problem: ApiProblem | null
  /** of when what is shown is, where that is known, ms */
  asOf?: number | null
  /** it stands where it is said: in what lies over the page itself, or where nothing is below it */
  inPlace?: boolean
  onRetry: () => void
}): ReactNode {
  const id = useId()
  const retry = useRef(onRetry)
  retry.current = onRetry
  const isTold = useUnheard() !== null && problem?.status === 0
  const cause = problem && !isTold ? `${problem.code} ${problem.message}` : null
  useEffect(() => (cause === null ? undefined : notices.add(id, cause, () => retry.current())), [id, cause])
  useNoteOld(cause !== null)
  const isFirst = useSyncExternalStore(notices.subscribe, () => notices.isFirst(id))
  if (!problem || cause === null || !isFirst) return null
  const afloat = inPlace ? null : document.getElementById(afloatId)
  const notice = (
    <p className="notice is-degraded" {...(!afloat && { role: 'status' })}>
      <IconAlertTriangle size={18} aria-hidden="true" />
      <span>
        <b>Not updated.</b> {beginningSentence(problem.message)} <code>{problem.code}</code>.{' '}
        {asOf !== null && (
          <>
            All of it is as of <Age at={asOf} suffix=" ago" />.{' '}
          </>
        )}
        <button type="button" className="text-button" onClick={() => notices.retry(cause)}>
          Retry
        </button>
      </span>
    </p>
  )
  return afloat ? createPortal(notice, afloat) : notice
}
