import { X509Certificate } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generateServingCertificate } from '#apiserver'
import type { SourceCatalog } from '#catalog'
import { AgentCredentials, type AgentInstall, agentPlans, type Defaults, imageOf } from '#connections'
import { AgentServer, type Agents, type HubTrust, type Ingester } from '#ingest'
import { HubJoins, JoinTokens, lostAuthority, Members } from '#joining'
import { isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type ClusterName, FleetError, minutes, type OwnerPlace, seconds, systemClock } from '#model'
import { type Metrics, retryForever } from '#runtime'
import type { IngesterConfig } from './config-push.ts'
import type { HubJoinsWiring } from './joins.ts'
import { listenAtKept } from './kept-port.ts'
import { INGESTER_MAP } from './object-names.ts'
import type { HubLogger } from './run.ts'

export interface AgentReceiverOptions {
  readonly config: IngesterConfig
  /** which of the processes that receive agents this is */
  readonly place: OwnerPlace
  /** where the others are reached; needed where there are others */
  readonly socketDirectory?: string
  readonly namespace: string
  readonly dataDir: string
  readonly version: string
  readonly hub: () => KubeClient
  readonly ingester: () => Ingester
  readonly defaults: Defaults
  /** what agents are asked to collect besides */
  readonly catalog: SourceCatalog
  /** machines may ask to become members, where there is TLS; absent: they may not */
  readonly joins?: HubJoinsWiring
  readonly metrics: Metrics
  readonly logger: HubLogger
}

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const CA_READ_EVERY_MS = minutes(1)
const MEMBERS_WITHIN_MS = seconds(5)
/** What changes while the hub runs, as its CA, is told that soon. */
const PUBLISHED_EVERY_MS = seconds(5)

/** SHA-256 of a certificate in PEM, as agents compare it: hex, lower case, no colons. */
export const fingerprintOf = (pem: string): string =>
  new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase()

/**
 * The hub's side of push: credentials, TLS, the stream server, what agents and people are told of it. The server runs while
 * this process leads; what asks for live streams before that is told there are none.
 */
export class AgentReceiver implements AsyncDisposable {
  readonly #options: AgentReceiverOptions
  readonly credentials: AgentCredentials
  readonly #joins: { readonly desk: HubJoins; readonly members: Members } | undefined
  readonly #stop = new AbortController()
  readonly #listeners = new Set<Parameters<Agents['onChange']>[0]>()
  #server: AgentServer | undefined
  #address: string
  #caPem: string | undefined
  #fault: string | undefined
  #caLoop: Promise<void> | undefined

  private constructor(options: AgentReceiverOptions) {
    this.#options = options
    const { config, hub, namespace, logger } = options
    this.#address = config.advertise[0] ?? ''
    const joins = config.tls.mode === 'off' ? undefined : options.joins
    const members = joins && new Members({ hub: hub(), clock: systemClock, logger: logger.child({ part: 'members' }) })
    this.credentials = new AgentCredentials({
      ...(members && { members }),
      hub: hub(),
      namespace,
      acceptConnectionTokens: config.acceptConnectionTokens,
      logger: logger.child({ part: 'credentials' }),
    })
    this.#joins = joins && members && { members, desk: this.#openDesk(joins, members) }
  }

  /** Begins to read credentials; does not wait for the hub's API, which may be away for now. */
  static async open(options: AgentReceiverOptions): Promise<AgentReceiver> {
    const receiver = new AgentReceiver(options)
    const { config, logger } = options
    if (config.tls.mode === 'off') {
      logger.warn({}, 'agents are received without TLS: their tokens and numbers can be read on the way')
    }
    if (config.tls.mode === 'files' && !config.useSystemCa) receiver.#caLoop = receiver.#readCa()
    receiver.#joins?.members.start()
    receiver.#joins?.desk.start()
    void receiver.credentials.start(receiver.#stop.signal).catch((error: unknown) => {
      if (!receiver.#stop.signal.aborted) logger.error({ err: error }, 'credentials of agents cannot be read')
    })
    return receiver
  }

  /** The live streams, whichever server carries them. */
  readonly agents: Agents = {
    facts: (cluster) => this.#server?.agents.facts(cluster),
    isDelivering: (cluster) => this.#server?.agents.isDelivering(cluster) ?? false,
    disconnect: (cluster, code, message) => this.#server?.agents.disconnect(cluster, code, message),
    onChange: (listener) => {
      this.#listeners.add(listener)
      return () => this.#listeners.delete(listener)
    },
  }

