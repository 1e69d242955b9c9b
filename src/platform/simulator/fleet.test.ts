import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { parseBytes, parseQuantity } from '#model'
import { type SimulatedCluster, type SimulatedFleet, simulateFleet } from './fleet.ts'
import { scenarios } from './scenarios.ts'
import { type Answer, ask, type ListBody, listAll } from './testing/ask.ts'
import { ManualClock } from './testing/manual-clock.ts'

interface NodeBody {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly unschedulable?: boolean }
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string }[]
    readonly capacity: Record<string, string>
    readonly allocatable: Record<string, string>
  }
}
interface PodBody {
  readonly spec: { readonly nodeName?: string }
  readonly status: { readonly phase: string }
}

const named = (fleet: SimulatedFleet, name: string): SimulatedCluster =>
  fleet.clusters.find((one) => one.name === name)!
const getNode = async (cluster: SimulatedCluster, name: string) =>
  (await ask(cluster, `/api/v1/nodes/${name}`)).body as NodeBody
const ready = (node: NodeBody) => node.status.conditions.find(({ type }) => type === 'Ready')?.status

interface MeasuredBody {
  readonly usage?: { readonly cpu: string }
  readonly containers?: readonly { readonly usage: { readonly cpu: string } }[]
}

interface SummaryBody {
  readonly node: { readonly fs: { readonly capacityBytes: number; readonly usedBytes: number } }
  readonly pods: readonly { readonly 'ephemeral-storage': { readonly usedBytes: number } }[]
}

