import type { AcceptedCredentials } from '#kinds'
import type { KubeObject, WatchEvent } from '#kube'
import type { SecretFor } from './annotations.ts'
import { type Destination, destinationOf, sameDestination } from './destination.ts'
import { type Held, holdOf, type Named } from './hold.ts'

/** What of a connection matters here. */
interface Entry {
  readonly name: string
  readonly createdAt: string
  /** `namespace/name` of its Secret, and where the connection leads; undefined: it names none, or no endpoint */
  readonly named: { readonly secret: string; readonly destination: Destination } | undefined
  /** its last acceptance, as its status keeps it */
  readonly accepted: AcceptedCredentials | undefined
  /** its endpoint accepted the credentials when acceptances were not kept yet */
  readonly acceptedBefore: boolean
}

/** Whether a Secret may be sent to a host on behalf of a connection. */
export interface Question {
  /** name of the connection */
  readonly connection: string
  readonly secret: SecretFor
  readonly destination: Destination
  /** where the Secret itself leads; see HoldInputs */
  readonly carried?: Destination
}

/** Of one Secret: versions that were accepted, the newest last, each with where. */
type Versions = Map<string, Named[]>

/** A change of a Secret is seen here and there at different times; more versions than that are not on the way at once. */
const MAX_VERSIONS = 4

/**
 * Where the credentials of Secrets were accepted, on the word of all connections of one kind, whoever reads their clusters. What
 * was accepted once is remembered while the process runs, also where its connection is deleted or turned to another Secret.
 */
export class CredentialLedger {
  readonly #kind: string
  /** address of an endpoint as written → with its scheme */
  readonly #serverOf: (endpoint: string) => string
  readonly #entries = new Map<string, Entry>()
  /** names of the connections that name a Secret: every look at every cluster asks for those of one */
  readonly #naming = new Map<string, Set<string>>()
  /** by uid of the Secret */
  readonly #secrets = new Map<string, Versions>()

  constructor(kind: string, serverOf: (endpoint: string) => string) {
    this.#kind = kind
    this.#serverOf = serverOf
  }

  /** Follows the connections, all of them. */
  see(event: WatchEvent<KubeObject>): void {
    if (event.type === 'reset') {
      this.#entries.clear()
      this.#naming.clear()
      for (const object of event.items) this.#put(object)
    } else if (event.type === 'deleted') this.#drop(event.object.metadata.name)
    else this.#put(event.object)
  }

