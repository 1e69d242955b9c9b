import { readFile } from 'node:fs/promises'
import {
  Agent,
  grpcTransport,
  type HubTrust,
  type IdentityStore,
  keyId,
  type MemberIdentity,
  Membership,
  type MemberTransport,
  memberTransport,
} from '#agent'
import { memberCollectors, type ReadSummary } from '#collect'
import { type ClusterAccess, createKubeClient, type KubeClient, kubeletSummaries, type OwnedKubeClient } from '#kube'
import { type AgentRights, agentRightsText, CLAIMS, systemClock } from '#model'
import {
  claimFormat,
  countBuild,
  createLogger,
  keepPrivate,
  type Logger,
  Metrics,
  type Part,
  type RunningParts,
  startParts,
} from '#runtime'
import type { JoinText } from '#wire'
import { clusterAccess } from './cluster-access.ts'
import type { AgentConfig } from './config.ts'
import { noInventory } from './inventory-part.ts'
import { type LocalParts, localParts } from './local-parts.ts'
import { agentProbes, type Probes } from './probes.ts'

export interface RunOptions {
  readonly config: AgentConfig
  readonly warnings: readonly string[]
  readonly version: string
  /** what listens already, where this process waited before; default: opened here */
  readonly probes?: Probes
  /** what runs already, where this process waited before; default: opened here */
  readonly local?: LocalParts
  /** who we are by certificate, where this machine joined, where that is kept, and what we may change on the cluster */
  readonly member?: {
    readonly identity: MemberIdentity
    readonly store: IdentityStore
    readonly rights: AgentRights
    /** given since it joined: for where it must join anew */
    readonly newToken?: JoinText
  }
}

/** As of the hub's data folder: a later form than this one would be thrown away as damage. docs/guide/upgrade.md */
const BUFFER_FORMAT = { format: 1, readableFrom: 1 }

/**
 * Runs the agent until SIGTERM or SIGINT; a second signal ends the process at once.
 * @throws FleetError where it cannot start: no way into a cluster, the buffer held by another process, the port taken
 */
export async function runAgent({ config, warnings, version, member, ...options }: RunOptions): Promise<void> {
  const logger = createLogger(config.logLevel, { role: 'agent', version, cluster: config.cluster })
  for (const warning of warnings) logger.warn({}, warning)
  await keepPrivate(config.buffer.directory)
  const ours = { ...BUFFER_FORMAT, program: version }
  const claimBuffer = await claimFormat(config.buffer.directory, { what: "agent's buffer", ours, logger })
  const metrics = options.probes?.metrics ?? new Metrics()
  countBuild(metrics, version)
  const stopAsked = signalled()
  let agent: Agent | undefined
  let kube: ClientByTimeout | undefined
  const userAgent = `clusterpulse-agent/${version}`
  let joined: ReturnType<typeof keptMember> | undefined
  const { ingesterAddress } = config
  const hasHub = member !== undefined || ingesterAddress !== undefined
  const local = options.local ?? (await localParts(config, { logger, metrics }))
  const { name, leadership, inventory } = local
  const collecting: Part = {
    name: 'agent',
    async start() {
      joined = member && keptMember(member, { version, userAgent, logger })
      const access = await clusterAccess(config)
      kube = new ClientByTimeout(access)
      const kubelet = (verifyTls: boolean): ReadSummary => {
        const read = kubeletSummaries(access, verifyTls)
        return (_, node, timeoutMs, signal) => read(node, timeoutMs, signal)
      }
      const token = tokenSource(config.token)
      agent = await Agent.open({
        cluster: config.cluster,
        version,
        name,
        directory: config.buffer.directory,
        buffer: config.buffer,
        plan: { intervalMs: config.intervalMs, operatorScanIntervalMs: config.operatorScanIntervalMs },
        token,
        kube: (timeoutMs) => (kube as ClientByTimeout).get(timeoutMs), // set above
        kubelet: { verified: kubelet(true), unverified: kubelet(false) },
        transport:
          joined?.transport ??
          grpcTransport({
            address: ingesterAddress ?? '', // the part runs where there is a hub
            token,
            ...(config.tls && { tls: config.tls }),
            userAgent,
          }),
        ...(joined && { onTrust: (trust: HubTrust) => joined?.trust(trust) }),
        ...(member && { collectors: memberCollectors({ [CLAIMS.rights]: agentRightsText(member.rights) }) }),
        feeds: [inventory?.feed ?? noInventory],
        metrics,
        logger,
      })
      await claimBuffer()
    },
    async stop() {
      await joined?.stop()
      await agent?.stop()
      await kube?.[Symbol.asyncDispose]()
    },
  }
  const about = {
    status: () => agent?.status(),
    ...(inventory && { inventory: () => inventory.report() }),
    ...(leadership && { leadership }),
    hasHub,
  }
  const { probes = agentProbes({ address: config.healthAddress, metrics, logger, about, version }) } = options
  probes.tellOf(about)
  const parts = [probes, ...local.parts, ...(hasHub && !leadership ? [collecting] : [])]
  const running = await startParts(parts, { logger })
  let led: RunningParts | undefined
  if (hasHub && leadership) {
    logger.info({ agent: name }, 'standing by until this replica leads')
    const stopping = new AbortController()
    void stopAsked.then(() => stopping.abort())
    await leadership.won(stopping.signal)
    if (!stopping.signal.aborted) led = await startParts([collecting], { logger })
  }
  if (hasHub && (led || !leadership))
    logger.info(
      {
        ...{ agent: name, ingester: ingesterAddress, tls: config.tls !== undefined },
        ...(member && { key: keyId(member.identity.key).slice(0, 16) }),
      },
      'collecting; where two agents use one identity, the hub names each by this name and key',
    )
  else if (!hasHub) logger.info({}, 'no hub is set: inventory alone')
  logger.info({ signal: await stopAsked }, 'stopping')
  await led?.stop()
  await running.stop()
  process.exit(0)
}

