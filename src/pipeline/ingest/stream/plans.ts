import { encodePlan } from '#wire'
import type { ChannelContext } from './channel.ts'

/** What the agent is to collect: sent when it comes, and whenever it differs. */
export class Plans {
  readonly #context: ChannelContext
  #sent: string | undefined

  constructor(context: ChannelContext) {
    this.#context = context
  }

  send() {
    const { world, stream, effects } = this.#context
    const { peer, protocol } = stream.registered
    const plan = world.planOf(peer.cluster)
    if (!plan || plan.version === this.#sent) return
    const isFirst = this.#sent === undefined
    this.#sent = plan.version
    if (protocol !== 'original')
      return effects.send({ case: 'plan', value: { version: plan.version, json: encodePlan(plan) } })
    // An original takes a message without sources for "none", and gets none where there are none from the beginning.
    if (isFirst && plan.sources.length === 0) return
    const encoder = new TextEncoder()
    const sources = plan.sources.map((source) => encoder.encode(JSON.stringify(source)))
    effects.send({ case: 'config', value: { metricSourcesJson: sources, defaultIntervalSeconds: 0 } })
  }
}
