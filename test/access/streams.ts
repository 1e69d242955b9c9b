import { isDeepStrictEqual } from 'node:util'
import type { Principal } from '#access'
import type { Change, ClusterState } from '#model'
import { Picture, StreamReader } from '../../src/pipeline/api/test/stream-reader.ts'
import { parting, type Servers, type Side, see } from './answers.ts'
import type { Difference } from './compare.ts'

/** Open streams of everybody in a world, each with what its page would hold. */
export class Streams {
  readonly #both: Servers
  readonly #open: readonly Following[]

  private constructor(both: Servers, open: readonly Following[]) {
    this.#both = both
    this.#open = open
  }

  static async open(both: Servers, principals: readonly Principal[], clusters: readonly string[]): Promise<Streams> {
    const open: Following[] = []
    for (const principal of principals) {
      both.told.principal = principal
      open.push(await Following.open(both.real, principal, clusters))
    }
    return new Streams(both, open)
  }

  /**
   * Waits until every page holds what a page opened now would hold of the fleet that the oracle leaves.
   * @returns the first that still does not after `withinMs`
   */
  async differ(full: readonly ClusterState[], withinMs = 8000): Promise<Difference | undefined> {
    for (const following of this.#open) {
      see(this.#both, following.principal, full)
      const fresh = await Following.open(this.#both.left, following.principal, following.clusters)
      const expected = await fresh.first()
      fresh.close()
      if (!(await following.holds(expected, withinMs)))
        return {
          kind: 'stream',
          detail: `the page of ${following.principal.username} does not hold what a new one would:\n${parting(JSON.stringify(following.picture.facts), JSON.stringify(expected))}`,
        }
    }
    return undefined
  }

  /** every text that reached somebody, since it was asked the last time */
  taken(): readonly { readonly principal: Principal; readonly text: string }[] {
    return this.#open.map((following) => ({ principal: following.principal, text: following.taken() }))
  }

  close(): void {
    for (const following of this.#open) following.close()
  }
}

const addresses = new WeakMap<Side, Promise<string>>()

class Following {
  readonly principal: Principal
  readonly clusters: readonly string[]
  readonly picture = new Picture()
  readonly #reader: StreamReader
  #applied = 0
  #taken = 0

  private constructor(principal: Principal, clusters: readonly string[], reader: StreamReader) {
    this.principal = principal
    this.clusters = clusters
    this.#reader = reader
  }

  static async open(side: Side, principal: Principal, clusters: readonly string[]): Promise<Following> {
    const known = addresses.get(side) ?? side.server.start()
    addresses.set(side, known)
    const words = [...clusters.map((name) => `cluster=${name}`), ...rowTypes.map((type) => `type=${type}`)]
    const reader = await StreamReader.open(`${await known}/api/v1/stream?${words.join('&')}`)
    const following = new Following(principal, clusters, reader)
    await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))
    return following
  }

  async first(): Promise<unknown> {
    this.#apply()
    return this.picture.facts
  }

  async holds(expected: unknown, withinMs: number): Promise<boolean> {
    const is = (): boolean => {
      this.#apply()
      return isDeepStrictEqual(this.picture.facts, expected)
    }
    try {
      await this.#reader.until(is, withinMs)
      return true
    } catch {
      return is() // the reader says only that it waited in vain
    }
  }

  #apply(): void {
    for (const frame of this.#reader.frames.slice(this.#applied)) this.picture.apply(frame)
    this.#applied = this.#reader.frames.length
  }

  taken(): string {
    const text = JSON.stringify(this.#reader.frames.slice(this.#taken))
    this.#taken = this.#reader.frames.length
    return text
  }

  close(): void {
    this.#reader.close()
  }
}

const rowTypes = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator'] as const

/** What a store would tell of the step from one fleet to another. */
export function changesBetween(
  before: readonly ClusterState[],
  after: readonly ClusterState[],
  at: number,
): readonly Change[] {
  return after.flatMap((is): readonly Change[] => {
    const was = before.find(({ name }) => name === is.name)
    if (was === is) return []
    const rows = rowTypes.flatMap((type): readonly Change[] => {
      const old = was?.parts[type]?.items ?? new Map<string, unknown>()
      const now = is.parts[type]?.items ?? new Map<string, unknown>()
      const of = (name: string, op: 'put' | 'remove') =>
        ({ kind: 'snapshot', cluster: is.name, type, name, op, at }) as const
      return [
        ...[...now].filter(([name, row]) => !isDeepStrictEqual(old.get(name), row)).map(([name]) => of(name, 'put')),
        ...[...old.keys()].filter((name) => !now.has(name)).map((name) => of(name, 'remove')),
      ]
    })
    return [...rows, { kind: 'cluster', cluster: is.name, op: 'put', at }]
  })
}
