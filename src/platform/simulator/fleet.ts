import { randomBytes } from 'node:crypto'
import { type ApiListener, ApiServer, listenApi, MASTERS } from '#apiserver'
import { type Clock, FleetError, seconds, systemClock } from '#model'
import { kubeconfigOf } from './kubeconfig.ts'
import { Life } from './life.ts'
import { TemplateCatalogue } from './objects/pod-template.ts'
import { seedCluster, sinkOf } from './simulated-cluster.ts'
import type { ClusterScenario, Scenario } from './types.ts'
import { buildWorld } from './world/build.ts'
import { writeChanges } from './world/draw.ts'
import * as verbs from './world/verbs.ts'
import { NotInWorldError } from './world/verbs.ts'
import type { World } from './world/world.ts'

/** What a simulated fleet is made from. */
export interface SimulateOptions {
  readonly clock?: Clock
  /** default 1 */
  readonly seed?: number
  /** default 127.0.0.1 */
  readonly host?: string
  /** default 0: any free port */
  readonly port?: number
  /** default true; false: life goes on only by `step` and `advance` */
  readonly lives?: boolean
  /** A change could not be written; life goes on. Default: a process warning. */
  readonly onTrouble?: (error: FleetError) => void
  /** Gives up the start. */
  readonly signal?: AbortSignal
}

/** How to reach one simulated cluster. */
export interface SimulatedCluster {
  readonly name: string
  readonly displayName: string
  readonly labels: Readonly<Record<string, string>>
  readonly url: string
  readonly token: string
  readonly caPem: string
  /** false: nothing listens at its address */
  readonly reachable: boolean
}

/**
 * Address of what cannot be reached: a port below 1024 that is given to no service, so that a connection is refused
 * at once. (Ports that `fetch` blocks by itself would fail for another reason.)
 */
const NOWHERE = 'https://127.0.0.1:4'

/** A life without a plan looks after it this often. */
const IDLE_MS = seconds(1)

interface Member {
  readonly scenario: ClusterScenario
  readonly world: World
  readonly server: ApiServer
}

/**
 * Makes the clusters of a scenario, serves them on one TLS listener under `/clusters/<name>`, and lets them live.
 * @throws the system's error where the port is taken; FleetError of the API store
 */
export async function simulateFleet(scenario: Scenario, options: SimulateOptions = {}): Promise<SimulatedFleet> {
  const { clock = systemClock, seed = scenario.seed ?? 1, host = '127.0.0.1', port = 0, signal } = options
  const templates = new TemplateCatalogue()
  // Each its own, as real clusters have: a token shown by a collector must tell which cluster speaks.
  const tokens = new Map(scenario.clusters.map(({ name }) => [name, randomBytes(24).toString('base64url')]))
  const members: Member[] = []
  try {
    for (const cluster of scenario.clusters.filter(({ reachable }) => reachable)) {
      signal?.throwIfAborted()
      const world = buildWorld(cluster, { seed, now: clock.now(), templates })
      const server = await ApiServer.open({
        runsWorkloads: true,
        storage: { kind: 'memory' },
        name: cluster.name,
        version: { gitVersion: cluster.kubernetesVersion, platform: `linux/${cluster.architecture}` },
        clock,
        maxHistory: scenario.pace ? historyOf(scenario.clusters.length) : 100,
      })
      members.push({ scenario: cluster, world, server })
      await seedCluster(world, server, () => clock.now())
    }
    const mounts = new Map(members.map(({ scenario: { name }, server }) => [`/clusters/${name}`, server]))
    const mountTokens = new Map(
      [...tokens].map(([name, token]) => [
        `/clusters/${name}`,
        [{ token, user: 'simulation-admin', groups: [MASTERS] }],
      ]),
    )
    const listener = await listenApi({ host, port, mounts, mountTokens, tokens: [] })
    return new SimulatedFleet(scenario, { members, listener, tokens, clock, seed, options })
  } catch (error) {
    await Promise.allSettled(members.map(({ server }) => server[Symbol.asyncDispose]()))
    throw error
  }
}

/** Changes kept of each cluster for watches that resume: a hundred thousand in all, as each holds an object. */
const historyOf = (clusters: number): number => Math.min(2000, Math.max(100, Math.floor(100_000 / clusters)))

interface FleetParts {
  readonly members: readonly Member[]
  readonly listener: ApiListener
  readonly tokens: ReadonlyMap<string, string>
  readonly clock: Clock
  readonly seed: number
  readonly options: SimulateOptions
}

/** Simulated clusters that are being served. Verbs take effect before they resolve. */
export class SimulatedFleet implements AsyncDisposable {
  /** all of the scenario, in its order, those that cannot be reached included */
  readonly clusters: readonly SimulatedCluster[]
  /** of the listener, without a path */
  readonly url: string
  readonly caPem: string
  readonly #members: ReadonlyMap<string, Member>
  readonly #listener: ApiListener
  readonly #clock: Clock
  readonly #life: Life
  readonly #stop = new AbortController()
  readonly #trouble: (error: FleetError) => void
  readonly #running: Promise<void>
  #nudge = new AbortController()
  #writing: Promise<void> = Promise.resolve()

