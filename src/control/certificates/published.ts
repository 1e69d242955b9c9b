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

/** How what cannot be signed at all is told in `clusterpulse.io/trouble`. */
export const CANNOT_SIGN = 'members that are approved wait for their certificates: '

const ANNOTATIONS = {
  /** asked by people: any text that was not there before lets a new CA take over */
  rotate: 'clusterpulse.io/rotate',
  /** answered: the text that was obeyed last */
  rotated: 'clusterpulse.io/rotated',
  /** asked by people: the id of a CA that shall be trusted no longer */
  end: 'clusterpulse.io/end-authority',
  /** answered: the id that was ended last */
  ended: 'clusterpulse.io/ended-authority',
  /** answered: why something that was asked was not done, or that a CA is not kept any more */
  trouble: 'clusterpulse.io/trouble',
} as const

/** The longest wait, for what changes without an event, ms. */
const LOOK_AGAIN_MS = 3_600_000

/** What was done to the CAs of members, or was not, as people asked by an annotation; one is made anew where none is kept. */
export interface AuthorityAct {
  readonly act: 'authority_made' | 'authority_rotated' | 'authority_ended'
  /** of the CA that is new, or ended; of what was not done the text of the annotation */
  readonly id: string
  /** why it was not done */
  readonly trouble?: string
}

export interface PublishedOptions {
  readonly hub: KubeClient
  readonly configMaps: Pick<Informer<KubeObject>, 'get'>
  readonly authority: Authority
  /** hears of it once it is done, or cannot be */
  readonly onAct?: ((act: AuthorityAct) => void) | undefined
  /** until a new CA signs, ms: so long others may take to hear of it; default: that of the authority */
  readonly activeAfterMs?: number
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Says in the ConfigMap that the CA cannot be used at all, or no longer: there is no `PublishedAuthority` before it can.
 * @param why undefined: it can be used
 */
export async function sayUnusable(
  hub: KubeClient,
  key: ObjectKey,
  why: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const annotations = why === undefined ? {} : { [ANNOTATIONS.trouble]: CANNOT_SIGN + why }
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: key.name, annotations } }
  await hub.patch(configMaps, key, body, {
    ...{ kind: 'apply', fieldManager: 'clusterpulse-authority-store', force: true, signal },
  })
}

/** Whether a hub in this namespace says that it has, or had, a CA. */
export async function isPublished(hub: KubeClient, key: ObjectKey): Promise<boolean> {
  const map = await hub.get(configMaps, key)
  return Boolean((map?.data as Readonly<Record<string, string>> | undefined)?.['ca.crt'])
}

/** Why nothing can be signed, as the ConfigMap says it; undefined: nothing speaks against it. */
export function unusableIn(map: KubeObject | undefined): string | undefined {
  const trouble = map?.metadata.annotations?.[ANNOTATIONS.trouble]
  return trouble?.startsWith(CANNOT_SIGN) ? trouble.slice(CANNOT_SIGN.length) : undefined
}

/** Keeps the ConfigMap that says which CAs there are, and does what people ask of them by annotating it. */
export class PublishedAuthority implements Reconciler {
  readonly name = 'hub-authority'
  readonly #options: PublishedOptions
  /** what was obeyed last: the informer may not have seen yet that we said so */
  #rotated: string | undefined
  #ended: string | undefined
  /** what was logged and recorded: each is tried again and again, and what is said of it changes with the CAs that there are */
  #refused: readonly string[] | undefined

  constructor(options: PublishedOptions) {
    this.#options = options
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const asked = this.#options.configMaps.get(key)?.metadata.annotations ?? {}
    const { [ANNOTATIONS.rotate]: rotate, [ANNOTATIONS.rotated]: rotated, [ANNOTATIONS.end]: end } = asked
    const refused: Refused[] = []
    if (rotate && rotate !== rotated && rotate !== this.#rotated)
      await attempt({ act: 'authority_rotated', id: rotate }, () => this.#rotate(rotate), refused)
    const isEnded = end === this.#ended || end === asked[ANNOTATIONS.ended]
    if (end && (!isEnded || this.#rootOf(end)))
      await attempt({ act: 'authority_ended', id: end }, () => this.#end(end), refused)
    const isRefused = (what: AuthorityAct['act']) => refused.some(({ act }) => act === what)
    this.#tell(refused, asked[ANNOTATIONS.trouble])
    const { fault } = this.#options.authority
    const trouble = [textOf(refused), ...(fault === undefined ? [] : [fault])].filter((text) => text !== '').join('; ')
    const annotations = {
      ...(rotate && !isRefused('authority_rotated') && { [ANNOTATIONS.rotated]: rotate }),
      ...(end && !isRefused('authority_ended') && { [ANNOTATIONS.ended]: end }),
      ...(trouble !== '' && { [ANNOTATIONS.trouble]: trouble }),
    }
    const metadata = { name: key.name, ...(Object.keys(annotations).length > 0 && { annotations }) }
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: this.#data() }
    await this.#options.hub.patch(configMaps, key, body, {
      kind: 'apply',
      fieldManager: 'clusterpulse-authority',
      force: true,
      signal,
    })
    return againAfter(this.#untilNextMs())
  }

  async #rotate(asked: string): Promise<void> {
    const { authority, activeAfterMs, onAct } = this.#options
    const next = await authority.rotate({ ...(activeAfterMs !== undefined && { activeAfterMs }) })
    this.#rotated = asked
    onAct?.({ act: 'authority_rotated', id: idOf(next) })
  }

  async #end(id: string): Promise<void> {
    const { authority, onAct } = this.#options
    const root = this.#rootOf(id)
    if (!root) {
      const known = authority.roots().map((one) => `${idOf(one)} (${one.state})`)
      throw new AuthorityUnusableError(
        `no CA ${JSON.stringify(id.slice(0, 80))} is trusted, so none was ended: it is mistyped, or has ended before; those that are: ${known.join(', ')}`,
      )
    }
    await authority.end(root.id)
    this.#ended = id
    onAct?.({ act: 'authority_ended', id })
  }

  #rootOf(id: string): Root | undefined {
    return this.#options.authority.roots().find((one) => idOf(one) === id)
  }

  /** @param said the annotation, as an earlier process may have left it */
  #tell(refused: readonly Refused[], said = ''): void {
    const { logger, onAct } = this.#options
    for (const one of refused) {
      if (this.#refused ? this.#refused.includes(askedOf(one)) : said.includes(causeOf(one))) continue
      logger.warn(
        { act: one.act, asked: one.id },
        `an annotation of the ConfigMap of the hub's CAs was not obeyed: ${one.trouble}`,
      )
      onAct?.(one)
    }
    this.#refused = refused.map(askedOf)
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

type Refused = AuthorityAct & { readonly trouble: string }

const askedOf = ({ act, id }: Refused): string => `${act} ${id}`
/** Without what there is instead. */
const causeOf = ({ trouble }: Refused): string => trouble.split(';', 1)[0] ?? trouble
const textOf = (refused: readonly Refused[]): string => refused.map(({ trouble }) => trouble).join('; ')

/** What the authority refuses is said, and not tried again before something changes. */
async function attempt(asked: AuthorityAct, work: () => Promise<void>, refused: Refused[]): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof AuthorityUnusableError)) throw error
    refused.push({ ...asked, id: asked.id.slice(0, 80), trouble: error.message })
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
