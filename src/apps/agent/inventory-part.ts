import { isKubeError, type KubeClient, namespaces, type OwnedKubeClient, type Resource, whole } from '#kube'
import { FleetError, INVENTORY, type RowFeed, type RowsRead, seconds, systemClock } from '#model'
import type { Part } from '#runtime'
import type { CollectionSettings } from '../inventory-settings.ts'
import type { ServedWebhooks } from '../served-webhooks.ts'
import type { AgentConfig } from './config.ts'
import type { InventoryApiConfig } from './inventory-api-config.ts'
import type { InventoryReport, InventoryRunOptions, RunningInventory } from './inventory-options.ts'
import type { Leadership } from './leadership.ts'

export interface InventoryPartOptions extends Omit<InventoryRunOptions, 'kube' | 'signal'> {
  /** a client of the cluster, of our own */
  readonly connect: () => Promise<OwnedKubeClient>
  /** where it is served; undefined: nowhere */
  readonly api?: InventoryApiConfig
  readonly webhooks: AgentConfig['webhooks']
  /** which replica collects and writes; undefined: there is one */
  readonly leadership: Leadership | undefined
}

export interface InventoryPart {
  readonly part: Part
  report(): InventoryReport
  /** rows of the cluster, or why there are none */
  readonly feed: RowFeed
}

const NOT_INSTALLED = 'the cluster does not have the kinds of inventory (kollect.dev)'
/** Kinds may be installed, and rights given, at any time. */
const LOOK_EVERY_MS = seconds(15)

const kind = (name: string, plural: string): Resource & { readonly kind: string } => ({
  ...{ group: 'kollect.dev', version: 'v1alpha1', kind: name, plural },
  namespaced: !plural.startsWith('kollectcluster'),
})
const KINDS = [
  kind('KollectProfile', 'kollectprofiles'),
  kind('KollectTarget', 'kollecttargets'),
  kind('KollectInventory', 'kollectinventories'),
  kind('KollectDatabaseSink', 'kollectdatabasesinks'),
  kind('KollectSnapshotSink', 'kollectsnapshotsinks'),
  kind('KollectEventSink', 'kollecteventsinks'),
  kind('KollectScope', 'kollectscopes'),
  kind('KollectConnectionTest', 'kollectconnectiontests'),
  kind('KollectClusterTarget', 'kollectclustertargets'),
  kind('KollectClusterInventory', 'kollectclusterinventories'),
  kind('KollectClusterScope', 'kollectclusterscopes'),
]

/**
 * Inventory as a part of the agent: waits until the cluster has its kinds, and only then loads what it takes; of several replicas each
 * answers, and one collects. Needs no hub, and nothing of the hub's stops it.
 */
