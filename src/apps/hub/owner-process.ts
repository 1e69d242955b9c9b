import { isDeepStrictEqual } from 'node:util'
import type { Looks } from '#attention'
import { RedisCatalog } from '#catalog'
import { createKubeClient, type KubeClient } from '#kube'
import { FleetError, invariant, ownerName, systemClock } from '#model'
import { type Channel, channelToParent } from '#processes'
import { keepHeapTight, Metrics, type RunningParts, startParts } from '#runtime'
import { RedisStateStore } from '#state'
import type { ManagerConfig } from './config.ts'
import { historyOf } from './history.ts'
import { hubAccess } from './hub-access.ts'
import { joinsOnKubernetes, recordedBy } from './joins.ts'
import { memberMetrics } from './member-metrics.ts'
import { createOwner, type Owner } from './owner.ts'
import type { ToManager, ToOwner } from './owner-messages.ts'
import { redisConnection } from './redis.ts'
import { HUB_CLIENT, type HubLogger, part, type RoleOptions, roleLogger } from './run.ts'
import { sharedLooks } from './shared-looks.ts'

const LOOK_EVERY_MS = 1_000

/**
 * One of the processes that share a fleet, as the manager started it: log, state, history, connections and agents of its
 * clusters. It ends when the manager says so, and at once when that is gone. A signal of the terminal is the manager's
 * matter; SIGTERM ends this process alone.
 */
export async function ownerProcess({ config, version }: RoleOptions<ManagerConfig>): Promise<void> {
  keepHeapTight()
  const process_ = new OwnerProcess(config, version)
  process.on('SIGINT', () => undefined)
  process.on('SIGTERM', () => process_.end())
  process.exit(await process_.ended)
}

class OwnerProcess {
  /** the exit code */
  readonly ended: Promise<number>
  readonly #config: ManagerConfig
  readonly #version: string
  readonly #channel: Channel<ToManager, ToOwner>
  readonly #stop = new AbortController()
  #end: (code: number) => void = () => undefined
  #metrics = new Metrics()
  #owning: Owner | undefined
  #running: Promise<RunningParts | undefined> = Promise.resolve(undefined)

  constructor(config: ManagerConfig, version: string) {
    this.#config = config
    this.#version = version
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#channel = channelToParent<ToManager, ToOwner>({
      heard: (message) => {
        if (message.kind === 'start') this.#start(message)
        else if (message.kind === 'end') this.end()
      },
      asked: (message) => this.#asked(message),
      // Another manager may lead by now, and start owners of these clusters: nothing more may be written.
      closed: () => this.#end(1),
    })
  }

  /** Ends by itself what it does, then the process. */
  end(): void {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    void this.#running.then((running) => running?.stop()).finally(() => this.#end(0))
  }

  #start(message: Extract<ToOwner, { kind: 'start' }>): void {
    const { place } = message
    const name = ownerName(place) ?? 'owner'
    const logger = roleLogger(this.#config.logLevel, 'manager', this.#version, []).child({ process: name })
    this.#metrics = new Metrics({ role: 'manager', process: name })
    this.#running = this.#open(message, logger).catch((error: unknown) => {
      logger.error({ err: error }, FleetError.from(error).message)
      this.#end(1)
      return undefined
    })
    void this.#tellFaults()
  }

  async #open(
    { place, folders, socketDirectory }: Extract<ToOwner, { kind: 'start' }>,
    logger: HubLogger,
  ): Promise<RunningParts> {
    const config = this.#config
    const access = await hubAccess(config.kubeconfig)
    const hub = part<KubeClient>('hub', () => Promise.resolve(createKubeClient(access, HUB_CLIENT)))
    const connection = redisConnection(config.redis)
    const catalog = part<RedisCatalog>('catalog', () =>
      RedisCatalog.open({ connection, clock: systemClock, logger: logger.child({ part: 'catalog' }) }),
    )
    const attention = part<Looks>('attention', () => Promise.resolve(sharedLooks(connection, logger)))
    const owner = createOwner({
      place,
      socketDirectory,
      logDirectory: () => folders.log,
      dataDir: config.dataDir,
      namespace: config.namespace,
      collection: config.collection,
      attention: attention.get,
      version: this.#version,
      ingester: config.ingester,
      ...(config.members && {
        joins: joinsOnKubernetes({
          ...{ hub: hub.get, namespace: config.namespace, logger },
          // Without the manager this process ends, too.
          record: recordedBy((entry) => this.#channel.ask<void>({ kind: 'audited', entry }).catch(() => undefined)),
        }),
      }),
      logMaxBytes: config.logMaxBytes,
      publish: config.publish,
      hub: hub.get,
      openState: (logId) =>
        RedisStateStore.open({
          connection,
          logId,
          waits: true,
          program: this.#version,
          owner: place,
          ttlMs: config.collection.snapshotTtlMs,
          retentionMs: config.collection.seriesRetentionMs,
          lists: config.resourceLists,
          logger: logger.child({ part: 'state' }),
        }),
      catalog: catalog.get,
      ...historyOf(config.history, { directory: () => folders.history, logger }),
      onRoleGaps: (cluster, gaps) => this.#channel.tell({ kind: 'role-gaps', cluster, gaps }),
      allowLocalKubeconfig: false,
      metrics: this.#metrics,
      logger,
    })
    this.#owning = owner
    memberMetrics(this.#metrics, () => owner.state().clusters())
    return startParts([hub, catalog, attention, ...owner.parts], { logger })
  }

  async #asked(message: ToOwner): Promise<unknown> {
    if (message.kind === 'metrics') return this.#metrics.moment()
    invariant(message.kind === 'remove-source', 'the manager asks for metrics and removals')
    await this.#running
    const owner = this.#owning
    invariant(owner, 'an owner that runs owns something')
    return owner.ingester().removeSource(message.cluster, message.source)
  }

  async #tellFaults(): Promise<void> {
    let sent: Readonly<Record<string, string>> | undefined
    while (!this.#stop.signal.aborted) {
      const faults = this.#faults()
      if (!isDeepStrictEqual(sent, faults)) this.#channel.tell({ kind: 'faults', faults })
      sent = faults
      await systemClock.sleep(LOOK_EVERY_MS, this.#stop.signal)
    }
  }

  #faults(): Readonly<Record<string, string>> {
    const owner = this.#owning
    try {
      if (!owner) return { start: 'it is starting' }
      const availability = owner.state().availability()
      const faults = {
        redis: availability.state === 'unavailable' ? availability.reason : undefined,
        log: owner.logFault(),
        agents: owner.receiverFault(),
        objects: owner.manager().isSynced ? undefined : 'the objects of the hub are not read yet',
      }
      return Object.fromEntries(
        Object.entries(faults).flatMap(([check, fault]) => (fault === undefined ? [] : [[check, fault]])),
      )
    } catch {
      return { start: 'it is starting' } // a part is asked before it was started
    }
  }
}
