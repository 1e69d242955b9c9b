import { type Authority, AuthorityUnusableError, type Root } from '#authority'
import { againAfter, type Informer, type Outcome, type Reconciler } from '#controller'
import type { KubeClient, KubeObject, ObjectKey, Resource } from '#kube'
import type { Clock } from '#model'
import type { Logger } from '#runtime'

export const configMaps: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
}

const ANNOTATIONS = {
  /** asked by people: any text that was not there before lets a new CA take over */
  rotate: 'clusterpulse.io/rotate',
  /** answered: the text that was obeyed last */
  rotated: 'clusterpulse.io/rotated',
  /** asked by people: the id of a CA that shall be trusted no longer */
  end: 'clusterpulse.io/end-authority',
  /** answered: why something that was asked was not done */
  trouble: 'clusterpulse.io/trouble',
} as const

/** The longest wait, for what changes without an event, ms. */
const LOOK_AGAIN_MS = 3_600_000

/** What was done to the CAs of members, as people asked by an annotation. */
export interface AuthorityAct {
  readonly act: 'authority_rotated' | 'authority_ended'
  /** of the CA that is new, or ended */
  readonly id: string
}

export interface PublishedOptions {
  readonly hub: KubeClient
  readonly configMaps: Pick<Informer<KubeObject>, 'get'>
  readonly authority: Authority
  /** hears of it once it is done */
  readonly onAct?: ((act: AuthorityAct) => void) | undefined
  /** until a new CA signs, ms: so long others may take to hear of it; default: that of the authority */
  readonly activeAfterMs?: number
  readonly clock: Clock
  readonly logger: Logger
}

/** Keeps the ConfigMap that says which CAs there are, and does what people ask of them by annotating it. */
export class PublishedAuthority implements Reconciler {
  readonly name = 'hub-authority'
  readonly #options: PublishedOptions
  /** what was obeyed last: the informer may not have seen yet that we said so */
  #obeyed: string | undefined

  constructor(options: PublishedOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const { authority, hub, activeAfterMs, onAct } = this.#options
    const asked = this.#options.configMaps.get(key)?.metadata.annotations ?? {}
    const troubles: string[] = []
    const { [ANNOTATIONS.rotate]: rotate, [ANNOTATIONS.rotated]: rotated, [ANNOTATIONS.end]: end } = asked
    if (rotate && rotate !== rotated && rotate !== this.#obeyed) {
      this.#obeyed = rotate
      await attempt(async () => {
        const next = await authority.rotate({ ...(activeAfterMs !== undefined && { activeAfterMs }) })
        onAct?.({ act: 'authority_rotated', id: idOf(next) })
      }, troubles)
    }
    if (end && authority.roots().some((root) => idOf(root) === end)) await attempt(() => this.#end(end), troubles)
    const annotations = {
      ...(rotate && { [ANNOTATIONS.rotated]: rotate }),
      ...(troubles.length > 0 && { [ANNOTATIONS.trouble]: troubles.join('; ') }),
    }
    const metadata = { name: key.name, ...(Object.keys(annotations).length > 0 && { annotations }) }
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: this.#data() }
    await hub.patch(configMaps, key, body, {
      kind: 'apply',
      fieldManager: 'clusterpulse-authority',
      force: true,
      signal,
    })
    return againAfter(this.#untilNextMs())
  }

  async #end(id: string): Promise<void> {
    const root = this.#options.authority.roots().find((one) => idOf(one) === id)
    if (!root) return
    await this.#options.authority.end(root.id)
    this.#options.onAct?.({ act: 'authority_ended', id })
  }

  /** A CA begins to sign, and a former one leaves, by the clock alone. */
  #untilNextMs(): number {
    const nowMs = this.#options.clock.now()
    const times = this.#options.authority
      .roots()
      .flatMap((root) =>
        root.state === 'next' ? [root.activeFromMs] : root.state === 'former' ? [root.signedUntilMs + 1] : [],
      )
    return Math.max(1, Math.min(LOOK_AGAIN_MS, ...times.map((ms) => ms - nowMs)))
  }

  #data(): Readonly<Record<string, string>> {
    const roots = this.#options.authority.roots()
    return { 'ca.crt': roots.map(({ pem }) => pem).join(''), authorities: roots.map(line).join('') }
  }
}

/** What the authority refuses is said, and not tried again. */
async function attempt(work: () => Promise<unknown>, troubles: string[]): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AuthorityUnusableError)) throw error
    troubles.push(error.message)
  }
}

/** As people are shown it. */
const idOf = ({ id }: Root): string => id.slice(0, 16)

function line(root: Root): string {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 16)
  const says = {
    next: `signs from ${new Date(root.activeFromMs).toISOString()} on`,
    active: 'signs',
    former: `signs no more; all it signed has ended by ${day(root.signedUntilMs)}`,
  }
  return `${idOf(root)} ${says[root.state]}; ends ${day(root.endsMs)}\n`
}
