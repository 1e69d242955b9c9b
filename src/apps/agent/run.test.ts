import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { compileMetricSource } from '#metricsource'
import { parseClusterName } from '#model'
import { kubeconfigOf, scenarios, simulateFleet } from '#simulator'
import { withPackages } from '../../../test/bundled.ts'
import { serveHub } from '../../pipeline/agent/testing/grpc-hub.ts'
import { MemoryHub } from '../../pipeline/agent/testing/memory-hub.ts'

let directory = ''
let program = ''
let built = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-app-'))
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  built = join(cache, `agent-app-${process.pid}`)
  program = join(built, 'agent.js')
  // As it is shipped: what is loaded later stands in files of its own.
  await build({
    entryPoints: { agent: join(import.meta.dirname, 'main.ts') },
    outdir: built,
    splitting: true,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    ...withPackages,
    logLevel: 'error',
  })
})
afterAll(async () => {
  await rm(built, { recursive: true, force: true })
  await rm(directory, { recursive: true, force: true })
})

/** Starts the program; `said` collects what it logs. */
function start(
  env: Record<string, string>,
  stdio: StdioOptions = ['ignore', 'ignore', 'pipe'],
): { child: ChildProcess; said: () => string; port: () => number } {
  const child = spawn(process.execPath, [program], {
    env: { CLUSTER_NAME: 'sim-001', BUFFER_DIR: join(directory, 'buffer'), HEALTH_ADDRESS: '127.0.0.1:0', ...env },
    stdio,
  })
  let text = ''
  child.stderr?.on('data', (chunk) => {
    text += String(chunk)
  })
  return { child, said: () => text, port: () => Number(/"port":(\d+)/.exec(text)?.[1] ?? 0) }
}

