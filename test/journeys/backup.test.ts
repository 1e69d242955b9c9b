import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClusterView, EventView, HistoryView } from '#http'
import { clusterConnection, monitorAccessPolicy } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type Resource } from '#kube'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'

const resourceOf = ({
  group,
  version,
  plural,
  kind,
}: typeof clusterConnection | typeof monitorAccessPolicy): Resource => ({
  ...{ group, version, plural, kind, namespaced: true },
})
const namespace = 'clusterpulse'

/** docs/guide/backup.md, as it is written, for a hub on one machine with an agent that goes on. */
describe('a backup', () => {
  let directory: string
  let members: Running
  let agent: Running | undefined
  let hub: Running
  let base = ''
  let ports: readonly string[]
  const at = (name: string) => join(directory, name)

  async function up(args: readonly string[] = [], data = 'data', own = ports): Promise<void> {
    hub = clusterpulse([
      ...['up', ...args, '--data-dir', at(data)],
      ...['--port', '0', '--control-plane-port', own[0] ?? '0', '--ingester-port', own[1] ?? '0'],
    ])
    const [, address = ''] = await hub.says(/on (http:\S+)/)
    base = address
  }

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'backup-'))
    ports = [String(await freePort()), String(await freePort())]
    members = clusterpulse([
      'simulate',
      '--clusters',
      '1',
      '--nodes',
      '3',
      '--pods',
      '9',
      '--kubeconfig-out',
      at('members'),
    ])
    await members.says(/kubeconfig in/)
    await up(['--kubeconfig', at('members')])
  })
  afterAll(async () => {
    for (const one of [agent, hub, members]) await one?.[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  const kube = async (data = 'data') =>
    createKubeClient(await accessForContext(await loadKubeconfig([join(at(data), 'kubeconfig')])))
  const json = async <T>(path: string): Promise<T> => (await (await fetch(`${base}${path}`)).json()) as T
  const edge = () => json<ClusterView>('/api/v2/clusters/edge')
  const rounds = async () => ((await edge()).agent?.connected ? (await edge()).lastSyncAt : null)
  const names = async (resource: Resource, data = 'data') => {
    await using client = await kube(data)
    return (await client.listAll(resource)).map(({ metadata }) => metadata.name).sort()
  }
  /** Waits for so many further rounds of the agent that the hub acknowledged. */
  async function moreRounds(count: number): Promise<void> {
    for (let seen = 0; seen < count; seen++) {
      const before = await rounds()
      await eventually(rounds, (now) => now !== null && now !== before, 60_000)
    }
  }

  it('brings back policies, connections and the past, and says what an agent had delivered since', async () => {
    {
      await using client = await kube()
      await client.create(resourceOf(monitorAccessPolicy), {
        metadata: { name: 'devs', namespace },
        spec: {
          identity: { subjects: { groups: ['developers'] }, priority: 100 },
          access: { effect: 'Allow', enabled: true },
          scope: { clusters: { default: 'allow' } },
        },
      })
    }
    const connect = clusterpulse(['connect', 'edge', '--bearer-token', '--kubeconfig', join(at('data'), 'kubeconfig')])
    expect(await connect.ended(), connect.stderr()).toBe(0)
    const line = connect
      .stdout()
      .replace('npx clusterpulse', `exec ${process.execPath} ${resolve('bin/clusterpulse.js')}`)
    const env = {
      KUBECONFIG: at('members'),
      BUFFER_DIR: at('buffer'),
      HEALTH_ADDRESS: '127.0.0.1:0',
      COLLECTION_INTERVAL: '30',
    }
    agent = program('sh', ['-c', line], { env, cwd: directory })
    await eventually(rounds, (time) => time !== null, 60_000)
    const connections = await names(resourceOf(clusterConnection))

    // Save: stop the hub, copy, start it.
    await hub.kill('SIGTERM')
    cpSync(at('data'), at('copy'), { recursive: true, preserveTimestamps: true })
    await up(['--kubeconfig', at('members')])
    await moreRounds(2)

    // Put back.
    await hub.kill('SIGTERM')
    renameSync(at('data'), at('data-before'))
    cpSync(at('copy'), at('data'), { recursive: true, preserveTimestamps: true })
    await up()
    expect(hub.stdout()).toContain('no kubeconfig given: the 2 clusters of this folder go on')
    expect(await names(resourceOf(monitorAccessPolicy))).toEqual(['devs'])
    expect(await names(resourceOf(clusterConnection))).toEqual(connections)
    const clusters = await json<{ items: ClusterView[] }>('/api/v2/clusters')
    expect(clusters.items.map(({ name }) => name).sort()).toEqual(['edge', 'sim-001'])

    // The agent comes by itself, with the token it had.
    await moreRounds(1)
    const history = await eventually(
      () => json<HistoryView>('/api/v1/clusters/edge/metrics/history?metric=nodes_total&range=15m&step=30'),
      ({ spans }) => spans.some(({ cause }) => cause === 'restored'),
      60_000,
    )
    expect(history.spans.find(({ cause }) => cause === 'restored')).toMatchObject({ kind: 'lost' })
    await eventually(
      () => json<{ items: EventView[] }>('/api/v2/clusters/edge/events'),
      ({ items }) => items.some((event) => JSON.stringify(event).includes('restored')),
    )
  })

  it('is drilled beside the hub, on other ports, with a copy of the copy', async () => {
    cpSync(at('copy'), at('drill'), { recursive: true })
    expect(existsSync(at('drill'))).toBe(true)
    const running = hub
    await up(['--read-only-members'], 'drill', ['0', '0'])
    await hub.says(/Members are only read/)
    expect(await names(resourceOf(monitorAccessPolicy), 'drill')).toEqual(['devs'])
    await hub.kill('SIGTERM')
    hub = running
  })
})
