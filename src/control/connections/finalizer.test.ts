import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createKubeClient, type KubeClient, KubeError } from '#kube'
import { seconds } from '#model'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { AGENT_FINALIZER } from './agent-installer.ts'
import { connectionResource } from './connection-resource.ts'
import { aWorld, conditionOf, connect, NAMESPACE, until, type World } from './testing/world.ts'

const WATCHED_MS = seconds(6)
const DEFAULTS = { intervalMs: 30_000, timeoutMs: 2000, operatorScanIntervalMs: 300_000 }
const key = { name: 'west', namespace: NAMESPACE }

/** A connection that was in push mode and is pulled now, on a hub that may not change it but for its status. */
async function collectsOnce(world: World, meek: KubeClient): Promise<void> {
  const member = await world.member()
  await connect(world, 'west', { url: member.url, ca: member.ca, token: member.adminToken }, { collectionMode: 'pull' })
  const metadata = { finalizers: [AGENT_FINALIZER] }
  await world.hub.patch(connectionResource, key, { metadata }, { kind: 'merge' })
  await world.start({ hub: meek, defaults: DEFAULTS })
  const left = `the agent was removed, but the finalizer ${AGENT_FINALIZER} could not be taken off the connection`
  await until(async () => {
    const conditions = JSON.stringify(await world.hub.get(connectionResource, key))
    expect(conditions).toContain(left)
  })
  const before = world.batches.length
  await new Promise((resolve) => setTimeout(resolve, WATCHED_MS))
  // That it failed is no reason to read the cluster anew before its time.
  expect([before, world.batches.length]).toEqual([1, 1])
  expect(await conditionOf(world, 'west', 'Reachable')).toMatchObject({ status: 'True' })
  expect((await world.hub.get(connectionResource, key))?.metadata.finalizers).toEqual([AGENT_FINALIZER])
}

it('a finalizer that cannot be taken off does not make the hub read the cluster again and again', async () => {
  await using world = await aWorld()
  const patch: KubeClient['patch'] = (resource, of, body, how) =>
    resource.plural === connectionResource.plural && how.subresource === undefined
      ? Promise.reject(new KubeError('forbidden', 'an admission rule does not let this through'))
      : world.hub.patch(resource, of, body, how)
  const meek = new Proxy(world.hub, {
    get(target, name) {
      const value: unknown = name === 'patch' ? patch : Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  await collectsOnce(world, meek)
})

const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()
it.skipIf(why !== undefined)(
  `nor with the rights of a hub without push, on a real kube-apiserver${why === undefined ? '' : ` (not run: ${why})`}`,
  async () => {
    await using world = await aWorld()
    const server = await startRealApiServer()
    const folder = await mkdtemp(join(tmpdir(), 'finalizer-'))
    if (!server) throw new Error('no real kube-apiserver')
    const admin = createKubeClient(server.access)
    const kubectl = (...args: readonly string[]) => {
      const run = spawnSync('kubectl', ['--kubeconfig', join(folder, 'kubeconfig'), ...args], { encoding: 'utf8' })
      expect(run.status, run.stderr).toBe(0)
      return run.stdout.trim()
    }
    try {
      await writeFile(join(folder, 'kubeconfig'), server.kubeconfig, { mode: 0o600 })
      kubectl('apply', '--server-side', '-k', 'deploy/crds')
      kubectl('apply', '--server-side', '-f', 'deploy/base/namespace.yaml')
      const manifests = spawnSync('kubectl', ['kustomize', 'deploy/base'], { encoding: 'utf8' }).stdout
      const rights = manifests.split(/^---$/m).filter((text) => /^kind: (ServiceAccount|Role|RoleBinding)$/m.test(text))
      await writeFile(join(folder, 'rights.yaml'), rights.join('\n---\n'))
      kubectl('apply', '--server-side', '-f', join(folder, 'rights.yaml'))
      kubectl('wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io')
      const token = kubectl('-n', NAMESPACE, 'create', 'token', 'clusterpulse-manager')
      const meek = createKubeClient({ ...server.access, credentials: { kind: 'token', token } })
      try {
        await until(async () => expect(await meek.listAll(connectionResource, { namespace: NAMESPACE })).toEqual([]))
        await collectsOnce({ ...world, hub: admin }, meek)
      } finally {
        await meek[Symbol.asyncDispose]()
      }
    } finally {
      await admin[Symbol.asyncDispose]()
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  },
)
