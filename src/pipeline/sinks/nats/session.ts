import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { connectNats, NATS_ANSWERS_WITHIN_MS } from '#nats'
import type { OutboundGuard } from '#outbound'
import type { NatsPlan } from './plan.ts'
import { type StreamFacts, streamFacts } from './stream.ts'

/** Of a server that does not say it. */
const USUAL_MAX_BYTES = 2 ** 20

/** A connection of which the stream was looked at. */
export interface NatsSession {
  readonly connection: NatsConnection
  readonly client: JetStreamClient
  readonly manager: JetStreamManager
  /** as it was looked at last */
  readonly stream: StreamFacts
  /** Looks at the stream again: its limits may be others now. @throws SinkError, or what the library says */
  look(): Promise<void>
  /** bytes of a message with its headers that server and stream take */
  readonly maxBytes: number
}

/** Connects to the first server that answers. @throws SinkError, or what the library says of the last one */
export async function openSession(plan: NatsPlan, guard: OutboundGuard, signal: AbortSignal): Promise<NatsSession> {
  const connection = await firstOf(plan, guard, signal)
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: NATS_ANSWERS_WITHIN_MS })
    let stream = await streamFacts(manager, plan)
    return {
      ...{ connection, client: jetstream(connection), manager },
      get stream() {
        return stream
      },
      async look() {
        stream = await streamFacts(manager, plan)
      },
      get maxBytes() {
        const said: unknown = connection.info?.max_payload // by the server, which may say anything
        return Math.min(
          typeof said === 'number' && said > 0 ? said : USUAL_MAX_BYTES,
          stream.maxMessageBytes ?? Number.POSITIVE_INFINITY,
        )
      },
    }
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function firstOf(plan: NatsPlan, guard: OutboundGuard, signal: AbortSignal): Promise<NatsConnection> {
  let last: unknown
  for (const server of plan.servers) {
    try {
      return await connectNats(server, plan.access, guard, signal)
    } catch (error) {
      signal.throwIfAborted()
      last = error
    }
  }
  throw last
}