  /** Use `simulateFleet`. */
  constructor(scenario: Scenario, { members, listener, tokens, clock, seed, options }: FleetParts) {
    this.#members = new Map(members.map((member) => [member.scenario.name, member]))
    this.#listener = listener
    this.#clock = clock
    this.#trouble = options.onTrouble ?? ((error) => process.emitWarning(error))
    this.url = listener.url
    this.caPem = listener.caPem
    this.clusters = scenario.clusters.map(({ name, displayName, labels, reachable }) => ({
      name,
      displayName,
      labels,
      url: `${reachable ? listener.url : NOWHERE}/clusters/${name}`,
      token: tokens.get(name) ?? '',
      caPem: this.caPem,
      reachable,
    }))
    this.#life = new Life(
      members.map(({ world }) => world),
      { clock, seed, pace: scenario.pace },
    )
    this.#running = options.lives === false ? Promise.resolve() : this.#live()
  }

  /** One context per cluster, named like it. */
  kubeconfig(): string {
    return kubeconfigOf(this.clusters)
  }

  /** The API store behind a cluster, to put in anything. @throws NotInWorldError for one that is not simulated */
  server(cluster: string): ApiServer {
    return this.#member(cluster).server
  }

  /** The facts behind a cluster, for reading. @throws NotInWorldError */
  world(cluster: string): World {
    return this.#member(cluster).world
  }

  /** Takes the next steps of the plan, due or not. */
  async step(count = 1): Promise<void> {
    for (let taken = 0; taken < count; taken++) this.#life.step()
    await this.#write(this.#members.values())
  }

  /** Takes all steps that are due by now. */
  async advance(): Promise<void> {
    this.#life.advance()
    await this.#write(this.#members.values())
  }

  /** Begins a stage such as `nodeLost` or `clusterUpdate`. @returns false where the cluster plays it already */
  async play(cluster: string, stage: string): Promise<boolean> {
    return this.#change(cluster, (world) => this.#life.begin(world, stage))
  }

  /** `lost`: the kubelet is silent, pods go to Unknown. `failing`: it reports NotReady itself. */
  async breakNode(cluster: string, node: string, how: 'lost' | 'failing' = 'lost'): Promise<void> {
    await this.#change(cluster, (world, now) => verbs.breakNode(world, node, now, how))
  }

  async healNode(cluster: string, node: string): Promise<void> {
    await this.#change(cluster, (world, now) => verbs.healNode(world, node, now))
  }

  async cordonNode(cluster: string, node: string, cordoned = true): Promise<void> {
    await this.#change(cluster, (world, now) => verbs.setCordon(world, node, cordoned, now))
  }

  /** Marks an OpenShift ClusterOperator as degraded. */
  async degradeOperator(cluster: string, name: string, message = 'degraded on purpose'): Promise<void> {
    const change = { degraded: true, reason: 'OnPurpose', message }
    await this.#change(cluster, (world, now) => verbs.setClusterOperator(world, name, change, now))
  }

  async healOperator(cluster: string, name: string): Promise<void> {
    const change = { degraded: false, available: true, progressing: false, reason: 'AsExpected', message: '' }
    await this.#change(cluster, (world, now) => verbs.setClusterOperator(world, name, change, now))
  }

  /** Puts the ClusterServiceVersion of an OLM operator, by the name of its package, into a phase. */
  async setOperatorPhase(cluster: string, name: string, phase: 'Succeeded' | 'Failed' | 'Installing'): Promise<void> {
    const change =
      phase === 'Succeeded' ? verbs.OPERATOR_FINE : { phase, reason: 'OnPurpose', message: `${phase} on purpose` }
    await this.#change(cluster, (world, now) => verbs.setOperator(world, name, change, now))
  }

  /** Grows a deployment by so many pods, which start at once as far as nodes have room; negative: shrinks it. */
  async addPods(cluster: string, count: number): Promise<void> {
    await this.#change(cluster, (world, now) => verbs.addPods(world, count, now))
  }

  /** Ends life; the clusters are served on as they are. */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#nudge.abort()
    await this.#running
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    await this.#writing
    await this.#listener[Symbol.asyncDispose]()
    await Promise.all([...this.#members.values()].map(({ server }) => server[Symbol.asyncDispose]()))
  }

  #member(cluster: string): Member {
    const member = this.#members.get(cluster)
    if (!member) throw new NotInWorldError('cluster', cluster)
    return member
  }

  async #change<T>(cluster: string, verb: (world: World, now: number) => T): Promise<T> {
    const member = this.#member(cluster)
    const result = verb(member.world, this.#clock.now())
    this.#life.wake(member.world)
    await this.#write([member])
    this.#nudge.abort()
    return result
  }

  async #live(): Promise<void> {
    const stopped = this.#stop.signal
    while (!stopped.aborted) {
      try {
        const touched = this.#life.advance()
        await this.#write([...this.#members.values()].filter(({ world }) => touched.has(world)))
      } catch (error) {
        this.#trouble(FleetError.from(error))
      }
      const wait = (this.#life.nextAt ?? Number.POSITIVE_INFINITY) - this.#clock.now()
      this.#nudge = new AbortController()
      await this.#clock.sleep(Math.min(Math.max(wait, 20), IDLE_MS), AbortSignal.any([stopped, this.#nudge.signal]))
    }
  }

  /** One after the other, so that the changes of a world arrive in their order. */
  async #write(members: Iterable<Member>): Promise<void> {
    const all = [...members]
    const before = this.#writing
    const done = (async () => {
      await before.catch(() => undefined) // whoever began it heard of it
      for (const { world, server } of all) await writeChanges(world, sinkOf(server))
    })()
    this.#writing = done.catch(() => undefined)
    await done
  }
}
