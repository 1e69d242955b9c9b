import type { Presented } from './presented.ts'

/** What happens on a line to a peer, for whoever serves it. */
export interface LineSubscriber {
  /** one that `allow` let through */
  message(bytes: Uint8Array): void
  /** the peer sends nothing more, and may still read */
  finished(): void
  /** after a `write` that returned false: more may be written */
  drained(): void
  /** whoever holds the connection stops: the stream is to end soon, and well */
  stopping(): void
  /**
   * Last of all: nothing reaches the peer any more.
   * @param why the hub ended it, for people; '': the peer or the network did
   * @param silentMs where that is because nothing was heard: for how long; else 0
   */
  closed(why: string, silentMs: number): void
}

/** One stream of a peer, as far as serving it goes: a call that came here, or one that came to another of our processes. */
export interface Line {
  /** from now on these are told; those before are told nothing more */
  subscribe(subscriber: LineSubscriber): void
  /** one more message may come; that of a newcomer, whose stream is not registered, is small */
  allow(by: 'newcomer' | 'member'): void
  /** @returns false: the peer is slow; `drained` says when it has read */
  write(message: Uint8Array): boolean
  /** ends the stream with a status of gRPC once all is written; a peer that does not let it end is cut off */
  end(status: number, details: string): void
}

/** A stream that came, and what the end of its connection saw of it. */
export interface Arrival {
  readonly line: Line
  /** such as 127.0.0.1:4711 */
  readonly peer: string
  readonly presented: Presented
  /** ms since the Unix epoch */
  readonly since: number
}
