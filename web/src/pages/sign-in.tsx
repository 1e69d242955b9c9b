import '../styles/access.css'
import { IconLogin2 } from '@tabler/icons-react'
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import type { ApiProblem, SessionView } from '../contract.ts'
import { useAtTime, useHub } from '../live/hooks.ts'
import { problemOf } from '../live/problem.ts'
import { formatCountdown } from '../model/format.ts'
import { hrefOf, setQuery, usePlace } from '../router.tsx'

interface SignInProps {
  readonly methods: SessionView['signIn']
  /** somebody was signed in on this page until now */
  readonly ended: boolean
}

const refusedParameter = 'sign_in'
const refusals: Readonly<Record<string, string>> = {
  sign_in_failed: 'The identity provider did not sign you in, or it took longer than ten minutes.',
  identity_unavailable: 'The identity provider does not answer.',
}

/** Stands in the place of every page while nobody is signed in; the address stays, so that signing in leads back to it. */
export function SignIn({ methods, ended }: SignInProps): ReactNode {
  const providers = methods.filter(({ method }) => method === 'oidc')
  const password = methods.find(({ method }) => method === 'password')
  const { client } = useHub()
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = 'Sign in · ClusterPulse'
    if (ended) heading.current?.focus()
  }, [ended])
  // The hub sends a browser back with the code of what went wrong at the provider; it is told once, and leaves the address.
  const [refused] = useState(() => new URLSearchParams(window.location.search).get(refusedParameter))
  useEffect(() => {
    if (refused !== null) setQuery({ [refusedParameter]: null })
  }, [refused])
  const { path, query } = usePlace()
  const returnTo = hrefOf(query === '' ? path : `${path}?${query}`)
  return (
    <main id="main" className="page" tabIndex={-1}>
      <div className="sign-in">
        <h1 ref={heading} tabIndex={-1}>
          {ended ? 'Your session has ended' : 'Sign in to see the fleet'}
        </h1>
        <p className="sign-in-lead">
          {ended
            ? 'Nothing that was shown is kept. Sign in again and you are back where you were.'
            : 'What you see depends on who you are.'}
        </p>
        {refused !== null && (
          <div className="sign-in-problem" role="alert">
            <p>{refusals[refused] ?? 'Signing in did not succeed.'} Try again.</p>
          </div>
        )}
        {providers.map(({ title }) => (
          <a key={title} className="button is-primary" href={client.signInUrl(returnTo)}>
            <IconLogin2 size={17} aria-hidden="true" /> Sign in with {title}
          </a>
        ))}
        {providers.length > 0 && password && <p className="sign-in-or">or</p>}
        {password && <PasswordForm title={password.title} first={providers.length === 0 && !ended} />}
      </div>
    </main>
  )
}

function PasswordForm({ title, first }: { title: string; first: boolean }): ReactNode {
  const { client, store } = useHub()
  const id = useId()
  const [name, setName] = useState('')
  const [word, setWord] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<ApiProblem | null>(null)
  const [againAt, setAgainAt] = useState(0)
  const wait = useAtTime((now) => (againAt > now ? formatCountdown(againAt - now + 999) : ''))
  const field = useRef<HTMLInputElement>(null)
  const start = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (first) start.current?.focus()
  }, [first])
  const send = (event: FormEvent) => {
    event.preventDefault()
    if (busy || wait) return
    setBusy(true)
    setProblem(null)
    client.signIn(name, word).then(
      // Loaded anew: nothing of whoever looked before is kept.
      () => window.location.reload(),
      (cause: unknown) => {
        const refused = problemOf(cause)
        setBusy(false)
        setProblem(refused)
        setWord('')
        if (refused.code === 'sign_in_throttled')
          setAgainAt(store.clock.now() + (refused.retryAfterSeconds ?? 30) * 1000)
        field.current?.focus()
      },
    )
  }
  return (
    <form className="sign-in-form" onSubmit={send} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      <label htmlFor={`${id}-name`}>
        User name
        <input
          id={`${id}-name`}
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          required
          maxLength={256}
          ref={start}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label htmlFor={`${id}-word`}>
        Password
        <input
          id={`${id}-word`}
          ref={field}
          type="password"
          autoComplete="current-password"
          required
          maxLength={1024}
          value={word}
          aria-describedby={`${id}-problem`}
          aria-invalid={problem !== null}
          onChange={(event) => setWord(event.target.value)}
        />
      </label>
      <div id={`${id}-problem`} className="sign-in-problem" role="alert">
        {problem && <Refusal problem={problem} />}
      </div>
      <button type="submit" className="button is-primary" disabled={busy || wait !== ''}>
        {busy ? 'Signing in…' : wait ? `Try again in ${wait}` : 'Sign in'}
      </button>
    </form>
  )
}

function Refusal({ problem }: { problem: ApiProblem }): ReactNode {
  switch (problem.code) {
    case 'sign_in_failed':
      return <p>User name or password is wrong.</p>
    case 'sign_in_throttled':
      return (
        <p>There were too many tries. Nobody can sign in this way for a while; the right password would not help.</p>
      )
    case 'no_answer':
      return <p>The hub does not answer. Try again in a moment.</p>
    default:
      return (
        <p>
          {problem.message} <code>{problem.code}</code>
          {problem.requestId && <code> request {problem.requestId}</code>}
        </p>
      )
  }
}