/** A line to a server that stands still after so many bytes of its answers, until it is released. */
async function heldLine(to: number, bytes: number) {
  let [taken, isOpen] = [0, false]
  const held: Socket[] = []
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    near.pipe(far)
    far.on('data', (chunk) => {
      taken += chunk.length
      near.write(chunk)
      if (isOpen || taken < bytes) return
      far.pause()
      held.push(far)
    })
    far.on('end', () => near.end())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    held: () => held.length,
    release() {
      isOpen = true
      for (const socket of held.splice(0)) socket.resume()
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

describe('the program of the agent', () => {
  it.each([
    ['as it is', {}],
    ['as the leader of its replicas', { LEADER_ELECT: 'true', NAMESPACE: 'default' }],
  ])(
    'collects from a cluster, delivers to a hub, answers probes, and ends cleanly on a signal, %s',
    async (_, more) => {
      await using fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 3, pods: 20 }))
      const hub = new MemoryHub({ cluster: parseClusterName('sim-001'), now: () => Date.now() })
      await using served = await serveHub(hub)
      const kubeconfig = join(directory, 'kubeconfig')
      await writeFile(kubeconfig, kubeconfigOf(fleet.clusters))
      const env = { INGESTER_ADDRESS: `127.0.0.1:${served.port}`, KUBECONFIG: kubeconfig, COLLECT_INTERVAL: '1s' }
      const { child, said, port } = start({ ...env, ...more, COLLECTOR_TOKEN: 'very-secret' })
      const closed = once(child, 'close')
      try {
        await vi.waitFor(() => expect(hub.arrivals.size, said()).toBeGreaterThan(1), 20_000)
        const [first] = hub.arrivals.values()
        expect(first?.view.node?.size).toBe(3)
        const get = async (path: string) => {
          const answer = await fetch(`http://127.0.0.1:${port()}${path}`)
          return { status: answer.status, text: await answer.text() }
        }
        expect(await get('/healthz')).toMatchObject({ status: 200, text: expect.stringContaining('"hub":"connected"') })
        expect(await get('/readyz')).toMatchObject({ status: 200, text: expect.stringContaining('served by the hub') })
        const { text } = await get('/metrics')
        expect(text).toMatch(/^clusterpulse_agent_connected 1$/m)
        expect(text).toMatch(/^clusterpulse_agent_buffer_batches \d+$/m)
        expect(await get('/')).toMatchObject({ status: 404 })
      } finally {
        child.kill('SIGTERM')
      }
      expect(await closed).toEqual([0, null])
      expect(said()).not.toContain('very-secret')
      expect(hub.received).toHaveLength(1)
    },
  )

  it('ends its first round in peace where a plan with another limit comes in the midst of it', async () => {
    await using fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 300, pods: 900 }))
    const hub = new MemoryHub({ cluster: parseClusterName('sim-001'), now: () => Date.now() })
    hub.up = false
    const declared = {
      source: { apiVersion: 'v1', kind: 'Pod' },
      fields: [{ name: 'phase', path: '.status.phase' }],
      collection: { intervalSeconds: 30 },
    }
    const { source } = compileMetricSource({ metadata: { name: 'pods', namespace: 'hub' }, spec: declared }, Date.now())
    const sources = source ? [source.definition] : []
    hub.plan = { version: 'p1', intervalMs: 5_000, timeoutMs: 9_000, operatorScanIntervalMs: 60_000, sources }
    await using served = await serveHub(hub)
    const config = kubeconfigOf(fleet.clusters)
    const [, port = ''] = /server: ['"]?https?:\/\/127\.0\.0\.1:(\d+)/.exec(config) ?? []
    await using line = await heldLine(Number(port), 20_000)
    const kubeconfig = join(directory, 'held-kubeconfig')
    await writeFile(kubeconfig, config.replace(`127.0.0.1:${port}`, `127.0.0.1:${line.port}`))
    // What looks for inventory would be held as well.
    const buffer = { BUFFER_DIR: join(directory, 'held-buffer'), COLLECTOR_TOKEN: 'secret', INVENTORY: 'false' }
    const { child, said } = start({ ...buffer, INGESTER_ADDRESS: `127.0.0.1:${served.port}`, KUBECONFIG: kubeconfig })
    const closed = once(child, 'close')
    try {
      await vi.waitFor(() => expect(line.held(), said()).toBe(1), 20_000)
      hub.up = true
      await vi.waitFor(() => expect(said()).toContain('a new plan holds'), 20_000)
      // The source is read by a client of the new plan, while the round has the other one.
      // On a machine that has much else to do it may have been tried again.
      await vi.waitFor(() => expect(line.held(), said()).toBeGreaterThan(1), 20_000)
      expect(hub.arrivals.size).toBe(0)
      const releasedAt = Date.now()
      line.release()
      const round = () => [...hub.arrivals.values()].find(({ batch }) => !batch.partial)
      await vi.waitFor(() => expect(round(), said()).toBeDefined(), 20_000)
      expect(round()?.batch.failure).toBeUndefined()
      expect(round()?.view.node?.size).toBe(300)
      // It is that round, and not one after it.
      expect(round()?.batch.collectedAt).toBeLessThan(releasedAt)
    } finally {
      child.kill('SIGTERM')
    }
    expect(await closed).toEqual([0, null])
  })

  it.each([0, 50, 150, 300])('ends with the hub that started it, also with one killed %d ms later', async (ms) => {
    await using fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 1, pods: 1 }))
    const kubeconfig = join(directory, 'kubeconfig')
    await writeFile(kubeconfig, kubeconfigOf(fleet.clusters))
    const env = { INGESTER_ADDRESS: '127.0.0.1:1', KUBECONFIG: kubeconfig, COLLECTOR_TOKEN: 'a-token' }
    const { child, said } = start(env, ['ignore', 'ignore', 'pipe', 'ipc'])
    await setTimeout(ms)
    child.disconnect()
    expect(await Promise.race([once(child, 'exit'), setTimeout(20_000).then(said)])).toEqual([0, null])
  })

  it('refuses to start without a way into a cluster, in one sentence', async () => {
    const { child, said } = start({ KUBECONFIG: join(directory, 'nothing-here') })
    expect(await once(child, 'close')).toEqual([1, null])
    expect(said()).toMatch(/nothing-here/)
    expect(said()).not.toMatch(/ at .*\.mjs:/)
  })
})
