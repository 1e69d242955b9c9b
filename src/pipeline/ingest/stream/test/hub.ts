import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openEvents } from '#events'
import { type ClusterName, type Plan, parseClusterName } from '#model'
import { Metrics, openLog } from '#runtime'
import { EmbeddedStateStore, type StateStore } from '#state'
import { facts } from '../../../state/test/fleet-words.ts'
import { Ingester } from '../../ingester.ts'
import type { Presented } from '../../line/presented.ts'
import { AgentServer, type AgentServerOptions } from '../server.ts'
import type { Peer, PeerVerifier, PlanSource, Verdict } from '../types.ts'

/** Credentials as a test sets them: a token or a certificate's common name, and whose it is. */
export class TestCredentials implements PeerVerifier {
  readonly #tokens = new Map<string, Verdict>()
  readonly #listeners = new Set<(clusters?: ReadonlySet<string>) => void>()

  grant(token: string, cluster: string, method: Peer['method'] = 'token'): void {
    this.#tokens.set(token, { peer: { cluster: parseClusterName(cluster), method, credential: token.slice(0, 4) } })
  }

  refuse(token: string, refused: 'expired' | 'revoked' | 'not_yet'): void {
    this.#tokens.set(token, { refused })
    for (const listener of this.#listeners) listener()
  }

  /** Those of one cluster may have changed. */
  doubt(cluster: string): void {
    for (const listener of this.#listeners) listener(new Set([cluster]))
  }

  verify({ token, certificate }: Presented): Verdict {
    if (certificate) return this.#tokens.get(certificate.commonName) ?? { refused: 'unknown' }
    if (token === undefined) return { refused: 'no_credential' }
    return this.#tokens.get(token) ?? { refused: 'unknown' }
  }

  stillValid(peer: Peer): boolean {
    return [...this.#tokens.values()].some((verdict) => 'peer' in verdict && verdict.peer.cluster === peer.cluster)
  }

  onChange(listener: (clusters?: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

export class TestPlans implements PlanSource {
  readonly #plans = new Map<string, Plan>()
  readonly #listeners = new Set<(cluster: ClusterName | undefined) => void>()

  set(cluster: ClusterName, plan: Plan): void {
    this.#plans.set(cluster, plan)
    for (const listener of this.#listeners) listener(cluster)
  }

  planOf(cluster: ClusterName): Plan | undefined {
    return this.#plans.get(cluster)
  }

  onChange(listener: (cluster: ClusterName | undefined) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

export interface TestHub extends AsyncDisposable {
  readonly server: AgentServer
  readonly ingester: Ingester
  readonly state: StateStore
  readonly credentials: TestCredentials
  readonly plans: TestPlans
  readonly metrics: Metrics
}

/** The hub's end over real files and a real port; `west` and `east` are declared, their tokens are `west-token`, `east-token`. */
export async function aHub(
  options: Partial<AgentServerOptions> & { readonly clusters?: readonly string[] } = {},
): Promise<TestHub> {
  const { clusters = ['west', 'east'], ...rest } = options
  const directory = await mkdtemp(join(tmpdir(), 'stream-'))
  const log = await openLog({ directory: join(directory, 'log') })
  const state = await EmbeddedStateStore.open({ directory: join(directory, 'state'), writeBehindMs: 20 })
  const events = openEvents({ kind: 'in-process' })
  const metrics = new Metrics({}, { processMetrics: false })
  const ingester = await Ingester.open({ log, state, events, random: () => 0.01 })
  const credentials = new TestCredentials()
  const plans = new TestPlans()
  for (const cluster of clusters) {
    await ingester.connect(parseClusterName(cluster), facts())
    credentials.grant(`${cluster}-token`, cluster)
  }
  const close = async () => {
    await ingester[Symbol.asyncDispose]()
    await events[Symbol.asyncDispose]()
    await state[Symbol.asyncDispose]()
    await log[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  }
  const server = await AgentServer.start({
    host: '127.0.0.1',
    port: 0,
    tls: 'plaintext',
    verifier: credentials,
    plans,
    ingester,
    metrics,
    ...rest,
  }).catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    server,
    ingester,
    state,
    credentials,
    plans,
    metrics,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await close()
    },
  }
}
