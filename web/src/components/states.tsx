import { IconAlertTriangle, IconLock, IconRefresh } from '@tabler/icons-react'
import { Component, type ErrorInfo, type ReactNode } from 'react'
import type { ApiProblem } from '../contract.ts'
import { NotLoaded } from './lazy-view.ts'
import { Jointed } from './name.tsx'

/** Nothing to show, why, and what to do about it. */
export function Empty({ title, children, icon }: { title: string; children?: ReactNode; icon?: ReactNode }): ReactNode {
  return (
    <div className="state">
      {icon}
      <p className="state-title">{title}</p>
      {children && <div className="state-text">{children}</div>}
    </div>
  )
}

/** What went wrong, in the words and with the numbers that support asks for. */
export function Failure({
  problem,
  onRetry,
  title = 'The hub did not answer as it should',
  children,
}: {
  problem: ApiProblem
  onRetry: () => void
  title?: string
  children?: ReactNode
}): ReactNode {
  return (
    <div className="state is-error" role="alert">
      <IconAlertTriangle size={28} aria-hidden="true" />
      <p className="state-title">{title}</p>
      <div className="state-text">
        <p>
          <Jointed text={problem.message} />
        </p>
        {children}
        <p className="codes">
          <code>{problem.code}</code>
          {problem.status > 0 && <code>HTTP {problem.status}</code>}
          {problem.requestId && <code>request {problem.requestId}</code>}
        </p>
        <button type="button" className="button is-primary" onClick={onRetry}>
          <IconRefresh size={16} aria-hidden="true" /> Retry now
        </button>
      </div>
    </div>
  )
}

export function Refused({
  status,
  problem,
  user,
  onRetry,
}: {
  status: number
  problem?: ApiProblem | undefined
  user?: string | undefined
  onRetry: () => void
}): ReactNode {
  // Without the hub's own words it was not the hub that refused, but a proxy that knows nobody any more.
  const known = status === 403 && problem?.code !== 'no_answer'
  return (
    <main id="main" className="page">
      <div className="state">
        <IconLock size={32} aria-hidden="true" />
        <h1 className="state-title">{known ? 'You may not see this fleet' : 'Sign in to see the fleet'}</h1>
        <div className="state-text">
          <p>
            {known
              ? `${user ? `You are known as ${user}, but no` : 'No'} policy admits you. Ask whoever runs this hub for access.`
              : 'Your sign-in is missing or has expired. Sign in through the address that protects this hub, then load the page again.'}
          </p>
          {problem && (
            <p className="codes">
              <span>{problem.message}</span> <code>{problem.code}</code>
              {problem.requestId && <code>request {problem.requestId}</code>}
            </p>
          )}
          <button type="button" className="button is-primary" onClick={onRetry}>
            <IconRefresh size={16} aria-hidden="true" /> {known ? 'Try again' : 'Load again'}
          </button>
        </div>
      </div>
    </main>
  )
}

/** The shape of what will come. */
export function Skeleton({ lines = 8, label }: { lines?: number; label: string }): ReactNode {
  return (
    <div className="skeleton" role="status">
      <span className="vh">{label}</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have nothing but their place
        <span key={line} className="skeleton-line" />
      ))}
    </div>
  )
}

interface BoundaryProps {
  readonly view: string
  readonly children: ReactNode
}

/** One broken view leaves the rest standing. */
export class ErrorBoundary extends Component<BoundaryProps, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null }

  static getDerivedStateFromError(cause: unknown): { failed: Error } {
    return { failed: cause instanceof Error ? cause : new Error(String(cause)) }
  }

  override componentDidCatch(cause: Error, { componentStack }: ErrorInfo): void {
    console.error('view failed', this.props.view, cause, componentStack)
  }

  override render(): ReactNode {
    const { failed } = this.state
    if (!failed) return this.props.children
    if (failed instanceof NotLoaded) return <NotSent report={`${this.props.view}: ${failed.message}`} />
    return (
      <div className="state is-error" role="alert">
        <IconAlertTriangle size={28} aria-hidden="true" />
        <p className="state-title">This view failed</p>
        <div className="state-text">
          <p>The rest of the page still works. For a report:</p>
          <pre className="report">{`${this.props.view}: ${failed.name}: ${failed.message}`}</pre>
          <button type="button" className="button is-primary" onClick={() => this.setState({ failed: null })}>
            Show it again
          </button>
        </div>
      </div>
    )
  }
}

function NotSent({ report }: { report: string }): ReactNode {
  return (
    <div className="state is-error" role="alert">
      <IconAlertTriangle size={28} aria-hidden="true" />
      <p className="state-title">This view could not be loaded</p>
      <div className="state-text">
        <p>The hub did not send its script: it may be away, or another version since this page was opened.</p>
        <pre className="report">{report}</pre>
        <button type="button" className="button is-primary" onClick={() => window.location.reload()}>
          <IconRefresh size={16} aria-hidden="true" /> Load the page again
        </button>
      </div>
    </div>
  )
}
