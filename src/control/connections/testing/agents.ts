import type { Agents } from '#ingest'
import { type AgentFacts, type ClusterName, parseClusterName } from '#model'

/** The live streams, as a test wants them. */
export class SomeAgents implements Agents {
  readonly #facts = new Map<string, AgentFacts>()
  readonly #delivering = new Set<string>()
  readonly #listeners = new Set<(cluster: ClusterName) => void>()
  /** what was told to agents whose stream was ended */
  readonly ended: string[] = []

  facts(cluster: string): AgentFacts | undefined {
    return this.#facts.get(cluster)
  }

  isDelivering(cluster: string): boolean {
    return this.#delivering.has(cluster)
  }

  onChange(listener: (cluster: ClusterName) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  disconnect(cluster: string, code: string): void {
    this.ended.push(`${cluster} ${code}`)
    this.gone(cluster, code)
  }

  connected(cluster: string, over: Partial<AgentFacts> = {}): void {
    this.#set(cluster, { ...facts(true), ...over })
  }

  /** its first batch was accepted */
  delivers(cluster: string): void {
    this.deliversUnheard(cluster)
    this.#tell(cluster)
  }

  /** the same, before anybody was told */
  deliversUnheard(cluster: string): void {
    this.#delivering.add(cluster)
  }

  gone(cluster: string, reason: string): void {
    this.#delivering.delete(cluster)
    if (this.#facts.has(cluster)) this.#set(cluster, { ...facts(false), reason })
  }

  #set(cluster: string, now: AgentFacts): void {
    this.#facts.set(cluster, now)
    this.#tell(cluster)
  }

  #tell(cluster: string): void {
    for (const listener of this.#listeners) listener(parseClusterName(cluster))
  }
}

const facts = (connected: boolean): AgentFacts => ({
  connected,
  since: Date.now(),
  reason: '',
  version: '1.2.3',
  protocol: 1,
  heartbeatAt: Date.now(),
  bufferedBatches: 3,
  bufferedBytes: 100,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 0,
  tls: true,
  method: 'token',
  plan: '',
  epoch: 1,
})
