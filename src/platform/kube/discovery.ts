import { minutes } from '#model'
import { orAborted } from './credentials.ts'
import { notKubernetes, parseJson } from './decode.ts'
import { isKubeError } from './errors.ts'
import { groupPath } from './paths.ts'
import type { Transport } from './transport.ts'
import type { Resource } from './types.ts'

const KEPT_MS = minutes(10)
/** Far more groups than any cluster has; the bound is against a caller's mistake. */
const MAX_KEPT = 1000

/** As JSON from anywhere: its items may be anything. */
interface ResourceList {
  readonly kind: unknown
  readonly resources: readonly ({ readonly name?: string } | null)[]
}

/** Which resources a cluster serves. An absent group is an answer and kept; forbidden and unreachable are thrown. */
export class Discovery {
  readonly #transport: Transport
  readonly #kept = new Map<string, { plurals: ReadonlySet<string>; until: number }>()
  readonly #running = new Map<string, Promise<ReadonlySet<string>>>()

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async serves(resource: Pick<Resource, 'group' | 'version' | 'plural'>, signal?: AbortSignal): Promise<boolean> {
    const path = groupPath(resource)
    const kept = this.#kept.get(path)
    if (kept && this.#transport.clock.now() < kept.until) return kept.plurals.has(resource.plural)
    let running = this.#running.get(path)
    if (!running) {
      // Shared by all who ask meanwhile, so no single caller's signal may end it; the client's timeout does.
      running = this.#ask(path).finally(() => this.#running.delete(path))
      this.#running.set(path, running)
    }
    return (await orAborted(running, signal)).has(resource.plural)
  }

  async #ask(path: string): Promise<ReadonlySet<string>> {
    const plurals = await this.#plurals(path)
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear()
    this.#kept.set(path, { plurals, until: this.#transport.clock.now() + KEPT_MS })
    return plurals
  }

  async #plurals(path: string): Promise<ReadonlySet<string>> {
    const call = { method: 'GET', path }
    try {
      const read = ({ body }: { body: Buffer }) => parseJson(call, body) as Partial<ResourceList> | null | undefined
      const answer = await this.#transport.call(call, read)
      // "Not served" is believed from such a list only, not from whatever else has an answer for every path.
      if (answer?.kind !== 'APIResourceList' || !Array.isArray(answer.resources)) throw notKubernetes(call)
      return new Set(answer.resources.map((resource) => resource?.name ?? ''))
    } catch (error) {
      if (isKubeError(error, 'not_found')) return new Set()
      throw error
    }
  }
}