  /** Why the agent of a member would be refused, with what helps; undefined: it would not, or that is not known. */
  async whyRefused(cluster: ClusterName): Promise<string | undefined> {
    const member = this.#joins?.members.get(cluster)
    return member && lostAuthority(member, await this.#options.joins?.trusted())
  }

  /** How agents are deployed on members. The address is known when the server listens. */
  install(): AgentInstall {
    const { config, version, namespace } = this.#options
    const address = () => this.#address
    const asksKubelets = this.#options.defaults.usage?.kubelets?.startsWith('direct') === true
    return {
      image: config.agentImage,
      version,
      get address() {
        return address()
      },
      tls: config.tls.mode !== 'off',
      ...(asksKubelets && { asksKubelets }),
      // '' where it is not known yet: nothing is deployed that would trust the wrong authorities.
      caPem: () => (config.useSystemCa || config.tls.mode === 'off' ? undefined : (this.#caPem ?? '')),
      ...(config.agentBuffer && { bufferVolume: config.agentBuffer }),
      keepsOriginals: config.acceptConnectionTokens,
      ...(config.agentImagePullSecret !== undefined && { imagePullSecret: config.agentImagePullSecret }),
      ...(config.serviceName !== undefined && { serverName: `${config.serviceName}.${namespace}.svc` }),
    }
  }

  /** Why agents are not received, although this process leads; undefined where they are, or where it does not. */
  fault(): string | undefined {
    return this.#fault
  }

  /** Serves agents until the signal aborts. */
  async whileLeading(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options
    await this.credentials.start(signal)
    await this.#knowsMembers(signal)
    const server = await retryForever(
      (attempt) =>
        this.#listen().catch((error: unknown) => {
          this.#fault = FleetError.from(error).message
          void this.#options.ingester().agentsKeptOut()
          if (attempt % 10 === 0) logger.error({ err: error }, 'agents cannot be received yet')
          throw error
        }),
      { clock: systemClock, signal, fromMs: seconds(1), toMs: seconds(30) },
    )
    this.#fault = undefined
    this.#server = server
    const unlisten = server.agents.onChange((cluster) => {
      for (const listener of this.#listeners) listener(cluster)
    })
    logger.info({ address: server.address, advertised: this.#address }, 'agents are received')
    const publishing = new AbortController()
    const published = this.#publishUntil(publishing.signal)
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    publishing.abort()
    await published
    this.#server = undefined
    unlisten()
    await server[Symbol.asyncDispose]()
  }

  /** Who comes before that would be refused, and has done nothing wrong. A hub without these kinds never knows them. */
  async #knowsMembers(signal: AbortSignal): Promise<void> {
    const patience = AbortSignal.any([signal, AbortSignal.timeout(MEMBERS_WITHIN_MS)])
    await this.#joins?.members.synced(patience).catch(() => undefined) // then without
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#caLoop
    await this.#joins?.desk[Symbol.asyncDispose]()
    await this.credentials[Symbol.asyncDispose]()
    await this.#joins?.members[Symbol.asyncDispose]()
  }

  async #listen(): Promise<AgentServer> {
    const { config, place, socketDirectory, ingester, namespace, defaults, metrics, logger } = this.#options
    const others = place.of > 1 && socketDirectory !== undefined ? { place, directory: socketDirectory } : undefined
    const start = async (port: number) =>
      AgentServer.start({
        host: config.host,
        port,
        tls: await this.#tls(),
        verifier: this.credentials,
        plans: agentPlans(this.credentials, namespace, defaults, this.#options.catalog),
        ingester: ingester(),
        ...(this.#joins && { joins: this.#joins.desk, trust: () => this.#trust() }),
        limits: { maxMessageBytes: config.maxMessageBytes, backlogBytesPerSecond: config.backlogBytesPerSecond },
        metrics,
        logger: logger.child({ part: 'streams' }),
        ...(others && { others }),
      })
    const server = await this.#atPort(start)
    // A hub on one machine tells where it is; one behind a Service must be told.
    if (this.#address === '' && config.tls.mode === 'own') this.#address = `${config.host}:${server.address.port}`
    return server
  }

  async #atPort(listen: (port: number) => Promise<AgentServer>): Promise<AgentServer> {
    const { config, dataDir, logger } = this.#options
    if (config.tls.mode !== 'own' || config.port === 0) return listen(config.port)
    const directory = join(dataDir, 'ingester')
    await mkdir(directory, { recursive: true })
    const file = join(directory, 'port')
    const onElsewhere = (port: number, since: 'now' | 'before') =>
      logger.warn(
        { wanted: config.port, port, file },
        since === 'now'
          ? 'the port for agents is taken; a free one is theirs from now on'
          : 'agents find this hub at another port than is set, which was taken when it began: to use that one, delete the file and let agents join anew',
      )
    return listenAtKept(file, config.port, {
      ...{ listen, onElsewhere, portOf: (server) => server.address.port },
      knownTo: 'the agents of this hub',
    })
  }

  #openDesk(wiring: HubJoinsWiring, members: Members): HubJoins {
    const { hub, namespace, place, logger } = this.#options
    const shared = { hub: hub(), clock: systemClock }
    return new HubJoins({
      ...shared,
      ...wiring,
      ...{ members, tokens: new JoinTokens({ ...shared, namespace }), tellsMembers: place.index === 1 },
      serverRoots: () => this.#serverRoots(),
      logger: logger.child({ part: 'joins' }),
    })
  }

  #serverRoots(): string {
    return this.#options.config.useSystemCa ? '' : (this.#caPem ?? '')
  }

  /** An address that nobody gave may be one that members cannot reach. */
  #trust(): HubTrust {
    return { roots: this.#serverRoots(), addresses: this.#options.config.advertise }
  }

  #clientCas() {
    const { joins } = this.#options
    return this.#joins && joins ? { clientCas: joins.clientRoots } : {}
  }

  async #tls() {
    const { config, dataDir, logger } = this.#options
    if (config.tls.mode === 'off') return 'plaintext' as const
    if (config.tls.mode === 'files') {
      const { certFile, keyFile, clientCaFile } = config.tls
      return { certFile, keyFile, ...(clientCaFile !== undefined && { clientCaFile }), ...this.#clientCas() }
    }
    const directory = join(dataDir, 'ingester', 'pki')
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const { cert, key, ca } = await generateServingCertificate({ hosts: config.tls.hosts, dir: directory, logger })
    this.#caPem = ca
    const files = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key'), ...this.#clientCas() }
    for (const [path, text] of [
      [files.keyFile, key],
      // With its CA, so that agents which know only the fingerprint of that find it.
      [files.certFile, `${cert}${ca}`],
    ] as const) {
      await writeFile(`${path}.new`, text, { mode: 0o600 })
      await rename(`${path}.new`, path)
    }
    return files
  }

  /** The CA that agents are handed, where the platform or a person keeps it. */
  async #readCa(): Promise<void> {
    const { logger } = this.#options
    const { signal } = this.#stop
    let reported = ''
    while (!signal.aborted) {
      let fault = ''
      try {
        this.#caPem = await this.#handedCa(signal)
      } catch (error) {
        if (signal.aborted) return
        fault = error instanceof Error ? error.message : String(error)
      }
      if (fault !== '' && fault !== reported) {
        logger.error(
          {},
          `the CA for agents cannot be read: ${fault}; name it with COLLECTOR_CA_FILE or COLLECTOR_CA_CONFIGMAP, or set INGESTER_TLS_USE_SYSTEM_CA`,
        )
      }
      reported = fault
      await systemClock.sleep(CA_READ_EVERY_MS, signal)
    }
  }

