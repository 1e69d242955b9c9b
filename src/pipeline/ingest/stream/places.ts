import { type AgentFacts, type Clock, type ClusterName, ORIGINAL_ORIGIN, type SequenceRange } from '#model'
import type { Logger } from '#runtime'
import type { Claimed, OriginalNumbers, Place } from './session-events.ts'
import type { Agents } from './types.ts'

/** What the table asks of the stream that holds a place. */
export interface Holder {
  readonly isDelivering: boolean
  facts(now: number): AgentFacts | undefined
  replaced(message: string, retryAfterMs: number): void
  /** what is known of its cluster may have changed */
  changed(what: 'credentials' | 'plan'): void
  disconnect(code: string, message: string): void
}

/** What a stream came with. */
export interface Shown {
  readonly address: string
  /** of its certificate: SHA-256 of the public key, hex; undefined: it showed none */
  readonly key?: string | undefined
}

/** Who speaks, as far as it is told from others of the same cluster. */
export type Peer = Claimed & Shown

interface Entry {
  holder: Holder | undefined
  /** of the last that had the place */
  peer: Peer
  epoch: number
  /** facts of the last stream, once it has ended */
  last: AgentFacts | undefined
  readonly originals: OriginalNumbers
  /** a living stream was replaced by another identity, at these times */
  flips: { readonly at: number; readonly from: string; readonly to: string }[]
}

const FLIP_MEMORY_MS = 10 * 60_000
/** An agent of ours that was made to wait is back so soon after it; it tries each minute. */
const RETURN_MS = 1.5 * 60_000

export interface PlacesOptions {
  readonly clock: Clock
  readonly logger: Logger
  received(cluster: ClusterName, origin: string): readonly SequenceRange[]
  onContested(): void
}

/** One place per cluster: the newest stream has it, and only its holder gives it back. */
export class Places implements Agents {
  readonly #options: PlacesOptions
  readonly #entries = new Map<ClusterName, Entry>()
  readonly #listeners = new Set<(cluster: ClusterName) => void>()

  constructor(options: PlacesOptions) {
    this.#options = options
  }

  /** The stream before is told that it is replaced. Two identities that take the place from each other are slowed down. */
  enter(cluster: ClusterName, peer: Peer, holder: Holder): Place {
    const now = this.#options.clock.now()
    const entry = this.#entries.get(cluster) ?? this.#add(cluster)
    entry.epoch = Math.max(entry.epoch + 1, now)
    const before = entry.holder
    const { doubt, pauseMs } = this.#contested(cluster, entry, peer, now)
    entry.holder = holder
    entry.peer = peer
    // Which buffers those are, the peer does not learn: who has stolen its token could declare lost what the other will number.
    before?.replaced(
      doubt
        ? 'another agent uses the identity of this cluster, and its stream is newer: stop one of the two, which the page of the cluster on the hub names'
        : 'a newer stream of this cluster has come',
      pauseMs,
    )
    return { epoch: entry.epoch, doubt, originals: entry.originals }
  }

  /** @returns false: somebody else has the place by now */
  leave(cluster: ClusterName, holder: Holder): boolean {
    const entry = this.#entries.get(cluster)
    if (entry?.holder !== holder) return false
    entry.last = holder.facts(this.#options.clock.now())
    entry.holder = undefined
    return true
  }

  holds(cluster: ClusterName, holder: Holder): boolean {
    return this.#entries.get(cluster)?.holder === holder
  }

  /** of the last that had the place; '': there was none */
  processOf(cluster: ClusterName): string {
    const entry = this.#entries.get(cluster)
    return entry ? processOf(entry.peer) : ''
  }

  /** Forgets clusters that nobody knows any more. */
  prune(knows: (cluster: ClusterName) => boolean): void {
    for (const [cluster, entry] of this.#entries) if (!entry.holder && !knows(cluster)) this.#entries.delete(cluster)
  }

  changed(cluster: ClusterName): void {
    for (const listener of this.#listeners) listener(cluster)
  }

  facts(cluster: string): AgentFacts | undefined {
    const entry = this.#entries.get(cluster as ClusterName) // a name that is none is not in the map
    return entry?.holder?.facts(this.#options.clock.now()) ?? entry?.last
  }

  onChange(listener: (cluster: ClusterName) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** To the holder of the place of one cluster, however many others there are. */
  tell(cluster: string, what: 'credentials' | 'plan'): void {
    this.#entries.get(cluster as ClusterName)?.holder?.changed(what) // as above
  }

  isDelivering(cluster: string): boolean {
    return this.#entries.get(cluster as ClusterName)?.holder?.isDelivering ?? false
  }

  disconnect(cluster: string, code: string, message: string): void {
    this.#entries.get(cluster as ClusterName)?.holder?.disconnect(code, message)
  }

  #add(cluster: ClusterName): Entry {
    const last = this.#options.received(cluster, ORIGINAL_ORIGIN).at(-1)?.[1] ?? 0
    const entry: Entry = {
      holder: undefined,
      peer: { identity: '', instance: '', address: '' },
      epoch: 0,
      last: undefined,
      originals: { last, recent: [] },
      flips: [],
    }
    this.#entries.set(cluster, entry)
    return entry
  }

  // One that takes over from another is an agent that moved, or was started again. One that takes it back is a second agent.
  #contested(
    cluster: ClusterName,
    entry: Entry,
    peer: Peer,
    now: number,
  ): Pick<Place, 'doubt'> & { readonly pauseMs: number } {
    const [from, to] = [processOf(entry.peer), processOf(peer)]
    entry.flips = entry.flips.filter(({ at }) => now - at < FLIP_MEMORY_MS)
    if (!entry.holder || from === to) return { doubt: undefined, pauseMs: 0 }
    entry.flips = [...entry.flips.slice(-15), { at: now, from, to }]
    const returned = entry.flips.filter((flip) => flip.from === from || flip.to === from).length
    const back = entry.flips.slice(0, -1).some((flip) => flip.from === to)
    if (!back) return { doubt: undefined, pauseMs: 0 }
    const message = `two agents use the identity of this cluster: ${bothOf(entry.peer, peer)}`
    const pauseMs = Math.min(300_000, 15_000 * 2 ** Math.min(returned, 5))
    this.#options.logger.warn({ cluster, agents: [from, to], pauseMs }, 'two agents use one identity')
    this.#options.onContested()
    // One that stays away for longer than it is made to wait is gone. An original comes back when it likes.
    const isPaced = entry.peer.instance !== ''
    return { doubt: { message, until: now + (isPaced ? pauseMs + RETURN_MS : FLIP_MEMORY_MS) }, pauseMs }
  }
}

/** Copies of one buffer have one identity, and are started each by itself. */
const processOf = ({ identity, instance }: Peer): string => (instance === '' ? identity : `${identity}/${instance}`)

function bothOf(one: Peer, other: Peer): string {
  const isCopied = one.identity === other.identity
  const remedy = isCopied ? '; one runs on a copy of the folder of the other' : ''
  return `${nameOf(one)} and ${nameOf(other)}${remedy}`
}

/** of agents that have no name of their own */
const UUID = /^([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-/

/** By what people find it: the name that its own log begins with, the key that its request showed, and where it is. */
function nameOf({ identity, instance, address, key }: Peer): string {
  const name = instance === '' ? identity : (UUID.exec(instance)?.[1] ?? instance)
  return `${name}${key === undefined ? '' : ` with key ${key.slice(0, 16)}`} at ${address}`
}