  /** Why the credentials of a connection's Secret are not to be sent; undefined: they may be. */
  hold(question: Question): Held | undefined {
    const { connection, secret, destination, carried } = question
    const secretName = nameOf(secret)
    const me = this.#entries.get(connection)
    const naming = [...(this.#naming.get(secretName) ?? [])].flatMap((name) => {
      const entry = this.#entries.get(name)
      return entry?.named ? [{ ...entry, named: this.#named(name, entry.named.destination, carried) }] : []
    })
    const before = naming.filter(({ acceptedBefore }) => acceptedBefore).map(({ named }) => named)
    const own =
      me?.accepted?.secret === secretName
        ? destinationOf(me.accepted.endpoint, me.accepted.proxy)
        : before.find(({ by }) => by === this.#text(connection))?.destination
    return holdOf({
      secret,
      destination,
      carried,
      own,
      accepted: [...(this.#secrets.get(secret.uid)?.get(secret.resourceVersion) ?? []), ...before],
      earlier: naming.filter((entry) => entry.name !== connection && isEarlier(entry, me)).map(({ named }) => named),
    })
  }

  /** Remembers that the destination accepted them. @returns what the connection's status is to keep */
  accept({ connection, secret, destination }: Question): AcceptedCredentials {
    const { uid, resourceVersion } = secret
    const accepted = { secret: nameOf(secret), uid, resourceVersion, ...destination }
    this.#remember(connection, accepted)
    return accepted
  }

  /** A Secret that is gone takes what was remembered of it along. */
  forget(uid: string | undefined): void {
    if (uid !== undefined) this.#secrets.delete(uid)
  }

  #put(object: KubeObject): void {
    const entry = this.#entryOf(object)
    const secret = entry.named?.secret
    if (this.#entries.get(entry.name)?.named?.secret !== secret) this.#drop(entry.name)
    this.#entries.set(entry.name, entry)
    if (secret !== undefined) this.#naming.set(secret, (this.#naming.get(secret) ?? new Set()).add(entry.name))
    if (entry.accepted) this.#remember(entry.name, entry.accepted)
  }

  #drop(name: string): void {
    const secret = this.#entries.get(name)?.named?.secret ?? ''
    const others = this.#naming.get(secret)
    if (others?.delete(name) && others.size === 0) this.#naming.delete(secret)
    this.#entries.delete(name)
  }

  #remember(connection: string, { uid, resourceVersion, endpoint, proxy }: AcceptedCredentials): void {
    const versions: Versions = this.#secrets.get(uid) ?? new Map()
    this.#secrets.set(uid, versions)
    const named = { by: this.#text(connection), destination: destinationOf(endpoint, proxy) }
    const known = versions.get(resourceVersion) ?? []
    const isKnown = known.some(
      ({ by, destination }) => by === named.by && sameDestination(destination, named.destination),
    )
    if (!isKnown) versions.set(resourceVersion, [...known, named])
    const [oldest] = versions.keys()
    if (versions.size > MAX_VERSIONS && oldest !== undefined) versions.delete(oldest)
  }

  #entryOf({ metadata, spec, status }: KubeObject): Entry {
    const { endpoint, proxyURL, credentialsRef } = (spec ?? {}) as Partial<Record<string, unknown>>
    const ref = (credentialsRef ?? {}) as { readonly name?: unknown; readonly namespace?: unknown }
    const { credentials, conditions } = (status ?? {}) as {
      readonly credentials?: AcceptedCredentials // served under our schema
      readonly conditions?: readonly { type: string; status: string; reason: string; observedGeneration?: number }[]
    }
    const isNamed = typeof endpoint === 'string' && typeof ref.name === 'string'
    const acceptedBefore = conditions?.some(
      ({ type, status: said, reason, observedGeneration }) =>
        type === 'CredentialsValid' &&
        said === 'True' &&
        reason === 'Accepted' &&
        observedGeneration === metadata.generation,
    )
    return {
      name: metadata.name,
      createdAt: metadata.creationTimestamp ?? '',
      named: isNamed
        ? {
            secret: `${(ref.namespace as string) || metadata.namespace || ''}/${ref.name as string}`,
            destination: destinationOf(
              this.#serverOf(endpoint),
              typeof proxyURL === 'string' && proxyURL !== '' ? proxyURL : undefined,
            ),
          }
        : undefined,
      accepted: credentials,
      acceptedBefore: !credentials && acceptedBefore === true,
    }
  }

  /** Where a Secret leads by itself, a connection changes the proxy alone. */
  #named(name: string, { endpoint, proxy = undefined }: Destination, carried: Destination | undefined): Named {
    const through = proxy ?? carried?.proxy
    const destination = { endpoint: carried?.endpoint ?? endpoint, ...(through !== undefined && { proxy: through }) }
    return { by: this.#text(name), destination }
  }

  #text(name: string): string {
    return `${this.#kind} ${name}`
  }
}

const nameOf = ({ namespace, name }: SecretFor): string => `${namespace}/${name}`

/** Times have a resolution of a second: of two in one the name decides, so that all processes agree. */
function isEarlier(a: Pick<Entry, 'name' | 'createdAt'>, b: Pick<Entry, 'name' | 'createdAt'> | undefined): boolean {
  if (!b) return true
  return a.createdAt === b.createdAt ? a.name < b.name : a.createdAt < b.createdAt
}
