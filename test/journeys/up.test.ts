import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ClusterView, createClient, type PageView } from '#http'
import { accessForContext, createKubeClient, type KubeClient, loadKubeconfig, type Resource } from '#kube'
import { clusterpulse, eventually, nobodysKubeconfig, type Running } from '../process.ts'

const ADDRESS = /on (http:\/\/127\.0\.0\.1:\d+)/

let folder: string
const running: Running[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-up-'))
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((process) => process[Symbol.asyncDispose]()))
})
// The agent of a hub that was killed writes for a moment more.
afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))

function start(...args: string[]): Running {
  const process = clusterpulse(args)
  running.push(process)
  return process
}
const up = (data: string, ...args: string[]) =>
  start('up', '--data-dir', join(folder, data), '--port', '0', '--control-plane-port', '0', ...args)

async function addressOf(hub: Running): Promise<string> {
  return (await hub.says(ADDRESS))[1] ?? ''
}
const clustersOf = (address: string): Promise<PageView<ClusterView>> => createClient({ baseUrl: address }).clusters()

const connections: Resource = {
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  plural: 'clusterconnections',
  kind: 'ClusterConnection',
  namespaced: true,
}
async function withObjects<T>(kubeconfig: string, use: (kube: KubeClient) => Promise<T>): Promise<T> {
  await using kube = createKubeClient(await accessForContext(await loadKubeconfig([kubeconfig])))
  return await use(kube)
}

