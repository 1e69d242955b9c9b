import { setTimeout } from 'node:timers/promises'
import { FleetError } from '#model'
import { decodeResponse, encodeRequest, type RequestInit } from '#wire'
import type { Transport } from '../types.ts'

/** What the hub answered in the end, or why there was no answer. */
export type Answer =
  | { readonly kind: 'joined'; readonly certificate: string; readonly roots: string }
  /** nothing but a person, or another token, changes it */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  /** asking again may bring more */
  | { readonly kind: 'later'; readonly message: string; readonly retryAfterMs: number }

type JoinMessage = Extract<RequestInit['payload'], { case: 'join' }>['value']

const FINAL = new Set(['join_refused', 'join_denied', 'not_negotiated', 'malformed', 'not_registered'])

/**
 * Asks once and waits as long as the hub lets it. Never throws but when the signal aborts.
 * @param onPending told who must do what
 */
export async function ask(
  transport: Transport,
  message: JoinMessage,
  { onPending, signal }: { onPending: (message: string) => void; signal: AbortSignal },
): Promise<Answer> {
  try {
    await using link = await transport.open(signal)
    const stop = () => void link[Symbol.asyncDispose]()
    signal.addEventListener('abort', stop, { once: true })
    try {
      link.send(encodeRequest({ payload: { case: 'join', value: message } }))
      for await (const bytes of link.messages) {
        const { payload } = decodeResponse(bytes)
        if (payload.case === 'goodbye') {
          const { code, message: why, retryAfterMs } = payload.value
          return FINAL.has(code)
            ? { kind: 'refused', code, message: why }
            : { kind: 'later', message: why, retryAfterMs }
        }
        if (payload.case !== 'joinState') continue
        const { phase, certificate, roots } = payload.value
        if (phase === 'joined') return { kind: 'joined', certificate, roots }
        onPending(payload.value.message)
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
    signal.throwIfAborted()
    return { kind: 'later', message: 'the hub ended the stream', retryAfterMs: 0 }
  } catch (error) {
    signal.throwIfAborted()
    return { kind: 'later', message: FleetError.from(error).message, retryAfterMs: 0 }
  }
}

const [FROM_MS, TO_MS] = [250, 30_000]

/** Waits between two questions: with full jitter, longer each time, and at least as long as the hub said. */
export async function pause(attempt: number, atLeastMs: number, signal: AbortSignal): Promise<void> {
  const ceiling = Math.min(TO_MS, FROM_MS * 2 ** Math.min(attempt, 10))
  await setTimeout(atLeastMs + Math.random() * ceiling, undefined, { signal })
}
