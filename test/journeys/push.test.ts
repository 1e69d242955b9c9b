import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterView, HistoryView } from '#http'
import { clusterConnection } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type Resource } from '#kube'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { SilentProxy } from '../silent-proxy.ts'

const bin = resolve('bin/clusterpulse.js')
type Condition = { readonly type: string; readonly status: string }
type Status = { readonly health?: string; readonly message?: string; readonly conditions?: readonly Condition[] }
const { group, version, plural, kind } = clusterConnection
const connections: Resource<{ readonly status?: Status }> = { group, version, plural, kind, namespaced: true }

/**
 * A hub, a simulated cluster it can reach, and agents that are started by what `connect` prints. Each test has a cluster of its
 * own, and most of the time waits for intervals to pass: they wait together.
 */
describe('push', { concurrent: true }, () => {
  let directory: string
  let members: Running
  let hub: Running
  let base: string
  const agents: Running[] = []
  const member = () => join(directory, 'members')
  const objects = () => join(directory, 'hub/kubeconfig')

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'push-'))
    members = clusterpulse([
      'simulate',
      '--clusters',
      '1',
      '--nodes',
      '3',
      '--pods',
      '20',
      '--kubeconfig-out',
      member(),
    ])
    await members.says(/kubeconfig in/)
    hub = clusterpulse([
      ...['up', '--kubeconfig', member(), '--data-dir', join(directory, 'hub')],
      ...['--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
    ])
    const [, address = ''] = await hub.says(/on (http:\S+)/)
    base = address
  })
  afterAll(async () => {
    for (const one of [...agents, hub, members]) await one?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  const view = async (cluster: string): Promise<ClusterView | undefined> => {
    const answer = await fetch(`${base}/api/v2/clusters/${cluster}`)
    return answer.ok ? ((await answer.json()) as ClusterView) : undefined
  }
  const connect = async (...args: string[]): Promise<{ text: string; notes: string }> => {
    const run = clusterpulse(['connect', '--bearer-token', ...args, '--kubeconfig', objects()])
    expect(await run.ended(), run.stderr()).toBe(0)
    return { text: run.stdout(), notes: run.stderr() }
  }
  /** Runs the printed line in a shell, as people do; only `npx clusterpulse` is this checkout's. */
  const start = (command: string, name: string): Running => {
    const line = command.replace('npx clusterpulse', `exec ${process.execPath} ${bin}`)
    const env = { KUBECONFIG: member(), BUFFER_DIR: join(directory, name), HEALTH_ADDRESS: '127.0.0.1:0' }
    const agent = program('sh', ['-c', line], { env, cwd: directory })
    agents.push(agent)
    return agent
  }
  const pushed = (cluster: string) => async () => {
    const seen = await view(cluster)
    return seen?.agent?.connected === true && seen.source === 'push' && seen.nodes !== null
  }

  it('goes from pull to push to pull and back, and history has no hole', async () => {
    await eventually(
      async () => (await view('sim-001'))?.source === 'pull',
      (yes) => yes,
      90_000,
    ) // the hub reads the cluster
    expect((await view('sim-001'))?.agent).toBeNull()

    const { text, notes } = await connect('sim-001')
    expect(notes).toMatch(/collectionMode push/)
    let agent = start(text, 'first')
    await eventually(pushed('sim-001'), (yes) => yes, 90_000) // the agent pushes
    expect((await view('sim-001'))?.agent).toMatchObject({ tls: true, protocol: 1 })

    await agent.kill('SIGKILL')
    const pulled = async () => {
      const seen = await view('sim-001')
      return seen?.agent?.connected === false && seen.source === 'pull'
    }
    await eventually(pulled, (yes) => yes, 90_000) // the hub reads the cluster again

    agent = start(text, 'first')
    await eventually(pushed('sim-001'), (yes) => yes, 90_000) // the agent pushes again

    // The chart ends with the last whole step: what the hub read itself is on it a moment later.
    const history = await eventually(
      async () => {
        const answer = await fetch(
          `${base}/api/v1/clusters/sim-001/metrics/history?metric=nodes_total&range=15m&step=30`,
        )
        return (await answer.json()) as HistoryView
      },
      ({ spans }) => spans.some(({ kind }) => kind === 'pulled'),
      90_000,
    )
    const points = history.series[0]?.points ?? []
    const values = points.map(([, value]) => value)
    const known = values.slice(
      values.findIndex((value) => value !== null),
      values.findLastIndex((value) => value !== null) + 1,
    )
    expect(known.length).toBeGreaterThan(0)
    expect(
      known.filter((value) => value !== 3),
      JSON.stringify(history),
    ).toEqual([])
  })

  it('receives a cluster the hub cannot reach, and ends its stream when the credential is revoked', async () => {
    const { text, notes } = await connect('edge-7')
    expect(notes).toMatch(/a new cluster/)
    const agent = start(text, 'edge')
    await eventually(pushed('edge-7'), (yes) => yes, 90_000) // the agent pushes
    expect(await view('edge-7')).toMatchObject({ mode: 'push', nodes: { total: 3 }, health: 'healthy' })

    // In the API and in the status of its ClusterConnection alike, in health and message.
    await using kube = createKubeClient(await accessForContext(await loadKubeconfig([objects()])))
    const seen = async () => {
      const status = (await kube.get(connections, { name: 'edge-7', namespace: 'clusterpulse' }))?.status
      const { health, message } = (await view('edge-7')) ?? {}
      return { health, message, written: status?.health === health && status?.message === message }
    }
    await agent.kill('SIGKILL')
    const away = /^the agent is away: .*; the hub has no way to this cluster itself$/
    const said = await eventually(seen, ({ health, written }) => health === 'unhealthy' && written, 60_000)
    expect(said.message).toMatch(away)
    const back = start(text, 'edge')
    await eventually(
      async () => (await view('edge-7'))?.agent?.connected === true,
      (yes) => yes,
      90_000,
    )
    await eventually(seen, ({ health, written }) => health === 'healthy' && written)

    await connect('edge-7', '--revoke')
    const revoked = async () => (await view('edge-7'))?.agent?.connected === false
    await eventually(revoked, (yes) => yes, 20_000) // the stream ends
    expect((await view('edge-7'))?.agent?.reason).toMatch(/no longer valid/)
    await back.kill('SIGTERM')
  })

  it('says within 15 s that an agent is away whose network was cut without a word', async () => {
    const { text } = await connect('edge-10')
    const [, port = ''] = /INGESTER_ADDRESS=127\.0\.0\.1:(\d+)/.exec(text) ?? []
    await using line = await SilentProxy.before(Number(port))
    const agent = start(text.replace(`127.0.0.1:${port}`, `127.0.0.1:${line.port}`), 'cut')
    await eventually(pushed('edge-10'), (yes) => yes, 90_000)
    await using kube = createKubeClient(await accessForContext(await loadKubeconfig([objects()])))
    const said = async () => {
      const object = await kube.get(connections, { name: 'edge-10', namespace: 'clusterpulse' })
      const { health, message, agent: seen } = (await view('edge-10')) ?? {}
      const condition = object?.status?.conditions?.find(({ type }) => type === 'CollectorConnected')
      const { health: shown, message: text } = object?.status ?? {}
      return { health, message, connected: seen?.connected, shown, text, condition: condition?.status }
    }
    const away = /^the agent is away: nothing was heard of it; the hub has no way to this cluster itself$/
    const message = expect.stringMatching(away)
    // By the hub, and by the agent, which opens another connection after a pause of a second at most.
    const noticedAfterMs: [number, number][] = []
    const excessMs = await leastOf(3, 0, async () => {
      const before = line.taken
      expect(line.cut()).toBeGreaterThan(0)
      const silentAt = Date.now()
      let agentAfterMs: number | undefined
      const isSaid = async () => {
        if (line.taken > before) agentAfterMs ??= Date.now() - silentAt
        return said()
      }
      const found = await eventually(isSaid, ({ health, shown }) => health === 'unhealthy' && shown === 'unhealthy')
      const hubAfterMs = Date.now() - silentAt
      expect(found).toMatchObject({ connected: false, condition: 'False', message, text: message })
      await eventually(isSaid, () => agentAfterMs !== undefined)
      line.speak()
      await eventually(pushed('edge-10'), (yes) => yes, 90_000)
      noticedAfterMs.push([hubAfterMs, agentAfterMs ?? Number.NaN])
      return Math.max(hubAfterMs - 15_000, (agentAfterMs ?? Number.NaN) - 17_000)
    })
    expect(excessMs, `ms until hub and agent noticed: ${noticedAfterMs.join('; ')}`).toBeLessThan(0)
    await agent.kill('SIGTERM')
  })

  it('names the time in which an agent did not run', { tags: ['long'] }, async () => {
    const { text } = await connect('edge-9')
    const asked = async (): Promise<HistoryView | undefined> => {
      const answer = await fetch(`${base}/api/v1/clusters/edge-9/metrics/history?metric=nodes_total&range=15m&step=5`)
      return answer.ok ? ((await answer.json()) as HistoryView) : undefined
    }
    const isKept = (history: HistoryView | undefined) =>
      history?.series[0]?.points.some(([, value]) => value !== null) === true
    let agent = start(text, 'down')
    expect((await eventually(asked, isKept, 90_000))?.spans).toEqual([])
    await agent.kill('SIGKILL')
    const killedAt = Date.now()
    const spans = async () => (await asked())?.spans ?? []
    // After two intervals.
    const missed = await eventually(spans, (found) => found.length > 0, 120_000)
    expect(missed).toMatchObject([{ kind: 'lost', cause: 'not_received' }])
    const startedAt = Date.now()
    agent = start(text, 'down')
    const isNamed = (found: HistoryView['spans']) => found.some(({ cause }) => cause !== 'not_received')
    const [hole, ...more] = await eventually(spans, isNamed, 90_000)
    await agent.kill('SIGTERM')
    expect(more).toEqual([])
    expect(hole).toMatchObject({ kind: 'lost', cause: 'agent_down' })
    expect(hole?.from).toBeLessThan(killedAt)
    expect(hole?.to).toBeGreaterThan(startedAt - 1000)
  })

  it('prints a manifest that the member takes as it is', async () => {
    const { text } = await connect('edge-8', '-o', 'manifest', '--image', 'registry.example/clusterpulse:1')
    expect(text).toMatch(/kind: Deployment/)
    expect(text).not.toMatch(/resources:\s*\n\s*- ["']?\*/)
    expect(text).not.toMatch(/- secrets/)
  })
})
