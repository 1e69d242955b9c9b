import type { Presented } from '../line/presented.ts'

/*
 * Between the process a stream came to (its front) and the one that owns its cluster. Streams are numbered by the front.
 *
 *   front                                  owner
 *     open, with the first message ──────▶ a session, as if the call were its own
 *     ◀──────────────────────── more       one more message may come
 *     message ───────────────────────────▶
 *     ◀───────────────────── message       for the peer
 *     read ──────────────────────────────▶ so much of that has left
 *     ◀───────────────────────── end       the status for the peer
 *     closed ────────────────────────────▶ last of all
 *
 * Why it is so: docs/spec/wire.md, section 9.
 */

export type ToOwner =
  | { readonly kind: 'open'; readonly stream: number; readonly peer: string; readonly presented: Presented }
  | { readonly kind: 'message'; readonly stream: number }
  /** the peer sends nothing more */
  | { readonly kind: 'finished'; readonly stream: number }
  /** so many bytes for the peer have left */
  | { readonly kind: 'read'; readonly stream: number; readonly bytes: number }
  /** the front stops */
  | { readonly kind: 'stopping'; readonly stream: number }
  /** nothing reaches the peer any more: see `LineSubscriber` */
  | { readonly kind: 'closed'; readonly stream: number; readonly why: string; readonly silentMs: number }
  /** asked: only whether it answers; of no stream */
  | { readonly kind: 'alive'; readonly stream: 0 }

export type ToFront =
  | { readonly kind: 'more'; readonly stream: number }
  | { readonly kind: 'message'; readonly stream: number }
  | { readonly kind: 'end'; readonly stream: number; readonly status: number; readonly details: string }

/** Bytes for the peer of one stream that have not left, beyond which its session waits. */
export const UNREAD_BYTES = 256 * 1024
/** So many of them are confirmed at once. */
export const CONFIRMED_BYTES = 64 * 1024

export const GREETING_BYTES = 64

/** Said first on a socket: who means another owner or another division, or is none of us, is heard no further. */
export const greetingTo = (index: number, of: number): Buffer =>
  Buffer.from(`clusterpulse relay 1, to owner ${index} of ${of}\n`.padStart(GREETING_BYTES))
