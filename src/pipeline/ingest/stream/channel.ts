import type { Effects } from './effects.ts'
import type { Identity } from './identity.ts'
import type { InFlight } from './in-flight.ts'
import type { OpenStream } from './open-stream.ts'
import type { StreamRate } from './rate.ts'
import type { Farewell, Payload, SessionWorld } from './session-events.ts'

/** What the channels of one registered stream share. */
export interface ChannelContext {
  readonly world: SessionWorld
  readonly identity: Identity
  readonly stream: OpenStream
  readonly effects: Effects
  readonly inFlight: InFlight
  readonly rate: StreamRate
  end(farewell: Farewell): void
}

/** One subject that an agent and the hub speak of on a stream. */
export interface Channel {
  /** A message whose bytes it knows without decoding the envelope. @returns false: it is to be decoded */
  read?(bytes: Uint8Array, now: number): boolean
  /** @param bytes size of the message @returns false: it is not of this channel */
  take(payload: Payload, bytes: number, now: number): boolean
  /** What waits to be sent goes out. */
  flush?(): void
  /** The stream takes nothing more: what waits for its turn is dropped. */
  leave?(): void
}

/** The first live batch of a stream that is safe is news. */
export function delivered({ stream, effects }: ChannelContext): void {
  if (stream.delivered()) effects.add({ kind: 'facts', now: true })
}
