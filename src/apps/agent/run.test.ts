import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseClusterName } from '#model'
import { kubeconfigOf, scenarios, simulateFleet } from '#simulator'
import { serveHub } from '../../pipeline/agent/testing/grpc-hub.ts'
import { MemoryHub } from '../../pipeline/agent/testing/memory-hub.ts'

let directory = ''
let program = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-app-'))
  const cache = resolve('node_modules/.cache/clusterpulse')
  await mkdir(cache, { recursive: true })
  program = join(cache, `agent-app-${process.pid}.mjs`)
  await build({
    entryPoints: [join(import.meta.dirname, 'main.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  })
})
afterAll(async () => {
  await rm(program, { force: true })
  await rm(directory, { recursive: true, force: true })
})

/** Starts the program; `said` collects what it logs. */
function start(env: Record<string, string>): { child: ChildProcess; said: () => string; port: () => number } {
  const child = spawn(process.execPath, [program], {
    env: { CLUSTER_NAME: 'sim-001', BUFFER_DIR: join(directory, 'buffer'), HEALTH_ADDRESS: '127.0.0.1:0', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  child.stderr?.on('data', (chunk) => {
    text += String(chunk)
  })
  return { child, said: () => text, port: () => Number(/"port":(\d+)/.exec(text)?.[1] ?? 0) }
}

describe('the program of the agent', () => {
  it('collects from a cluster, delivers to a hub, answers probes, and ends cleanly on a signal', async () => {
    await using fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: 3, pods: 20 }))
    const hub = new MemoryHub({ cluster: parseClusterName('sim-001'), now: () => Date.now() })
    await using served = await serveHub(hub)
    const kubeconfig = join(directory, 'kubeconfig')
    await writeFile(kubeconfig, kubeconfigOf(fleet.clusters))
    const env = { INGESTER_ADDRESS: `127.0.0.1:${served.port}`, KUBECONFIG: kubeconfig, COLLECT_INTERVAL: '1s' }
    const { child, said, port } = start({ ...env, COLLECTOR_TOKEN: 'very-secret' })
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
      expect(await get('/readyz')).toMatchObject({ status: 200 })
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
  }, 40_000)

  it('refuses to start without a way into a cluster, in one sentence', async () => {
    const { child, said } = start({ KUBECONFIG: join(directory, 'nothing-here') })
    expect(await once(child, 'close')).toEqual([1, null])
    expect(said()).toMatch(/nothing-here/)
    expect(said()).not.toMatch(/ at .*\.mjs:/)
  }, 20_000)
})
