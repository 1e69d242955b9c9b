import { deflateRawSync } from 'node:zlib'
import type { Batch, BatchView } from '#model'
import { encodeBody, ownOffer, viewOf } from '#wire'
import { type ClientOptions, type Payload, StreamClient } from './clients.ts'

export interface AgentOptions extends ClientOptions {
  readonly cluster?: string
  readonly origin?: string
  /** what its buffer holds */
  readonly pending?: readonly [oldest: number, newest: number]
  /** its clock */
  readonly now?: () => number
}

export const hello = ({
  cluster = 'west',
  origin = 'buffer-1',
  token,
  now = Date.now,
  pending: [oldestSequence, newestSequence] = [0, 0],
}: Partial<AgentOptions>): Payload => ({
  case: 'register',
  value: {
    clusterName: cluster,
    token: token ?? '',
    version: '1.0.0',
    hello: {
      ...ownOffer,
      capabilities: [...ownOffer.capabilities],
      origin,
      nowMs: now(),
      oldestSequence,
      newestSequence,
    },
  },
})

export interface FrameOptions {
  readonly base?: { readonly sequence: number; readonly view: BatchView }
  readonly ageMs?: number
  readonly plain?: boolean
}

export function frame(batch: Batch, { base, ageMs = 0, plain = false }: FrameOptions = {}): Payload {
  const body = encodeBody(batch, base?.view)
  return {
    case: 'frame',
    value: {
      sequence: batch.sequence,
      base: base?.sequence ?? 0,
      backfill: batch.backfill ?? false,
      collectedAtMs: batch.collectedAt,
      ageMs,
      compression: plain ? 0 : 1,
      bodyBytes: body.length,
      body: plain ? body : deflateRawSync(body),
    },
  }
}

/** An agent of ours that has said hello and heard the welcome. */
export class OwnAgent extends StreamClient {
  /** of the last frame that was sent complete or as a difference, by its sequence */
  readonly views = new Map<number, BatchView>()

  static async connect(options: AgentOptions) {
    const agent = new OwnAgent(options)
    agent.send(hello(options))
    const welcome = await agent.next('welcome')
    return { agent, welcome }
  }

  push(batch: Batch, options: Omit<FrameOptions, 'base'> & { readonly base?: number } = {}): void {
    const { base: of, ...rest } = options
    const view = of === undefined ? undefined : this.views.get(of)
    this.views.set(batch.sequence, viewOf(batch))
    this.send(frame(batch, { ...rest, ...(of !== undefined && view && { base: { sequence: of, view } }) }))
  }

  /** until every sequence up to this one was acknowledged */
  async ackedTo(last: number): Promise<void> {
    for (let safe = 0; safe < last; ) {
      const ack = await this.next('ack')
      if (!ack.success) throw new Error(`refused: ${ack.code} ${ack.error}`)
      safe = Math.max(safe, ...ack.received.map((range) => range.last))
    }
  }
}
