import { Controller, type ControllerOptions } from '#controller'
import type { EventBus } from '#events'
import type { ClusterState } from '#model'

type Events = Pick<EventBus, 'subscribe'>

/** Hears of clusters as long as it works. */
export class LifeController extends Controller {
  readonly #events: Events
  readonly #heard: (clusters: Iterable<string>) => void
  #subscription: ReturnType<Events['subscribe']> | undefined

  constructor(events: Events, heard: (clusters: Iterable<string>) => void, options: ControllerOptions) {
    super(options)
    this.#events = events
    this.#heard = heard
  }

  override start(): void {
    this.#subscription ??= this.#events.subscribe((events) =>
      this.#heard(new Set(events.flatMap(({ change }) => (change.kind === 'cluster' ? [change.cluster] : [])))),
    )
    super.start()
  }

  override async stop(): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]()
    this.#subscription = undefined
    await super.stop()
  }
}

/** What of a cluster's state must not wait: whether its agent is there and alone, its API server answers it, and what it claims. */
export function signOf(state: ClusterState | undefined): string {
  if (!state?.agent) return ''
  const { connected, since, reason } = state.agent
  const answers = Object.values(state.parts).some(({ outcome }) => outcome !== 'unreachable')
  const claims = state.parts.cluster?.items.get('cluster')?.claims
  return JSON.stringify([connected, connected ? reason : since, answers, claims])
}