describe('clusterpulse up', () => {
  /** by the first hub of the folder own-shell */
  let shown: readonly string[] = []

  it('shows the simulated fleet where there is no kubeconfig, one cluster of it out of reach', async () => {
    const hub = up('own-shell')
    const address = await addressOf(hub)
    const { items } = await eventually(
      () => clustersOf(address),
      ({ items }) => items.length === 6 && items.every((cluster) => cluster.checkedAt !== null),
    )
    expect(items.filter((cluster) => cluster.health === 'unhealthy').map((cluster) => cluster.name)).toEqual([
      'dr-site',
    ])
    expect(items.filter((cluster) => (cluster.nodes?.total ?? 0) > 0)).toHaveLength(5)
    for (const { name, reasons } of items)
      if (name === 'dr-site') expect(reasons[0]?.message).toMatch(/check address and port/)
    shown = items.map(({ name }) => name)
    expect(await hub.kill('SIGTERM')).toBe(0)
  })

  it('shows in a shell whose KUBECONFIG is its own what it showed before, and says so', async () => {
    const KUBECONFIG = join(folder, 'own-shell', 'kubeconfig')
    const args = ['up', '--data-dir', join(folder, 'own-shell'), '--port', '0', '--control-plane-port', '0']
    const hub = clusterpulse(args, { env: { KUBECONFIG } })
    running.push(hub)
    const address = await addressOf(hub)
    const { items } = await eventually(
      () => clustersOf(address),
      ({ items }) => items.length === 6,
    )
    expect(items.map(({ name }) => name)).toEqual(shown)
    expect(hub.stdout()).toContain(`Not shown as a cluster: ${KUBECONFIG}, which leads to this hub itself`)
  })

  it('shows each context of a kubeconfig as one cluster, and get prints them', async () => {
    const kubeconfig = join(folder, 'fleet.yaml')
    const fleet = start('simulate', '--clusters', '2', '--nodes', '3', '--pods', '12', '--kubeconfig-out', kubeconfig)
    await fleet.says(/kubeconfig in/)
    const hub = up('own', '--kubeconfig', kubeconfig)
    const address = await addressOf(hub)
    await eventually(
      () => clustersOf(address),
      ({ items }) => items.length === 2 && items.every(({ health }) => health === 'healthy'),
    )

    const table = start('get', 'clusters', '--server', address)
    expect(await table.ended()).toBe(0)
    expect(table.stdout().split('\n')).toHaveLength(4)
    expect(table.stdout()).toMatch(/NAME +HEALTH +NODES.*\nsim-001 +healthy +3\/3 +\d+\/12/) // one may be in trouble
    const nodes = start('get', 'nodes', '-c', 'sim-002', '-o', 'json', '--server', address)
    expect(await nodes.ended()).toBe(0)
    expect(JSON.parse(nodes.stdout())).toHaveLength(3)
    const wrong = start('get', 'nodes', '-c', 'nowhere', '--server', address)
    expect(await wrong.ended()).toBe(1)
    expect(wrong.stderr()).toMatch(/no cluster named nowhere; there are sim-001, sim-002/)

    // Only what is asked for: the other connection goes with the next start.
    await hub.kill('SIGTERM')
    const second = up('own', '--kubeconfig', kubeconfig, '--context', 'sim-002')
    const again = await addressOf(second)
    await eventually(
      () => clustersOf(again),
      ({ items }) => items.length === 1 && items[0]?.name === 'sim-002',
    )

    // Without a kubeconfig they go on as they are; no demo comes among them, asked for or not.
    await second.kill('SIGTERM')
    const third = up('own')
    const without = await addressOf(third)
    expect(third.stdout()).toContain('no kubeconfig given: the 1 cluster of this folder goes on')
    await eventually(
      () => clustersOf(without),
      ({ items }) => items.length === 1 && items[0]?.name === 'sim-002' && items[0].health !== 'unknown',
    )
    await third.kill('SIGTERM')
    const demo = up('own', '--demo')
    expect(await demo.ended()).toBe(1)
    expect(demo.stderr()).toMatch(/1 cluster of your own \(sim-002\).*--data-dir/)
  })

  it('leaves demo policies, registries and clusters deleted that somebody deleted, and says so', async () => {
    const hub = up('deleted', '--demo')
    await addressOf(hub)
    const objects = join(folder, 'deleted', 'kubeconfig')
    const policies = { ...connections, plural: 'monitoraccesspolicies', kind: 'MonitorAccessPolicy' }
    const registries = { ...connections, plural: 'registryconnections', kind: 'RegistryConnection' }
    const gone = [
      [policies, 'developers'],
      [registries, 'old-registry'],
      [connections, 'dr-site'],
    ] as const
    await withObjects(objects, async (kube) => {
      for (const [resource, name] of gone) await kube.delete(resource, { name, namespace: 'clusterpulse' })
    })
    await hub.kill('SIGTERM')
    const second = up('deleted', '--demo')
    await addressOf(second)
    expect(second.stdout()).toMatch(/not made again: .*dr-site.*developers.*old-registry/)
    await withObjects(objects, async (kube) => {
      for (const [resource, name] of gone)
        expect(await kube.get(resource, { name, namespace: 'clusterpulse' })).toBeUndefined()
    })
  })

  it('serves the last picture at once after kill -9, with its age, and keeps the objects', async () => {
    const kubeconfig = join(folder, 'last.yaml')
    const fleet = start('simulate', '--clusters', '1', '--nodes', '4', '--pods', '20', '--kubeconfig-out', kubeconfig)
    await fleet.says(/kubeconfig in/)
    const hub = up('last', '--kubeconfig', kubeconfig)
    const address = await addressOf(hub)
    const before = await eventually(
      () => clustersOf(address),
      ({ items }) => items[0]?.nodes?.total === 4,
    )
    const objects = join(folder, 'last', 'kubeconfig')
    const key = { name: 'sim-001', namespace: 'clusterpulse' }
    await withObjects(objects, (kube) =>
      kube.patch(connections, key, { metadata: { labels: { kept: 'yes' } } }, { kind: 'merge' }),
    )
    await hub.kill('SIGKILL')
    await fleet.kill('SIGKILL')

    const second = up('last', '--kubeconfig', kubeconfig)
    const after = await clustersOf(await addressOf(second))
    expect(after.items[0]?.nodes?.total).toBe(4)
    expect(after.items[0]?.parts.node?.freshness?.observedAt).toBeGreaterThanOrEqual(
      before.items[0]?.parts.node?.freshness?.observedAt ?? 1e15,
    )
    const kept = await withObjects(objects, (kube) => kube.get(connections, key))
    expect(kept?.metadata.labels).toMatchObject({ kept: 'yes' })
  })

  it('refuses a second hub on the same data directory, and names the reason', async () => {
    const nobody = await nobodysKubeconfig(folder)
    const hub = up('shared', '--kubeconfig', nobody)
    await addressOf(hub)
    const second = up('shared', '--kubeconfig', nobody)
    expect(await second.ended()).toBe(1)
    expect(second.stderr()).toMatch(/another process|in use|already/i)
    expect(second.stderr()).not.toMatch(/\n\s+at /)
  })

  it('says what to do when its port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    try {
      const hub = start(
        'up',
        '--kubeconfig',
        await nobodysKubeconfig(folder),
        '--data-dir',
        join(folder, 'taken'),
        '--port',
        String(port),
        '--control-plane-port',
        '0',
      )
      expect(await hub.ended()).toBe(1)
      expect(hub.stderr()).toMatch(new RegExp(`port ${port} .*taken by another program.*--port`))
    } finally {
      server.close()
    }
  })

  it.each([
    ['a missing kubeconfig', 'nowhere.yaml', undefined, /nowhere\.yaml/],
    ['a broken kubeconfig', 'broken.yaml', 'clusters: [\n  - a: b: c', /broken\.yaml.*line/s],
    ['no kubeconfig at all', 'list.yaml', '- a\n- b', /no kubeconfig/],
    ['a kubeconfig without contexts', 'empty.yaml', 'kind: Config\n', /has no context/],
  ])('names %s in one sentence and ends', async (_, file, text, sentence) => {
    const path = join(folder, file)
    if (text !== undefined) await writeFile(path, text)
    const hub = up('none', '--kubeconfig', path)
    expect(await hub.ended()).toBe(1)
    expect(hub.stderr()).toMatch(sentence)
    expect(hub.stderr()).not.toMatch(/\n\s+at /)
  })

  it('names an unknown context and those there are', async () => {
    const path = join(folder, 'contexts.yaml')
    await writeFile(
      path,
      'kind: Config\ncontexts:\n- {name: east, context: {cluster: e}}\nclusters:\n- {name: e, cluster: {server: "https://127.0.0.1:1"}}\n',
    )
    const hub = up('none', '--kubeconfig', path, '--context', 'west')
    expect(await hub.ended()).toBe(1)
    expect(hub.stderr()).toMatch(/"west".*east/)
  })

  it('refuses to open itself to others without a sign-in method', async () => {
    const hub = up('none', '--demo', '--host', '0.0.0.0')
    expect(await hub.ended()).toBe(1)
    expect(hub.stderr()).toMatch(/no sign-in method is configured/)
  })
})
