import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createKubeClient, type KubeObject, type OwnedKubeClient, type Resource } from '#kube'
import { startPostgres, type TestPostgres } from '../src/pipeline/sinks/testing/postgres-server.ts'
import { together, toPostgres } from './inventory-manifests.ts'
import { clusterpulse, program, type Running } from './process.ts'
import { type RealApiServer, startRealApiServer } from './real-apiserver.ts'

const NAMESPACE = 'shop'
const HISTORY = 'history'
/** Of one call to the store of the cluster. */
const BATCH = 100
const UID_LENGTH = 36

export const deployments: Resource = {
  ...{ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' },
  namespaced: true,
}

/** What is extracted of a Deployment; `round` is the same in every row, so that an edit of it writes all of them anew. */
const profile = (round: number) => `
apiVersion: kollect.dev/v1alpha1
kind: KollectProfile
metadata: { name: deployments, namespace: ${NAMESPACE} }
spec:
  targetGVK: { group: apps, version: v1, kind: Deployment }
  attributes:
    - { name: image, path: "{.spec.template.spec.containers[0].image}" }
    - { name: replicas, path: "cel:object.spec.replicas", type: integer }
    - { name: labels, path: "{.metadata.labels}", optional: true }
    - { name: available, path: "{.status.availableReplicas}", optional: true }
    - { name: round, path: "cel:${round}", type: integer }
  metrics: [{ name: replicas, path: replicas, labels: [image] }]
`

const TARGET = `
apiVersion: kollect.dev/v1alpha1
kind: KollectTarget
metadata: { name: deployments, namespace: ${NAMESPACE} }
spec: { profileRef: deployments }
`

/** ConfigMaps of a namespace of their own to a branch. @param windowS the least time between two commits, s */
const toGit = (repository: string, windowS: number) => `
apiVersion: v1
kind: Namespace
metadata: { name: ${HISTORY} }
---
apiVersion: kollect.dev/v1alpha1
kind: KollectProfile
metadata: { name: settings, namespace: ${HISTORY} }
spec:
  targetGVK: { version: v1, kind: ConfigMap }
  attributes: [{ name: data, path: "{.data}" }]
---
apiVersion: kollect.dev/v1alpha1
kind: KollectTarget
metadata: { name: settings, namespace: ${HISTORY} }
spec: { profileRef: settings }
---
apiVersion: kollect.dev/v1alpha1
kind: KollectSnapshotSink
metadata: { name: git, namespace: ${HISTORY} }
spec: { type: git, endpoint: "file://${repository}", snapshotWindow: ${windowS}s }
---
apiVersion: kollect.dev/v1alpha1
kind: KollectInventory
metadata: { name: settings, namespace: ${HISTORY} }
spec: { snapshotSinkRefs: [git] }
`

/** As people write one, with what an API server and controllers add. */
const aDeployment = (name: string): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name,
    namespace: NAMESPACE,
    labels: { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'shop', tier: 'frontend' },
    annotations: { 'deployment.kubernetes.io/revision': '3' },
  },
  spec: {
    replicas: 3,
    selector: { matchLabels: { 'app.kubernetes.io/name': name } },
    template: {
      metadata: { labels: { 'app.kubernetes.io/name': name } },
      spec: {
        containers: [
          {
            name: 'web',
            image: 'registry.example.com/shop/web:0',
            env: [
              { name: 'LOG_LEVEL', value: 'info' },
              { name: 'DATABASE', valueFrom: { secretKeyRef: { name: 'database', key: 'dsn' } } },
            ],
            ports: [{ containerPort: 8080 }],
            resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
            readinessProbe: { httpGet: { path: '/healthz', port: 8080 } },
          },
        ],
      },
    },
  },
})

/** A real cluster of many Deployments, a real PostgreSQL, and one agent as it is built, that brings the ones to the other. */
export class InventoryCluster implements AsyncDisposable {
  readonly folder: string
  readonly api: RealApiServer
  readonly postgres: TestPostgres
  readonly kube: OwnedKubeClient
  #agent: Running | undefined

  private constructor(folder: string, api: RealApiServer, postgres: TestPostgres) {
    this.folder = folder
    this.api = api
    this.postgres = postgres
    this.kube = createKubeClient(api.access, { qps: 5000, burst: 10_000, timeoutMs: 60_000 })
  }

