import { isDeepStrictEqual } from 'node:util'
import type { Principal } from '#access'
import { applyRows, type HeldRows, noRows, type RowsMessage } from '#http'
import type { Change, ClusterState } from '#model'
import { SocketReader } from '../../src/pipeline/api/test/socket-reader.ts'
import { type Frame, Picture, StreamReader } from '../../src/pipeline/api/test/stream-reader.ts'
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

  /** @param rows queries of rows, which every one carries besides */
  static async open(
    both: Servers,
    principals: readonly Principal[],
    clusters: readonly string[],
    rows: readonly string[],
  ): Promise<Streams> {
    const open: Following[] = []
    for (const [at, principal] of principals.entries()) {
      both.told.principal = principal
      const asked = { clusters, rows, isSocket: at % 2 === 1 }
      open.push(await Following.open(both.real, principal, asked))
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
      const fresh = await Following.open(this.#both.left, following.principal, following.asked)
      const expected = await fresh.first()
      fresh.close()
      if (!(await following.holds(expected, withinMs)))
        return {
          kind: 'stream',
          detail: `the page of ${following.principal.username} does not hold what a new one would:\n${parting(JSON.stringify(following.facts), JSON.stringify(expected))}`,
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

interface Asked {
  readonly clusters: readonly string[]
  readonly rows: readonly string[]
  /** a WebSocket; else server-sent events */
  readonly isSocket: boolean
}

class Following {
  readonly principal: Principal
  readonly asked: Asked
  readonly picture = new Picture()
  readonly #rows: readonly HeldRows[]
  readonly #reader: StreamReader | SocketReader
  #applied = 0
  #taken = 0

  private constructor(principal: Principal, asked: Asked, reader: StreamReader | SocketReader) {
    this.principal = principal
    this.asked = asked
    this.#rows = asked.rows.map(() => noRows())
    this.#reader = reader
  }

  static async open(side: Side, principal: Principal, asked: Asked): Promise<Following> {
    const known = addresses.get(side) ?? side.server.start()
    addresses.set(side, known)
    const words = [
      ...asked.clusters.map((name) => `cluster=${name}`),
      ...rowTypes.map((type) => `type=${type}`),
      ...asked.rows.map((query) => `rows=${encodeURIComponent(query)}`),
    ]
    const url = `${await known}/api/v1/stream?${words.join('&')}`
    const reader = await (asked.isSocket ? SocketReader.open(url) : StreamReader.open(url))
    const following = new Following(principal, asked, reader)
    await reader.until((frames) => frames.some(({ event }) => event === 'synced'))
    return following
  }

  async first(): Promise<unknown> {
    this.#apply()
    return this.facts
  }

  /** What columns and aggregations there are is told once; the rest goes on. */
  get facts(): unknown {
    const sorted = (map: ReadonlyMap<string, unknown>) => [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const rows = this.#rows.map(({ rows, ages, total, ended }, at) => ({
      rows: this.asked.rows[at]?.includes('limit=') ? [...rows] : sorted(rows),
      ages: sorted(ages),
      total,
      ended: ended?.code ?? null,
    }))
    return [this.picture.facts, rows]
  }

  async holds(expected: unknown, withinMs: number): Promise<boolean> {
    const is = (): boolean => {
      this.#apply()
      return isDeepStrictEqual(this.facts, expected)
    }
    try {
      await this.#reader.until(is, withinMs)
      return true
    } catch {
      return is() // the reader says only that it waited in vain
    }
  }

  #apply(): void {
    for (const frame of this.#reader.frames.slice(this.#applied)) {
      this.picture.apply(frame)
      this.#applyRows(frame)
    }
    this.#applied = this.#reader.frames.length
  }

  #applyRows({ event, data }: Frame): void {
    if (event !== 'rows' && event !== 'rowsChange' && event !== 'rowsEnd') return
    const message = { kind: event, ...data } as unknown as RowsMessage
    const held = this.#rows[message.query]
    if (held) applyRows(held, message)
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
