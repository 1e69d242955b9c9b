import { minutes, seconds } from '#model'
import { orAborted } from './credentials.ts'
import { notKubernetes, parseJson } from './decode.ts'
import { isConnectionTrouble, isKubeError } from './errors.ts'
import { fieldsOf } from './facts.ts'
import { groupPath } from './paths.ts'
import type { Transport } from './transport.ts'
import type { Resource, ServedKind } from './types.ts'

const KEPT_MS = minutes(10)
/** Far more groups than any cluster has; the bound is against a caller's mistake. */
const MAX_KEPT = 1000

/** What somebody waits for, as the metrics API, may have been installed meanwhile. */
const MISSING_KEPT_MS = seconds(30)

/** As JSON from anywhere: its items may be anything. */
interface ResourceList {
  readonly kind: unknown
  readonly resources: readonly Readonly<Record<string, unknown>>[]
}

interface GroupList {
  readonly kind: unknown
  readonly groups: readonly Readonly<Record<string, unknown>>[]
}

/** What one version of a group serves. */
interface Served {
  readonly plurals: ReadonlySet<string>
  readonly kinds: ReadonlyMap<string, ServedKind>
}

interface Kept extends Served {
  readonly askedAt: number
}

const NOTHING: Served = { plurals: new Set(), kinds: new Map() }
const GROUPS = '/apis'

/** Paths of the versions of groups that a cluster serves; undefined: it does not say. */
interface Versions {
  readonly paths: Promise<ReadonlySet<string> | undefined>
  readonly askedAt: number
}

/** Which resources a cluster serves. An absent group is an answer and kept; forbidden and unreachable are thrown. */
export class Discovery {
  readonly #transport: Transport
  readonly #kept = new Map<string, Kept>()
  readonly #running = new Map<string, Promise<Kept>>()
  #versions: Versions | undefined

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async serves(resource: Pick<Resource, 'group' | 'version' | 'plural'>, signal?: AbortSignal): Promise<boolean> {
    const { plural } = resource
    const has = ({ plurals }: Served) => plurals.has(plural) || undefined
    return (await this.#lookFor(groupPath(resource), has, signal)) ?? false
  }

  /** What the kind is called; undefined: it is not served. */
  async find(
    { group, version, kind }: Pick<Resource, 'group' | 'version' | 'kind'>,
    signal?: AbortSignal,
  ): Promise<ServedKind | undefined> {
    return this.#lookFor(groupPath({ group, version }), ({ kinds }) => kinds.get(kind), signal)
  }

  /** What is there is believed for longer than that it is not. */
  async #lookFor<T>(path: string, of: (served: Served) => T | undefined, signal?: AbortSignal): Promise<T | undefined> {
    return of(await this.#served(path, KEPT_MS, signal)) ?? of(await this.#served(path, MISSING_KEPT_MS, signal))
  }

  /** What was kept of this version of a group is old: a call has shown it. */
  forget(resource: Pick<Resource, 'group' | 'version'>): void {
    this.#kept.delete(groupPath(resource))
    this.#versions = undefined
  }

  async #served(path: string, maxAgeMs: number, signal?: AbortSignal): Promise<Served> {
    const kept = this.#kept.get(path)
    if (kept && this.#transport.clock.now() < kept.askedAt + maxAgeMs) return kept
    let running = this.#running.get(path)
    if (!running) {
      // Shared by all who ask meanwhile, so no single caller's signal may end it; the client's timeout does.
      running = this.#ask(path, maxAgeMs).finally(() => this.#running.delete(path))
      this.#running.set(path, running)
    }
    return orAborted(running, signal)
  }

  async #ask(path: string, maxAgeMs: number): Promise<Kept> {
    const isThere = await this.#mayBeThere(path, maxAgeMs)
    const kept = { ...(isThere ? await this.#read(path) : NOTHING), askedAt: this.#transport.clock.now() }
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear()
    this.#kept.set(path, kept)
    return kept
  }

  /** Most of what is looked for is not there: one list of groups says so of all. */
  async #mayBeThere(path: string, maxAgeMs: number): Promise<boolean> {
    if (!path.startsWith(`${GROUPS}/`)) return true
    const now = this.#transport.clock.now()
    let versions = this.#versions
    if (!versions || now >= versions.askedAt + maxAgeMs) {
      versions = { paths: this.#readVersions(), askedAt: now }
      this.#versions = versions
    }
    try {
      return (await versions.paths)?.has(path) ?? true
    } catch (error) {
      if (this.#versions === versions) this.#versions = undefined
      throw error
    }
  }

  async #readVersions(): Promise<ReadonlySet<string> | undefined> {
    const call = { method: 'GET', path: GROUPS, isolated: true }
    const read = ({ body }: { body: Buffer }) => parseJson(call, body) as Partial<GroupList> | null | undefined
    // Who may not see the list, or gets something else, asks for each version by itself.
    const answer = await this.#transport.call(call, read).catch((error: unknown) => {
      if (isConnectionTrouble(error) || isKubeError(error, 'timeout')) throw error
      return undefined
    })
    return answer?.kind === 'APIGroupList' && Array.isArray(answer.groups) ? pathsOf(answer.groups) : undefined
  }

  async #read(path: string): Promise<Served> {
    // An aggregated API that is down answers its own discovery with 503: that is no trouble of the cluster.
    const call = { method: 'GET', path, isolated: true }
    try {
      const read = ({ body }: { body: Buffer }) => parseJson(call, body) as Partial<ResourceList> | null | undefined
      const answer = await this.#transport.call(call, read)
      // "Not served" is believed from such a list only, not from whatever else has an answer for every path.
      if (answer?.kind !== 'APIResourceList' || !Array.isArray(answer.resources)) throw notKubernetes(call)
      return servedBy(answer.resources)
    } catch (error) {
      if (isKubeError(error, 'not_found')) return NOTHING
      throw error
    }
  }
}

function pathsOf(groups: readonly unknown[]): ReadonlySet<string> {
  const versions = groups.map((group) => fieldsOf(group).versions).filter((versions) => Array.isArray(versions))
  return new Set(versions.flat().map((version) => `${GROUPS}/${String(fieldsOf(version).groupVersion)}`))
}

function servedBy(resources: readonly unknown[]): Served {
  const plurals = new Set<string>()
  const kinds = new Map<string, ServedKind>()
  for (const resource of resources) {
    const { name, kind, namespaced, verbs } = fieldsOf(resource)
    if (typeof name !== 'string') continue
    plurals.add(name)
    // Subresources have kinds of their own, and some resources can only be created.
    const isListed = !name.includes('/') && (!Array.isArray(verbs) || verbs.includes('list'))
    if (isListed && typeof kind === 'string' && !kinds.has(kind)) {
      kinds.set(kind, { plural: name, namespaced: namespaced === true })
    }
  }
  return { plurals, kinds }
}
