import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryPolicies } from '#access'
import { Looks } from '#attention'
import { MemoryCatalog } from '#catalog'
import type { FillingView } from '#http'
import { minutes, systemClock } from '#model'
import type { Authorities } from '#registration'
import { MemoryRegistries } from '#registry'
import { countBuild, keepPrivate, Metrics, type Part } from '#runtime'
import { type SimulatedRegistry, simulateRegistry } from '#simulator'
import { EmbeddedStateStore } from '#state'
import type { Env, UpConfig } from './config.ts'
import { type ControlPlane, HUB_USER, kubeconfigOf, openControlPlane, unneededKeysWords } from './control-plane.ts'
import { DeclaredOnce } from './declared-once.ts'
import { simulatedMembers } from './demo.ts'
import { fillPast } from './demo-past.ts'
import { declareDemoPolicies } from './demo-policies.ts'
import { declareDemoRegistries, declareDemoSources, demoRepositories } from './demo-sources.ts'
import { demoWords } from './demo-words.ts'
import { claimDataFolder } from './format.ts'
import { historyOf } from './history.ts'
import { keptIn, recordedBy } from './joins.ts'
import { observerOfMembers } from './member-audit.ts'
import { auditEntryOfAuthority, memberAuthority, memberCertificates } from './member-authority.ts'
import { refusalsCounted } from './member-metrics.ts'
import { declareMembers, knownMembers, knownSince, kubeconfigMembers, type Member } from './members.ts'
import { monitorPart } from './monitor-listener.ts'
import { HUB_NAMESPACE } from './object-names.ts'
import { fleetKubeconfigs, ownHubWords, withoutHub } from './own-kubeconfig.ts'
import { inBackground, part, type RoleOptions, roleLogger, runUntilSignal } from './run.ts'
import { serving } from './serve.ts'
import { servedMembers } from './served-members.ts'
import { createSingleProcessHub } from './single-process-hub.ts'
import { chooseFleet, fleetStartWords, fleetWords, type UpFleet } from './up-fleet.ts'

/** As far back as the page looks. */
const MONTH_MS = 30 * 24 * minutes(60)

export interface UpOptions extends RoleOptions<UpConfig> {
  readonly demo: boolean
  /** start with the objects that are left where some were lost */
  readonly acceptLoss?: boolean
  readonly seed: number
  readonly kubeconfig?: string
  /** empty: all */
  readonly contexts: readonly string[]
  readonly environment: Env
}

