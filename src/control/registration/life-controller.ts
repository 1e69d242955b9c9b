import { Controller, type ControllerOptions } from '#controller'
import type { EventBus } from '#events'
import type { ClusterState } from '#model'
import { apiAnswerOf } from './availability.ts'
import type { Authorities } from './certificate-life.ts'
import type { Presence } from './presence.ts'

type Events = Pick<EventBus, 'subscribe'>

/** Hears of clusters as long as it works, and notices where it could not. */
export class LifeController extends Controller {
  readonly #events: Events
  readonly #heard: (clusters: Iterable<string>) => void
  readonly #presence: Pick<Presence, 'watch'>
  readonly #authorities: Authorities | undefined
  readonly #trusted: () => void
  #unfollow: (() => void) | undefined
  #subscription: ReturnType<Events['subscribe']> | undefined
  #watch: { readonly end: AbortController; readonly ended: Promise<void> } | undefined

  constructor(
    options: ControllerOptions,
    more: {
      readonly events: Events
      readonly heard: (clusters: Iterable<string>) => void
      readonly presence: Pick<Presence, 'watch'>
      readonly authorities: Authorities | undefined
      /** told when others are trusted */
      readonly trusted: () => void
    },
  ) {
    super(options)
    this.#events = more.events
    this.#heard = more.heard
    this.#presence = more.presence
    this.#authorities = more.authorities
    this.#trusted = more.trusted
  }

  override start(): void {
    this.#subscription ??= this.#events.subscribe((events) =>
      this.#heard(new Set(events.flatMap(({ change }) => (change.kind === 'cluster' ? [change.cluster] : [])))),
    )
    this.#unfollow ??= this.#authorities?.onChange(this.#trusted)
    if (!this.#watch) {
      const end = new AbortController()
      this.#watch = { end, ended: this.#presence.watch(end.signal) }
    }
    super.start()
  }

  override async stop(): Promise<void> {
    await this.#subscription?.[Symbol.asyncDispose]()
    this.#subscription = undefined
    this.#unfollow?.()
    this.#unfollow = undefined
    this.#watch?.end.abort()
    await this.#watch?.ended
    this.#watch = undefined
    await super.stop()
  }
}

/** What of a cluster's state must not wait: whether its agent is there and alone, its API server answers it or why not, and what it claims. */
export function signOf(state: ClusterState | undefined): string {
  if (!state?.agent) return ''
  const { connected, since, reason } = state.agent
  const claims = state.parts.cluster?.items.get('cluster')?.claims
  return JSON.stringify([connected, connected ? reason : since, apiAnswerOf(state), claims])
}