  async #handedCa(signal: AbortSignal): Promise<string> {
    const { hub, namespace } = this.#options
    const { ca } = this.#options.config
    if ('file' in ca) {
      const text = await readFile(ca.file, 'utf8')
      if (text.includes('BEGIN CERTIFICATE')) return text
      throw new Error(`${ca.file} holds no certificate in PEM`)
    }
    const key = { name: ca.configMap, namespace: ca.namespace ?? namespace }
    const map = await hub().get(configMaps, key, signal)
    const text = (map?.data as Record<string, string> | undefined)?.[ca.key]
    if (text) return text
    throw new Error(
      `the ConfigMap ${key.namespace}/${key.name} ${map === undefined ? 'does not exist' : `has no key ${ca.key}`}`,
    )
  }

  /** One of several owners tells for all: what there is to tell is the same. */
  async #publishUntil(signal: AbortSignal): Promise<void> {
    const { hub, place } = this.#options
    if (place.index !== 1) return
    const pace = { clock: systemClock, signal, fromMs: seconds(1), toMs: minutes(1) }
    let told = ''
    while (!signal.aborted) {
      const data = this.#published()
      const text = JSON.stringify(data)
      if (text !== told)
        await retryForever((attempt) => this.#publish(hub(), data, attempt), pace).catch(() => undefined) // ended by the signal
      told = text
      await systemClock.sleep(PUBLISHED_EVERY_MS, signal)
    }
  }

  /** Where agents reach this hub, and by which CA they know it. */
  #published() {
    const { config } = this.#options
    const install = this.install()
    return {
      address: this.#address,
      addresses: (config.advertise.length > 0 ? config.advertise : [this.#address]).join(),
      tls: String(install.tls),
      serverName: install.serverName ?? '',
      image: imageOf(install),
      imagePullSecret: install.imagePullSecret ?? '',
      bufferSize: install.bufferVolume?.size ?? '',
      bufferStorageClass: install.bufferVolume?.storageClass ?? '',
      'ca.crt': config.useSystemCa ? '' : (this.#caPem ?? ''),
      fingerprint: this.#caPem === undefined || config.tls.mode !== 'own' ? '' : fingerprintOf(this.#caPem),
    }
  }

  /** Tells people's `connect`. */
  async #publish(hub: KubeClient, data: Readonly<Record<string, string>>, attempt: number): Promise<void> {
    const { namespace, logger } = this.#options
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: INGESTER_MAP, namespace, labels: { 'app.kubernetes.io/part-of': 'clusterpulse' } },
      data,
    }
    try {
      await hub.patch(configMaps, { name: INGESTER_MAP, namespace }, object, {
        kind: 'apply',
        fieldManager: 'clusterpulse-hub',
        force: true,
      })
    } catch (error) {
      if (attempt === 0 || isKubeError(error, 'forbidden'))
        logger.warn({ err: error }, '`clusterpulse connect` cannot be told where agents reach this hub yet')
      throw error
    }
  }
}