  /** @param count Deployments, `web-000000` and so on. @throws where a program is missing */
  static async open(count: number): Promise<InventoryCluster> {
    const [folder, api, postgres] = await Promise.all([
      mkdtemp(join(tmpdir(), 'inventory-cluster-')),
      startRealApiServer(),
      startPostgres(),
    ])
    if (!api) throw new Error('there is no real kube-apiserver: name the folder of its programs in KUBEBUILDER_ASSETS')
    const cluster = new InventoryCluster(folder, api, postgres)
    try {
      await writeFile(join(folder, 'kubeconfig'), api.kubeconfig)
      await postgres.query('grant create on schema public to app')
      await cluster.kubectl(`create namespace ${NAMESPACE}`)
      await cluster.#fill(count)
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  get agent(): Running {
    if (!this.#agent) throw new Error('the agent is not started')
    return this.#agent
  }

  /** @throws Error with what kubectl said where it fails */
  async kubectl(args: string, input?: string): Promise<string> {
    const words = ['--kubeconfig', join(this.folder, 'kubeconfig'), ...args.split(' ')]
    const run = program('kubectl', words, input === undefined ? {} : { input })
    const code = await run.ended()
    if (code !== 0) throw new Error(`kubectl ${args}: ${run.stderr()}`)
    return run.stdout()
  }

  /** The kinds of inventory: until then an agent waits for them. */
  async installKinds(): Promise<void> {
    await this.kubectl('apply -k deploy/crds/kollect')
    await this.kubectl('wait --for=condition=Established --timeout=60s crd --all')
  }

  /** All Deployments to PostgreSQL. */
  async declare(): Promise<void> {
    await this.kubectl('apply -f -', together(profile(0), TARGET, toPostgres(this.postgres.dsn(), 'deployments')))
  }

  /** All ConfigMaps of the namespace `history` to a repository of git on this machine. */
  async declareHistory(repository: string, windowS: number): Promise<void> {
    await this.kubectl('apply -f -', toGit(repository, windowS))
  }

  /** Every row is another one. */
  async editProfile(round: number): Promise<void> {
    await this.kubectl('apply -f -', profile(round))
  }

  /** Puts another image into a Deployment. */
  async change(n: number, version: string): Promise<void> {
    const body = [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value: `shop/web:${version}` }]
    await this.kube.patch(deployments, { namespace: NAMESPACE, name: nameOf(n) }, body, { kind: 'json' })
  }

  startAgent(env: Readonly<Record<string, string>> = {}): Running {
    this.#agent = clusterpulse(['agent'], {
      env: {
        CLUSTER_NAME: 'west',
        KUBECONFIG: join(this.folder, 'kubeconfig'),
        BUFFER_DIR: join(this.folder, 'agent'),
        HEALTH_ADDRESS: '127.0.0.1:0',
        SINK_ALLOW_LOOPBACK: 'true',
        ...env,
      },
    })
    return this.#agent
  }

  /** How many rows there are, and whether the table says that they are all; undefined before there is a table. */
  async written(): Promise<{ readonly rows: number; readonly complete: boolean; readonly epoch: string } | undefined> {
    const [there] = await this.postgres.query<{ is: boolean }>(
      "select to_regclass('inventory_writers') is not null as is",
    )
    if (!there?.is) return undefined
    const [row] = await this.postgres.query<{ rows: string; complete: boolean; epoch: string }>(
      'select (select count(*) from inventory) as rows, complete, epoch from inventory_writers',
    )
    return row && { rows: Number(row.rows), complete: row.complete, epoch: row.epoch }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]()
    await this.kube[Symbol.asyncDispose]()
    await Promise.all([this.api.stop(), this.postgres[Symbol.asyncDispose]()])
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  /** The first one is made as people do. The others are the bytes it is stored in, under names and uids of their own. */
  async #fill(count: number): Promise<void> {
    const first = (await this.kube.create(deployments, aDeployment(nameOf(0)))) as KubeObject
    const { uid = '' } = first.metadata
    if (uid.length !== UID_LENGTH) throw new Error(`the uid ${uid} is none of Kubernetes`)
    const status = { replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3, observedGeneration: 1 }
    const place = { namespace: NAMESPACE, name: nameOf(0) }
    await this.kube.patch(deployments, place, { status }, { kind: 'merge', subresource: 'status' })
    const found = (await this.#store('range', { key: base64(keyOf(0)) })) as { kvs?: { value: string }[] }
    const stored = Buffer.from(found.kvs?.[0]?.value ?? '', 'base64').toString('latin1')
    if (!stored.includes(uid)) throw new Error('the store does not hold the Deployment as it was expected')
    for (let from = 1; from < count; from += BATCH) {
      const success = Array.from({ length: Math.min(BATCH, count - from) }, (_, at) => {
        const n = from + at
        const text = stored.replaceAll(uid, uidOf(n)).replaceAll(nameOf(0), nameOf(n))
        return { requestPut: { key: base64(keyOf(n)), value: Buffer.from(text, 'latin1').toString('base64') } }
      })
      await this.#store('txn', { success })
    }
  }

  async #store(verb: 'range' | 'txn', body: object): Promise<unknown> {
    const url = `${this.api.etcdUrl}/v3/kv/${verb}`
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
      if (answer.ok) return answer.json()
      const said = await answer.text()
      // A machine that has much else to do lets it wait; the same is put again.
      if (attempt === 10 || !said.includes('timed out')) throw new Error(`the store of the cluster refuses: ${said}`)
    }
  }
}

/** All names and uids are of one length: the bytes around them stay as they are. */
export const nameOf = (n: number): string => `web-${String(n).padStart(6, '0')}`
const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const keyOf = (n: number): string => `/registry/deployments/${NAMESPACE}/${nameOf(n)}`
const base64 = (text: string): string => Buffer.from(text).toString('base64')