export function inventoryPart(options: InventoryPartOptions): InventoryPart {
  const logger = options.logger.child({ part: 'inventory' })
  const stop = new AbortController()
  let report: InventoryReport = { phase: 'waiting', message: 'it is starting' }
  let kube: OwnedKubeClient | undefined
  let inventory: RunningInventory | undefined
  let reviews: ServedWebhooks | undefined
  let isStandby = false
  let running: Promise<void> | undefined
  let api: AsyncDisposable | undefined
  let nothing: Nothing = { outcome: 'unreachable', code: 'not_collected', message: 'inventory is starting' }
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }

  const begin = async (client: KubeClient): Promise<string | undefined> => {
    const missing = await missingIn(client, options.settings, stop.signal)
    if (missing !== undefined) {
      nothing = missing
      return missing.message
    }
    const { settings, webhooks, leadership } = options
    if (webhooks && !reviews) {
      const { answerReviews } = await import('./inventory-reviews.ts')
      reviews = await answerReviews({ webhooks, settings, kube: client, logger, signal: stop.signal })
    }
    if (leadership) {
      isStandby = true
      await leadership.won(stop.signal)
      isStandby = false
      if (stop.signal.aborted) return 'it is stopping'
    }
    const { openInventory } = await import('./inventory.ts')
    const mustLead = leadership && (() => leadership.mustLead())
    inventory = await openInventory({ ...options, kube: client, logger, signal: stop.signal, mustLead })
    inventory.feed.onChange(changed)
    logger.info({}, 'inventory runs')
    return undefined
  }
  const keep = async (client: KubeClient): Promise<void> => {
    let told = ''
    while (!stop.signal.aborted && !inventory) {
      try {
        const message = await begin(client)
        // Who declares no inventory need not read of it.
        if (message !== undefined && message !== report.message)
          logger[message === NOT_INSTALLED ? 'debug' : 'warn']({ why: message }, 'inventory waits')
        report = { phase: 'waiting', ...(message !== undefined && { message }) }
      } catch (error) {
        if (stop.signal.aborted) return
        const { message } = FleetError.from(error)
        if (message !== report.message) logger.warn({ err: error }, 'inventory cannot begin; it is tried again')
        report = { phase: 'waiting', message }
        nothing = { outcome: 'unreachable', code: 'not_collected', message }
      }
      if (inventory || nothing.message !== told) changed()
      told = nothing.message
      if (!inventory) await systemClock.sleep(LOOK_EVERY_MS, stop.signal)
    }
  }
  const reported = (): InventoryReport => {
    if (isStandby) return { phase: 'standby', message: options.leadership?.waitsFor() ?? '' }
    const found = reviews?.fault()
    const now = inventory?.report() ?? report
    if (found === undefined) return now
    const unanswered = `the API server is not answered about objects of inventory: ${found}`
    return { ...now, message: now.message === undefined ? unanswered : `${now.message}; ${unanswered}` }
  }
  const readable = () => {
    const view = inventory?.view()
    return view ? { view } : { message: reported().message ?? 'it is starting' }
  }
  return {
    report: reported,
    feed: {
      source: INVENTORY,
      read: () => inventory?.feed.read() ?? nothing,
      onChange(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    part: {
      name: 'inventory',
      async start() {
        // First: a port that is taken refuses the start.
        if (options.api) {
          const { openInventoryApi } = await import('./inventory-api.ts')
          api = await openInventoryApi({ ...options, config: options.api, readable, logger })
        }
        kube = await options.connect()
        running = keep(kube)
      },
      async stop() {
        stop.abort()
        await api?.[Symbol.asyncDispose]()
        await running
        await reviews?.part.stop()
        await inventory?.[Symbol.asyncDispose]()
        await kube?.[Symbol.asyncDispose]()
      },
    },
  }
}

type Nothing = Exclude<RowsRead, { readonly outcome: 'complete' }>

const absent = (message: string): Nothing => ({ outcome: 'absent', code: 'not_served', message })

/** Why inventory cannot begin, and what to do; undefined: it can. @throws KubeError */
async function missingIn(
  kube: KubeClient,
  { tenantMode, watchNamespaces }: CollectionSettings,
  signal: AbortSignal,
): Promise<Nothing | undefined> {
  const missing: string[] = []
  const kinds = KINDS.filter(({ namespaced }) => namespaced || !tenantMode)
  for (const resource of kinds)
    if (!(await kube.find(resource.group, resource.version, resource.kind, signal))) missing.push(nameOf(resource))
  if (missing.length === kinds.length) return absent(NOT_INSTALLED)
  const install = 'install them: `clusterpulse crds --kollect | kubectl apply -f -`'
  if (missing.length > 0) return absent(`the cluster does not have ${missing.join(', ')}; ${install}`)
  for (const resource of kinds)
    for (const namespace of tenantMode ? watchNamespaces : [undefined]) {
      const list = { ...(namespace !== undefined && { namespace }), pageSize: 1, isolated: true, signal }
      const read = async () => {
        for await (const _ of kube.list(resource, list)) break
      }
      const refusal = await refused(read, nameOf(resource), namespace)
      if (refusal) return refusal
    }
  for (const namespace of tenantMode ? watchNamespaces : []) {
    const refusal = await refused(() => kube.get(whole(namespaces), { name: namespace }, signal), 'itself', namespace)
    if (refusal) return refusal
  }
  return undefined
}

async function refused(
  read: () => Promise<unknown>,
  what: string,
  namespace: string | undefined,
): Promise<Nothing | undefined> {
  try {
    await read()
    return undefined
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    const message =
      namespace === undefined
        ? `${what} may not be read by this agent; grant it the role of deploy/inventory`
        : `the namespace ${namespace} (${what}) may not be read by this agent; grant it what \`clusterpulse inventory-role --tenant ${namespace}\` prints`
    return { outcome: 'forbidden', code: 'forbidden', message }
  }
}

/** Of an agent that does not collect inventory, as its settings say. */
export const noInventory: RowFeed = {
  source: INVENTORY,
  read: () => absent('the agent of this cluster is set to collect no inventory'),
  onChange: () => () => undefined,
}

const nameOf = ({ plural, group }: Resource): string => `${plural}.${group}`