/** The whole hub in one process: control plane, simulated or real members, collection, embedded stores, page and API. */
export async function up({
  config,
  warnings,
  version,
  demo,
  acceptLoss = false,
  seed,
  kubeconfig,
  contexts,
  environment,
}: UpOptions): Promise<void> {
  const { dataDir } = config
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  await keepPrivate(dataDir)
  const logger = roleLogger(config.logLevel, 'up', version, warnings)
  const claimFolder = await claimDataFolder(dataDir, { program: version, logger, hasObjects: true })
  const metrics = new Metrics({ role: 'up' })
  countBuild(metrics, version)

  const { paths, isNamed, own } = demo
    ? { paths: [], isNamed: false, own: [] }
    : await fleetKubeconfigs(kubeconfig, environment, dataDir)
  // Read before anything starts: a broken kubeconfig is one sentence, not half a hub.
  const read = paths.length > 0 ? await kubeconfigMembers(paths, contexts, logger) : undefined

  const authority = memberAuthority({ dataDir, config: config.controlPlane.memberCa, logger })
  const authorities: Authorities = {
    lacksIssuerOf: (life) => authority.get().lacksIssuerOf(life),
    onChange: (listener) => authority.get().onChange(listener),
  }
  const controlPlane = part<ControlPlane>('control-plane', () =>
    openControlPlane({
      ...{ dataDir, ...config.controlPlane, version, acceptLoss, logger, metrics },
      openAuthority: authority.open,
      observer: observerOfMembers(() => serve.audit(), HUB_USER, refusalsCounted(metrics)),
    }),
  )
  const certificates = memberCertificates({
    authority: authority.get,
    hub: () => controlPlane.get().client,
    namespace: HUB_NAMESPACE,
    trail: () => serve.audit(),
    metrics,
    logger,
  })
  let fleet: UpFleet | undefined
  const isDemo = () => fleet?.kind === 'demo'
  const choose: Part = {
    name: 'fleet',
    start() {
      const { server, ca } = controlPlane.get()
      const others = read && withoutHub(read, { ca, chosen: contexts })
      const known = knownMembers(server, kubeconfigOf(dataDir))
      fleet = chooseFleet({ demo, given: others?.given, isNamed, known, dataDir })
      const leftOut = [...own, ...(others?.own ?? [])]
      if (leftOut.length > 0) say(ownHubWords(leftOut))
      say(fleetStartWords(fleet, demo || leftOut.length > 0))
      if (isDemo()) say(demoWords(config.history.kind !== 'off'))
      return Promise.resolve()
    },
    stop: () => Promise.resolve(),
  }
  const simulation = part('simulation', () =>
    simulatedMembers(isDemo(), {
      seed,
      directory: join(dataDir, 'simulated-agents'),
      executable: [process.execPath, ...process.execArgv, process.argv[1] ?? ''],
      withAgent: config.ingester.enabled,
      logger: logger.child({ part: 'simulation' }),
    }),
  )
  let members: readonly Member[] = []
  const declare: Part = {
    name: 'members',
    async start() {
      const { server } = controlPlane.get()
      const declared = DeclaredOnce.open(server, acceptLoss)
      // The hub itself, where an earlier start took it for a cluster.
      const isOver = [kubeconfigOf(dataDir), ...(read?.paths ?? [])]
      if (fleet?.kind === 'kubeconfig') {
        members = fleet.given.members
        const { leftOut } = fleet.given
        await declareMembers(server, members, {
          declared,
          paths: isOver,
          leftOut,
          isNamed: contexts.length > 0,
          logger,
        })
      } else if (fleet?.kind === 'demo') {
        members = simulation.get().members
        await declareMembers(server, members, { declared, paths: isOver, logger })
        await declareDemoPolicies(declared)
        await declareDemoSources(declared)
        await declareDemoRegistries(server, declared, demoRegistry.get().url)
        await declared.save()
      } else await declareMembers(server, [], { declared, paths: isOver.slice(0, 1), logger })
      if (declared.deleted.length > 0) say(deletedWords(declared.deleted))
    },
    stop: () => Promise.resolve(),
  }
  const isSimulated = (name: string) => isDemo() && members.some((member) => member.name === name)
  const policies = new MemoryPolicies()
  const catalog = new MemoryCatalog()
  const attention = part('attention', () => Promise.resolve(new Looks({ logger: logger.child({ part: 'attention' }) })))
  const registries = part<MemoryRegistries>('registries-store', () =>
    MemoryRegistries.open({
      directory: join(dataDir, 'registries'),
      clock: systemClock,
      logger: logger.child({ part: 'registries' }),
    }),
  )
  const demoRegistry = part<SimulatedRegistry>('demo-registry', () =>
    simulateRegistry({ repositories: demoRepositories }),
  )
  const collect = createSingleProcessHub({
    dataDir,
    logDirectory: () => join(dataDir, 'log'),
    policies: () => policies,
    catalog: () => catalog,
    registries: registries.get,
    namespace: HUB_NAMESPACE,
    collection: config.collection,
    // For the API, which goes by the CA and the group alone.
    trail: () => serve.audit(),
    members: config.members && { ...config.members, revoke: (of) => authority.get().revoke(of), authorities },
    attention: attention.get,
    kubeletsOf: (name) => (isSimulated(name) ? 'proxy' : config.collection.kubelets),
    hub: () => controlPlane.get().client,
    openState: () =>
      EmbeddedStateStore.open({ directory: join(dataDir, 'state'), logger: logger.child({ part: 'state' }) }),
    version,
    ingester: config.ingester,
    ...(config.members && {
      joins: {
        clientRoots: () => Promise.resolve(authority.get().pem),
        trusted: () => Promise.resolve(authority.get().pem),
        record: recordedBy(keptIn(() => serve.audit())),
      },
    }),
    logMaxBytes: config.logMaxBytes,
    publish: config.publish,
    ...historyOf(config.history, { directory: () => join(dataDir, 'history'), logger }),
    allowLocalKubeconfig: true,
    metrics,
    logger,
  })
  const memberIndex =
    config.members &&
    servedMembers({
      ...{ hub: () => controlPlane.get().client, namespace: HUB_NAMESPACE, authorities, logger },
      administratorsDecide: true,
    })
  const filling = new Map<string, FillingView>()
  const serve = serving({
    web: config.web,
    policies: () => policies,
    catalog: () => catalog,
    registries: registries.get,
    ...(memberIndex && { members: memberIndex.get }),
    attention: attention.get,
    hub: () => controlPlane.get().client,
    state: collect.state,
    events: collect.events,
    history: collect.history,
    filling: (cluster) => filling.get(cluster),
    trySource: collect.trySource,
    metrics,
    logger,
    version,
    readiness: { log: () => collect.logFault(), agents: () => collect.receiverFault() },
    // Anybody may ask, and why it is so may name paths: those are in the log and the ConfigMap.
    checks: { authority: () => authority.get().fault && 'the CA of members is not kept any more: see the log' },
  })

  const monitor =
    config.monitor &&
    monitorPart({
      config: config.monitor,
      tls: config.web.access.tls,
      state: collect.state,
      ...(memberIndex && { members: memberIndex.get }),
      attention: attention.get,
      historyDirectory: join(dataDir, 'monitor-history'),
      metrics,
      logger,
    })

  // Behind all others: the page and the first rounds do not wait for it.
  const past = inBackground(
    'demo-past',
    async (signal) => {
      const [store, at] = [collect.history(), systemClock.now()]
      if (!isDemo() || !store || config.history.kind === 'off') return
      const batches = await fillPast(
        {
          known: knownSince(controlPlane.get().server, members),
          reachMs: config.history.kind === 'duckdb' ? Math.min(config.history.retentionMs, MONTH_MS) : MONTH_MS,
          filling,
          ...{ state: collect.state(), ingester: collect.ingester(), history: store, clock: systemClock },
        },
        signal,
      )
      const ms = systemClock.now() - at
      logger.info(
        { batches, ms },
        signal.aborted ? 'the simulated past waits for the next start' : 'the simulated past is in history',
      )
    },
    logger,
  )

  await runUntilSignal(
    [
      controlPlane,
      // The objects are locked by now: no other hub has the folder.
      { name: 'format', start: claimFolder, stop: () => Promise.resolve() },
      authority.keeping,
      certificates,
      choose,
      attention,
      simulation,
      { ...demoRegistry, start: async (signal) => (isDemo() ? demoRegistry.start(signal) : undefined) },
      registries,
      declare,
      ...collect.parts,
      ...(memberIndex ? memberIndex.parts : []),
      ...serve.parts,
      ...(monitor ? [monitor.part] : []),
      past,
    ],
    logger,
    () => {
      const made = authority.madeAnew()
      if (made) serve.audit()?.record(auditEntryOfAuthority(made, systemClock.now()))
      say(
        `ClusterPulse shows ${fleet ? fleetWords(fleet) : ''} on ${serve.address()}   (objects: kubectl --kubeconfig ${controlPlane.get().kubeconfigPath})`,
      )
      if (monitor) say(`Cluster Monitor's interface is on ${monitor.address()}`)
      if (config.collection.readOnlyMembers)
        say('Members are only read: no agent is deployed, changed or removed there.')
      const unneeded = unneededKeysWords(controlPlane.get())
      if (unneeded) say(unneeded)
      say('Ctrl-C ends it.')
    },
  )
}

const deletedWords = (deleted: readonly string[]): string =>
  `  Deleted in this folder, and not made again: ${deleted.slice(0, 8).join(', ')}${deleted.length > 8 ? ` and ${deleted.length - 8} more` : ''}. (A cluster of a kubeconfig comes back with --context NAME.)`

const say = (text: string): void => void process.stdout.write(`${text}\n`)