/** The way to the hub by a certificate that is renewed in time; the stream is opened anew with each. */
function keptMember(
  { identity, store, newToken }: NonNullable<RunOptions['member']>,
  { version, userAgent, logger }: { version: string; userAgent: string; logger: Logger },
) {
  const membership = new Membership(identity, {
    ...{ store, version, logger, clock: systemClock, random: Math.random },
    ...(newToken && { newToken }),
    onRenewed: () => transport.reopen(),
  })
  const transport: MemberTransport = memberTransport(() => membership.identity, {
    userAgent,
    onWelcome: () => membership.welcomed(),
    onRefused: (how) => membership.refused(how),
    why: () => membership.why,
  })
  return {
    transport,
    trust: (trust: HubTrust) => membership.trust(trust, transport.address),
    stop: () => membership[Symbol.asyncDispose](),
  }
}

function signalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130)
        asked = true
        resolve(signal)
      })
    }
    // Started by a hub for its simulated cluster: without that hub, killed as it may be, there is nothing to push for.
    process.once('disconnect', () => resolve('SIGTERM'))
    // It may have gone before anybody listened.
    if (process.connected === false) resolve('SIGTERM')
  })
}

function tokenSource(token: AgentConfig['token']): () => Promise<string | undefined> {
  if (token === undefined) return async () => undefined
  if ('value' in token) return async () => token.value
  return async () => (await readFile(token.file, 'utf8')).trim()
}

/** One client at a time; a plan with another limit gets a new one, and calls that run on the old one end by themselves. */
class ClientByTimeout implements AsyncDisposable {
  readonly #access: ClusterAccess
  #client: { readonly timeoutMs: number; readonly kube: OwnedKubeClient } | undefined

  constructor(access: ClusterAccess) {
    this.#access = access
  }

  get(timeoutMs: number): KubeClient {
    if (this.#client?.timeoutMs === timeoutMs) return this.#client.kube
    // A round and collections of sources may still work with it.
    this.#client?.kube.retire()
    const kube = createKubeClient(this.#access, { timeoutMs, qps: 50, burst: 100 })
    this.#client = { timeoutMs, kube }
    return kube
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.kube[Symbol.asyncDispose]()
  }
}
