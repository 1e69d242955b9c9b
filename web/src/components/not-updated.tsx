import { IconAlertTriangle } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { ApiProblem } from '../contract.ts'

/** What is shown is from before: the last look brought no answer. */
export function NotUpdated({ problem, onRetry }: { problem: ApiProblem | null; onRetry: () => void }): ReactNode {
  if (!problem) return null
  return (
    <p className="notice is-degraded" role="status">
      <IconAlertTriangle size={18} aria-hidden="true" />
      <span>
        <b>Not updated.</b> {problem.message} <code>{problem.code}</code>{' '}
        <button type="button" className="text-button" onClick={onRetry}>
          Retry
        </button>
      </span>
    </p>
  )
}
