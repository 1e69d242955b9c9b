import { expect } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { Manager } from '#controller'
import { type KollectKnown, kollectKinds } from '#kinds'
import { createKubeClient, isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { Metrics, silentLogger } from '#runtime'
import { inventoryInformers } from '../../objects.ts'
import { ReconcileMetrics } from '../../reconcile-metrics.ts'
import { RowStore } from '../../store/index.ts'
import { unpackRow } from '../../store/packed-row.ts'
import { NO_DEFAULTS } from '../compile.ts'
import { InventoryTargets, type InventoryTargetsOptions } from '../runtime.ts'

const core = { group: '', version: 'v1' }
/** What tests write. */
export const resources = {
  Namespace: { ...core, plural: 'namespaces', kind: 'Namespace', namespaced: false },
  ConfigMap: { ...core, plural: 'configmaps', kind: 'ConfigMap', namespaced: true },
  Secret: { ...core, plural: 'secrets', kind: 'Secret', namespaced: true },
  Event: { ...core, plural: 'events', kind: 'Event', namespaced: true },
  CustomResourceDefinition: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    namespaced: false,
  },
  ...Object.fromEntries(
    kollectKinds.map(({ group, version, plural, kind, definition }) => [
      kind,
      { group, version, plural, kind, namespaced: definition.scope !== 'Cluster' },
    ]),
  ),
} as Readonly<Record<string, Resource>>

export const strict: KollectKnown = { semantics: 'strict', maxExportBytes: 1_572_864 }

/** An embedded API with the kinds of inventory and the namespaces `shop` and `bank`. */
export class TestCluster implements AsyncDisposable {
  readonly #server: ApiServer
  readonly #listener: Awaited<ReturnType<typeof listenApi>>
  readonly kube: KubeClient
  readonly #running: (() => Promise<void>)[] = []

  private constructor(server: ApiServer, listener: Awaited<ReturnType<typeof listenApi>>, kube: KubeClient) {
    this.#server = server
    this.#listener = listener
    this.kube = kube
  }

  static async start(): Promise<TestCluster> {
    const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'west' })
    for (const kind of kollectKinds) await server.objects.put(kind.crd() as unknown as ApiObject) // a CRD is an API object
    const token = 'agent'
    const listener = await listenApi({
      tokens: [{ token, user: 'agent', groups: ['system:masters'] }],
      mounts: new Map([['', server]]),
    })
    const kube = createKubeClient({
      server: listener.url,
      ca: listener.caPem,
      verifyTls: true,
      credentials: { kind: 'token', token },
    })
    const cluster = new TestCluster(server, listener, kube)
    for (const name of ['shop', 'bank']) await cluster.apply({ kind: 'Namespace', metadata: { name } })
    return cluster
  }

  /** Targets that run here; `kube` may stand before the cluster's own. */
  async run(more: Partial<InventoryTargetsOptions> = {}): Promise<RunningTargets> {
    const kube = more.kube ?? this.kube
    const rows = new RowStore(() => undefined)
    const informers = more.informers ?? inventoryInformers(this.kube, silentLogger)
    const targets = new InventoryTargets({
      ...{
        rows,
        informers,
        reconciles: new ReconcileMetrics(new Metrics({}, { processMetrics: false })),
        defaults: NO_DEFAULTS,
        known: strict,
        watchNamespaces: [],
        logger: silentLogger,
      },
      ...more,
      kube,
    })
    const manager = new Manager({
      controllers: targets.controllers,
      whileLeading: (signal) => targets.run(signal),
      logger: silentLogger,
    })
    await manager.start()
    const stop = async () => {
      await manager.stop()
      await Promise.all(Object.values(informers).map((informer) => informer.stop()))
    }
    this.#running.push(stop)
    return { rows, stop, faults: () => targets.faults() }
  }

  async apply(object: KubeObject): Promise<KubeObject> {
    const resource = this.#resourceOf(object)
    const { name, namespace } = object.metadata
    return this.kube.patch(
      resource,
      { name, ...(namespace && { namespace }) },
      { apiVersion: versionOf(resource), ...object },
      {
        kind: 'apply',
        force: true,
      },
    )
  }

  async remove(object: KubeObject): Promise<void> {
    await this.kube.delete(this.#resourceOf(object), object.metadata).catch((error: unknown) => {
      if (!isKubeError(error, 'not_found')) throw error
    })
  }

  async get(kind: string, name: string, namespace?: string): Promise<KubeObject | undefined> {
    return this.kube.get(resources[kind] as Resource, { name, ...(namespace && { namespace }) })
  }

  async list(kind: string): Promise<readonly KubeObject[]> {
    return this.kube.listAll(resources[kind] as Resource)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#running) await stop()
    await this.kube[Symbol.asyncDispose]()
    await this.#listener[Symbol.asyncDispose]()
    await this.#server[Symbol.asyncDispose]()
  }

  #resourceOf({ kind = '' }: KubeObject): Resource {
    const resource = resources[kind]
    if (!resource) throw new Error(`tests know no ${kind}`)
    return resource
  }
}

export interface RunningTargets {
  readonly rows: RowStore
  /** what cannot be followed */
  readonly faults: () => readonly string[]
  readonly stop: () => Promise<void>
}

const versionOf = ({ group, version }: Resource) => (group === '' ? version : `${group}/${version}`)

export const configMap = (name: string, namespace = 'shop', more: object = {}): KubeObject =>
  ({ kind: 'ConfigMap', metadata: { name, namespace }, data: { mode: 'on' }, ...more }) as KubeObject
export const aProfile = (
  attributes: readonly object[] = [{ name: 'mode', path: '{.data.mode}' }],
  namespace = 'shop',
) =>
  ({
    kind: 'KollectProfile',
    metadata: { name: 'settings', namespace },
    spec: { targetGVK: { version: 'v1', kind: 'ConfigMap' }, attributes },
  }) as KubeObject
export const aTarget = (spec: object = {}, name = 'settings', namespace = 'shop') =>
  ({ kind: 'KollectTarget', metadata: { name, namespace }, spec: { profileRef: 'settings', ...spec } }) as KubeObject
export const aScope = (spec: object, name = 'ceiling', more: object = {}) =>
  ({ kind: 'KollectScope', metadata: { name, namespace: 'shop', ...more }, spec }) as KubeObject

/** `namespace/name` of the rows of a target, sorted, each with its attribute `mode` where it has one; undefined: it has none. */
export function shownRows(rows: RowStore, name = 'settings', namespace = 'shop'): readonly string[] | undefined {
  const state = rows.state({ name, namespace })
  if (state.kind !== 'rows') return undefined
  return state.rows
    .map(unpackRow)
    .map((row) => `${row.namespace}/${row.name}${row.attributes.mode === undefined ? '' : `=${row.attributes.mode}`}`)
    .sort()
}

export const isComplete = (rows: RowStore, name = 'settings', namespace = 'shop'): boolean => {
  const state = rows.state({ name, namespace })
  return state.kind === 'rows' && state.isComplete
}

/** Waits until a target has these rows, and all of them. */
export async function expectRows(
  running: RunningTargets,
  wanted: readonly string[],
  name?: string,
  namespace?: string,
) {
  await expect
    .poll(() => [shownRows(running.rows, name, namespace), isComplete(running.rows, name, namespace)])
    .toEqual([wanted, true])
}

export const conditionOf = (object: KubeObject | undefined, type: string) => {
  const { conditions = [] } = (object?.status ?? {}) as {
    conditions?: { type: string; status: string; reason: string; message: string }[]
  }
  const found = conditions.find((one) => one.type === type)
  return found && `${found.status}/${found.reason}`
}
