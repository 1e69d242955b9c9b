import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { type ApiListener, type ApiObject, ApiServer, listenApi } from '#apiserver'
import { Manager } from '#controller'
import { type EventBus, openEvents } from '#events'
import { Ingester } from '#ingest'
import { type ClusterConnectionStatus, clusterConnection } from '#kinds'
import { ClientPool, createKubeClient, type KubeClient, type KubeObject, secrets } from '#kube'
import type { Batch, ClusterState } from '#model'
import { openLog, silentLogger } from '#runtime'
import { EmbeddedStateStore, type StateStore } from '#state'
import { connectionResource } from '../connection-resource.ts'
import { type ConnectionsOptions, connectionReconcilers } from '../controllers.ts'

export const NAMESPACE = 'clusterpulse'
const MEMBER_TOKEN = 'member-token'
const ADMIN_TOKEN = 'member-admin-token'

/** A whole hub in this process, over real files, with real API servers as hub and members. */
export interface World extends AsyncDisposable {
  readonly hub: KubeClient
  readonly hubServer: ApiServer
  readonly ingester: Ingester
  readonly state: StateStore
  readonly events: EventBus
  /** batches as they were offered, in order */
  readonly batches: Batch[]
  readonly clients: ClientPool
  /** a member cluster that answers at the returned address */
  member(): Promise<Member>
  start(over?: Partial<ConnectionsOptions>): Promise<Manager>
  cluster(name: string): ClusterState | undefined
}

export interface Member {
  readonly url: string
  readonly ca: string
  /** may read */
  readonly token: string
  /** may do everything */
  readonly adminToken: string
  readonly server: ApiServer
  addNode(name: string): void
  close(): Promise<void>
}

/** @param openState instead of the embedded store in the world's own directory; the world closes it */
export async function aWorld(
  over: Partial<ConnectionsOptions> = {},
  openState?: (logId: string) => Promise<StateStore & AsyncDisposable>,
): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'connections-'))
  const hubServer = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  await hubServer.objects.put(clusterConnection.crd() as unknown as ApiObject)
  await hubServer.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  const token = randomUUID()
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', hubServer]]),
  })
  const hub = createKubeClient({
    server: listener.url,
    ca: listener.caPem,
    verifyTls: true,
    credentials: { kind: 'token', token },
  })
  const log = await openLog({ directory: join(directory, 'log') })
  const state = openState
    ? await openState(log.id)
    : await EmbeddedStateStore.open({ directory: join(directory, 'state') })
  const events = openEvents({ kind: 'in-process' })
  const ingester = await Ingester.open({ log, state, events })
  // A tried cluster is tried again before a test grows tired of waiting.
  const clients = new ClientPool({ breaker: { recoveryMs: 300 } })
  const batches: Batch[] = []
  const managers: Manager[] = []
  const members: Member[] = []

  return {
    hub,
    hubServer,
    ingester,
    state,
    events,
    batches,
    clients,
    cluster: (name) => state.cluster(name),
    async member() {
      const member = await aMember()
      members.push(member)
      return member
    },
    async start(more = {}) {
      const manager = new Manager({
        logger: silentLogger,
        controllers: connectionReconcilers({
          hub,
          namespace: NAMESPACE,
          clients,
          state,
          defaults: { intervalMs: 150, timeoutMs: 2000, operatorScanIntervalMs: 300_000 },
          logger: silentLogger,
          ingester: {
            connect: (cluster, facts) => ingester.connect(cluster, facts),
            remove: (cluster) => ingester.remove(cluster),
            nextSequence: (cluster) => ingester.nextSequence(cluster),
            unread: (cluster, after, because) => ingester.unread(cluster, after, because),
            accept(offer, signal) {
              batches.push(offer.batch)
              return ingester.accept(offer, signal)
            },
          },
          ...over,
          ...more,
        }),
      })
      managers.push(manager)
      await manager.start()
      return manager
    },
    async [Symbol.asyncDispose]() {
      for (const manager of managers) await manager.stop()
      await clients[Symbol.asyncDispose]()
      await ingester[Symbol.asyncDispose]()
      await events[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
      await hub[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await hubServer[Symbol.asyncDispose]()
      for (const member of members) await member.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

const RBAC = 'rbac.authorization.k8s.io'

async function aMember(): Promise<Member> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'member' })
  const verbs = ['get', 'list', 'watch']
  await server.objects.put({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'reader' },
    rules: [
      { verbs, apiGroups: ['*'], resources: ['*'] },
      { verbs, nonResourceURLs: ['*'] },
    ],
  })
  await server.objects.put({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'reader' },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'reader' },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: 'reader' }],
  })
  const listener: ApiListener = await listenApi({
    tokens: [
      { token: MEMBER_TOKEN, user: 'reader' },
      { token: ADMIN_TOKEN, user: 'installer', groups: ['system:masters'] },
    ],
    mounts: new Map([['', server]]),
  })
  const member: Member = {
    url: listener.url,
    ca: listener.caPem,
    token: MEMBER_TOKEN,
    adminToken: ADMIN_TOKEN,
    server,
    addNode: (name) =>
      void server.objects.create({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name },
        status: { conditions: [{ type: 'Ready', status: 'True' }], capacity: { cpu: '4' } },
      } as ApiObject),
    close: async () => {
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
  member.addNode('n1')
  return member
}

/** Makes the Secret and the connection of a member. */
export async function connect(
  { hub }: World,
  name: string,
  { url, ca, token }: Pick<Member, 'url' | 'ca' | 'token'>,
  spec: object = {},
  data: Readonly<Record<string, string>> = { token, 'ca.crt': ca },
): Promise<void> {
  await writeSecret(hub, `${name}-credentials`, data)
  const whole = { endpoint: url, credentialsRef: { name: `${name}-credentials` }, ...spec }
  await hub.create(connectionResource, { metadata: { name, namespace: NAMESPACE }, spec: whole })
}

export async function writeSecret(
  hub: KubeClient,
  name: string,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  const encoded = Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
  const key = { name, namespace: NAMESPACE }
  const known = await hub.get(secrets, key)
  if (known) await hub.replace(secrets, { ...known, data: encoded })
  else await hub.create(secrets, { metadata: key, data: encoded })
}

export async function statusOf({ hub }: World, name: string): Promise<ClusterConnectionStatus> {
  const object = (await hub.get(connectionResource, { name, namespace: NAMESPACE })) as KubeObject | undefined
  return (object?.status ?? {}) as ClusterConnectionStatus
}

export async function conditionOf(world: World, name: string, type: string) {
  return (await statusOf(world, name)).conditions?.find((condition) => condition.type === type)
}

/** Waits until the status says so. */
export function until(check: () => Promise<void> | void): Promise<void> {
  return vi.waitFor(check, { timeout: 120_000, interval: 20 })
}

export const untilPhase = (world: World, name: string, phase: string) =>
  until(async () => expect((await statusOf(world, name)).phase).toBe(phase))