describe('the demo fleet over HTTPS', () => {
  let clock: ManualClock
  let fleet: SimulatedFleet

  beforeAll(async () => {
    clock = new ManualClock()
    const before = process.cpuUsage()
    fleet = await simulateFleet(scenarios.demo, { clock, lives: false })
    const { user, system } = process.cpuUsage(before)
    console.info(`the demo fleet started in ${Math.round((user + system) / 1000)} ms of CPU`)
  })
  afterAll(() => fleet[Symbol.asyncDispose]())

  it('lists every pod and node of every reachable cluster, page by page', async () => {
    for (const scenario of scenarios.demo.clusters.filter(({ reachable }) => reachable)) {
      const cluster = named(fleet, scenario.name)
      const pods = await listAll(cluster, '/api/v1/pods')
      expect(new Set(pods.map(({ metadata }) => metadata.uid)).size).toBe(scenario.pods)
      expect(await listAll(cluster, '/api/v1/nodes')).toHaveLength(
        scenario.pools.reduce((sum, { count }) => sum + count, 0),
      )
    }
  })

  it('refuses connections to the cluster that cannot be reached', async () => {
    await expect(ask(named(fleet, 'dr-site'), '/version')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('lets nobody in without the token', async () => {
    expect((await ask({ ...named(fleet, 'staging'), token: 'wrong' }, '/api/v1/nodes')).status).toBe(401)
  })

  it('gives each cluster a token of its own, which opens no other', async () => {
    expect(new Set(fleet.clusters.map(({ token }) => token)).size).toBe(fleet.clusters.length)
    const { token } = named(fleet, 'gpu-lab')
    expect((await ask({ ...named(fleet, 'gpu-lab'), token }, '/api/v1/nodes')).status).toBe(200)
    expect((await ask({ ...named(fleet, 'staging'), token }, '/api/v1/nodes')).status).toBe(401)
  })

  it('says the version of its scenario', async () => {
    const { body } = await ask(named(fleet, 'edge-paris'), '/version')
    expect(body).toMatchObject({ gitVersion: 'v1.34.3+k3s1', platform: 'linux/arm64' })
  })

  it('serves OpenShift kinds on OpenShift, OLM where it is installed, and neither elsewhere', async () => {
    const status = async (cluster: string, path: string) => (await ask(named(fleet, cluster), path)).status
    expect(await status('prod-east', '/apis/config.openshift.io/v1/clusteroperators')).toBe(200)
    expect(await status('prod-east', '/apis/config.openshift.io/v1/clusterversions/version')).toBe(200)
    expect(await status('prod-east', '/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console')).toBe(
      200,
    )
    expect(await status('staging', '/apis/config.openshift.io/v1/clusteroperators')).toBe(404)
    expect(await status('staging', '/apis/operators.coreos.com/v1alpha1/subscriptions')).toBe(200)
    expect(await status('edge-paris', '/apis/operators.coreos.com/v1alpha1/subscriptions')).toBe(404)
  })

  it('gives every subscription its ClusterServiceVersion', async () => {
    const cluster = named(fleet, 'prod-east')
    const subscriptions = await listAll(cluster, '/apis/operators.coreos.com/v1alpha1/subscriptions')
    expect(subscriptions).toHaveLength(8)
    for (const { metadata, status } of subscriptions) {
      const { installedCSV } = status as { installedCSV: string }
      const path = `/apis/operators.coreos.com/v1alpha1/namespaces/${metadata.namespace}/clusterserviceversions/${installedCSV}`
      expect((await ask(cluster, path)).body).toMatchObject({ status: { phase: 'Succeeded' } })
    }
  })

  it('measures every node where metrics.k8s.io is served: more than nothing, not more than the machine has', async () => {
    const cluster = named(fleet, 'prod-east')
    const nodes = new Map(
      ((await ask(cluster, '/api/v1/nodes')).body as ListBody).items.map((node) => [
        node.metadata.name,
        node as unknown as NodeBody,
      ]),
    )
    const { items } = (await ask(cluster, '/apis/metrics.k8s.io/v1beta1/nodes')).body as ListBody
    expect(items).toHaveLength(nodes.size)
    for (const { metadata, usage } of items as unknown as {
      metadata: { name: string }
      usage: { cpu: string; memory: string }
    }[]) {
      const { capacity } = nodes.get(metadata.name)!.status
      expect(parseQuantity(usage.cpu)!).toBeGreaterThan(0)
      expect(parseQuantity(usage.cpu)!).toBeLessThan(parseQuantity(capacity.cpu!)!)
      expect(parseBytes(usage.memory)!).toBeGreaterThan(0)
      expect(parseBytes(usage.memory)!).toBeLessThan(parseBytes(capacity.memory!)!)
    }
    expect((await ask(named(fleet, 'edge-paris'), '/apis/metrics.k8s.io/v1beta1/nodes')).status).toBe(404)
  })

  it('measures pods within what their nodes use, with numbers that move', async () => {
    const cluster = named(fleet, 'prod-east')
    const read = async (kind: string) =>
      ((await ask(cluster, `/apis/metrics.k8s.io/v1beta1/${kind}`)).body as ListBody)
        .items as unknown as readonly MeasuredBody[]
    const cpuOf = (all: readonly MeasuredBody[]) =>
      all
        .flatMap(({ usage, containers = [] }) => (usage ? [usage] : containers.map((one) => one.usage)))
        .reduce((sum, { cpu }) => sum + parseQuantity(cpu)!, 0)
    const [nodes, pods] = [await read('nodes'), await read('pods')]
    expect(pods.length).toBeGreaterThan(10)
    expect(cpuOf(pods)).toBeGreaterThan(0)
    expect(cpuOf(pods)).toBeLessThanOrEqual(cpuOf(nodes))
    clock.advance(5_000)
    expect(cpuOf(await read('pods'))).not.toBe(cpuOf(pods))
  })

  it('lets kubelets be asked through the API server: disks within their capacity, and not those of lost nodes', async () => {
    const cluster = named(fleet, 'prod-west')
    const { items } = (await ask(cluster, '/api/v1/nodes')).body as ListBody
    const summaryOf = (name: string) => ask(cluster, `/api/v1/nodes/${name}/proxy/stats/summary`)
    const [{ metadata }] = items as [ListBody['items'][number]]
    const { status, body } = await summaryOf(metadata.name)
    expect(status).toBe(200)
    const { node, pods } = body as SummaryBody
    expect(node.fs.usedBytes).toBeGreaterThan(0)
    expect(node.fs.usedBytes).toBeLessThan(node.fs.capacityBytes)
    expect(pods.length).toBeGreaterThan(0)
    const used = pods.map((pod) => pod['ephemeral-storage'].usedBytes)
    expect(Math.min(...used)).toBeGreaterThan(0)
    expect(used.reduce((sum, one) => sum + one, 0)).toBeLessThan(node.fs.usedBytes)
    expect((await summaryOf('no-such-node')).status).toBe(404)
    expect((await ask(cluster, `/api/v1/nodes/${metadata.name}/proxy/exec`)).status).toBe(404)
    await fleet.breakNode('prod-west', metadata.name)
    expect((await summaryOf(metadata.name)).status).toBe(503)
    await fleet.healNode('prod-west', metadata.name)
    expect((await summaryOf(metadata.name)).status).toBe(200)
  })

  it('has less to give than the machine has, in every quantity it writes', async () => {
    const { items } = (await ask(named(fleet, 'gpu-lab'), '/api/v1/nodes')).body as ListBody
    for (const { status } of items as unknown as NodeBody[])
      for (const [name, amount] of Object.entries(status.allocatable))
        expect(parseQuantity(amount)!, name).toBeLessThanOrEqual(parseQuantity(status.capacity[name]!)!)
  })

  it('writes a kubeconfig with one context per cluster, each leading there', async () => {
    const config = parse(fleet.kubeconfig()) as {
      contexts: { name: string }[]
      clusters: { name: string; cluster: { server: string; 'certificate-authority-data': string } }[]
      users: { name: string; user: { token: string } }[]
    }
    expect(config.contexts.map(({ name }) => name)).toEqual(scenarios.demo.clusters.map(({ name }) => name))
    const { cluster } = config.clusters.find(({ name }) => name === 'staging')!
    const caPem = Buffer.from(cluster['certificate-authority-data'], 'base64').toString()
    const tokens = new Map(config.users.map(({ name, user }) => [name, user.token]))
    expect(new Set(tokens.values()).size).toBe(tokens.size)
    const statusWith = async (token = '') => (await ask({ url: cluster.server, token, caPem }, '/api/v1/nodes')).status
    expect(await statusWith(tokens.get('staging'))).toBe(200)
    expect(await statusWith(tokens.get('prod-west'))).toBe(401)
  })

  it('obeys its verbs at once', async () => {
    const cluster = named(fleet, 'prod-west')
    const node = [...fleet.world('prod-west').nodes.keys()].at(-1)!
    await fleet.breakNode('prod-west', node)
    expect(ready(await getNode(cluster, node))).toBe('Unknown')
    const onNode = async () =>
      ((await ask(cluster, `/api/v1/pods?fieldSelector=spec.nodeName=${node}`)).body as ListBody)
        .items as unknown as PodBody[]
    expect(new Set((await onNode()).map(({ status }) => status.phase))).toContain('Unknown')
    await fleet.healNode('prod-west', node)
    expect(ready(await getNode(cluster, node))).toBe('True')
    await fleet.cordonNode('prod-west', node)
    expect((await getNode(cluster, node)).spec.unschedulable).toBe(true)
    await fleet.cordonNode('prod-west', node, false)

    const before = (await listAll(cluster, '/api/v1/pods')).length
    await fleet.addPods('prod-west', 7)
    expect(await listAll(cluster, '/api/v1/pods')).toHaveLength(before + 7)
    await fleet.addPods('prod-west', -7)
    expect(await listAll(cluster, '/api/v1/pods')).toHaveLength(before)

    const etcd = async () => (await ask(cluster, '/apis/config.openshift.io/v1/clusteroperators/etcd')).body
    await fleet.degradeOperator('prod-west', 'etcd', 'one member is gone')
    expect(JSON.stringify(await etcd())).toContain('one member is gone')
    await fleet.healOperator('prod-west', 'etcd')
    expect(JSON.stringify(await etcd())).not.toContain('one member is gone')
  })

  it('says which name it does not know', async () => {
    await expect(fleet.breakNode('prod-west', 'nobody')).rejects.toThrow('no node named "nobody"')
    await expect(fleet.healNode('dr-site', 'x')).rejects.toThrow('no cluster named "dr-site"')
  })

  it('goes on with its plan as the clock does', async () => {
    const version = () => fleet.server('staging').objects.resourceVersion
    const before = version()
    for (let second = 0; second < 20; second++) {
      clock.advance(1000)
      await fleet.advance()
    }
    expect(Number(version())).toBeGreaterThan(Number(before))
    const nodes = ((await ask(named(fleet, 'staging'), '/api/v1/nodes')).body as ListBody)
      .items as unknown as NodeBody[]
    expect(nodes.filter((node) => ready(node) !== 'True')).toHaveLength(1) // the opening of the demo: one node is lost
  })
})

describe('a start that fails', () => {
  it('says so where the port is taken', async () => {
    await using taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    await expect(simulateFleet(scenarios.plain({ clusters: 1, nodes: 1, pods: 1 }), { port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
  })

  it('is given up with its signal', async () => {
    const signal = AbortSignal.abort(new Error('changed my mind'))
    await expect(simulateFleet(scenarios.plain({ clusters: 1, nodes: 1, pods: 1 }), { signal })).rejects.toThrow(
      'changed my mind',
    )
  })
})

describe('a fleet that lives by itself', () => {
  it('changes what a watch sees, and stops when told', async () => {
    const clock = new ManualClock()
    await using fleet = await simulateFleet(scenarios.plain({ clusters: 2, nodes: 4, pods: 40, lives: true }), {
      clock,
    })
    const pods = { group: '', version: 'v1', plural: 'pods' }
    const seen = new Promise<void>((resolve) => {
      const end = fleet.server('sim-001').objects.watch(pods, () => {
        end()
        resolve()
      })
    })
    let waiting = true
    void seen.then(() => {
      waiting = false
    })
    while (waiting) {
      clock.advance(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await fleet.stop()
    const version = fleet.server('sim-001').objects.resourceVersion
    clock.advance(600_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(fleet.server('sim-001').objects.resourceVersion).toBe(version)
  })

  it('gives the same objects for the same seed', async () => {
    const answers: Answer[] = []
    for (const seed of [5, 5, 6]) {
      await using fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 3, pods: 20, seed }), {
        clock: new ManualClock(),
      })
      answers.push(await ask(fleet.clusters[0]!, '/api/v1/pods'))
    }
    expect(answers[1]!.body).toEqual(answers[0]!.body)
    expect(answers[2]!.body).not.toEqual(answers[0]!.body)
  })
})
