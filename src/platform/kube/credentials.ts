import { readFile } from 'node:fs/promises'
import type { Clock } from '#model'
import { KubeError } from './errors.ts'
import { runExecPlugin } from './exec.ts'
import type { ClusterAccess } from './types.ts'

/** What lets us in: a header, a client certificate, or both. */
export interface Credential {
  readonly authorization?: string
  readonly certificate?: { readonly cert: string; readonly key: string }
}

/** Where a client has its credential from, renewed as it ages. */
export interface CredentialSource {
  get(signal?: AbortSignal): Promise<Credential>
  /** The server refused what `get` gave: forget it. @returns whether asking again may give another. */
  refuse(): boolean
}

const TOKEN_FILE_MAX_AGE_MS = 60_000
/** An exec credential is renewed this long before it expires. */
const EXPIRY_MARGIN_MS = 10_000

export function credentialSource(access: ClusterAccess, clock: Clock): CredentialSource {
  const { credentials } = access
  switch (credentials.kind) {
    case 'none':
      return fixed({})
    case 'token':
      return fixed({ authorization: `Bearer ${credentials.token}` })
    case 'basic': {
      const text = `${credentials.username}:${credentials.password}`
      return fixed({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
    }
    case 'certificate':
      return fixed({ certificate: { cert: credentials.cert, key: credentials.key } })
    case 'tokenFile':
      return cached(clock, async () => ({
        credential: { authorization: `Bearer ${await readToken(credentials.path)}` },
        until: clock.now() + TOKEN_FILE_MAX_AGE_MS,
      }))
    case 'exec':
      return cached(clock, async () => {
        const { expiresAt, ...credential } = await runExecPlugin(credentials, access)
        return { credential, until: expiresAt === undefined ? Number.POSITIVE_INFINITY : expiresAt - EXPIRY_MARGIN_MS }
      })
  }
}

function fixed(credential: Credential): CredentialSource {
  return { get: async () => credential, refuse: () => false }
}

interface Obtained {
  readonly credential: Credential
  readonly until: number
}

/** Calls at the same time share one renewal; a failed one is not kept. */
function cached(clock: Clock, obtain: () => Promise<Obtained>): CredentialSource {
  let kept: Obtained | undefined
  let renewal: Promise<Obtained> | undefined
  const renew = async () => {
    try {
      kept = await obtain()
      return kept
    } finally {
      renewal = undefined
    }
  }
  return {
    async get(signal) {
      if (kept && clock.now() < kept.until) return kept.credential
      renewal ??= renew()
      const { credential } = await orAborted(renewal, signal)
      return credential
    },
    refuse() {
      kept = undefined
      return true
    },
  }
}

async function readToken(path: string): Promise<string> {
  let text: string
  try {
    text = (await readFile(path, 'utf8')).trim()
  } catch (cause) {
    throw new KubeError('unauthorized', `the token file ${path} cannot be read; check that it exists and is readable`, {
      cause,
    })
  }
  if (text === '') throw new KubeError('unauthorized', `the token file ${path} is empty`)
  return text
}

/** Waits for the work, but no longer than the signal; the work itself goes on for the others. */
export function orAborted<T>(work: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (!signal) return work
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
