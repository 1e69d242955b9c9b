import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HistoryView } from '#http'
import { OriginalCollector } from '../original-collector.ts'
import { clusterpulse, eventually, nobodysKubeconfig, type Running } from '../process.ts'

const clusterMetrics = { nodes: 2, nodesReady: 2, namespaces: 1, pods: 3, podsRunning: 3, cpuCapacity: 8 }

/** A hub that is killed, and what reads a cluster that it has no way to itself. */
describe('what history has nothing of', () => {
  let directory: string
  let hub: Running
  let base: string
  const address = { ingester: '0' }
  const startHub = async () => {
    hub = clusterpulse([
      ...['up', '--kubeconfig', await nobodysKubeconfig(directory), '--data-dir', join(directory, 'hub')],
      ...['--port', '0', '--control-plane-port', '0', '--ingester-port', address.ingester],
    ])
    const [, url = ''] = await hub.says(/on (http:\S+)/)
    base = url
  }
  const connect = async (cluster: string): Promise<string> => {
    const run = clusterpulse(['connect', cluster, '--bearer-token', '--kubeconfig', join(directory, 'hub/kubeconfig')])
    expect(await run.ended(), run.stderr()).toBe(0)
    address.ingester = /INGESTER_ADDRESS=127\.0\.0\.1:(\d+)/.exec(run.stdout())?.[1] ?? ''
    return /COLLECTOR_TOKEN=(\S+)/.exec(run.stdout())?.[1] ?? ''
  }
  const spans = async (cluster: string) => {
    const answer = await fetch(
      `${base}/api/v1/clusters/${cluster}/metrics/history?metric=nodes_total&range=15m&step=30`,
    )
    return answer.ok ? ((await answer.json()) as HistoryView).spans : []
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'missing-'))
    await startHub()
  })
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  it('is named once, where a hub was killed and a collector of the original waited for it, and up to now while it is away', async () => {
    const token = await connect('old')
    const tls = { ca: await readFile(join(directory, 'hub/ingester/pki/ca.crt'), 'utf8'), serverName: 'localhost' }
    /** Tries until the hub is there, as collectors do. */
    const send = (id: string, times: readonly number[]) =>
      eventually(
        async () => {
          const options = { address: `127.0.0.1:${address.ingester}`, cluster: 'old', token, tls }
          await using collector = new OriginalCollector(options)
          for (const [n, at] of times.entries()) collector.push(`${id}-${n}`, { clusterMetrics }, at)
          return await collector.acked(times.length).catch(() => [])
        },
        (acks) => acks.length > 0 && acks.every(({ success }) => success),
        60_000,
      )
    const begun = Date.now()
    await send(
      'before',
      [90_000, 60_000, 30_000, 0].map((ago) => begun - ago),
    )
    await hub.kill('SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, 65_000)) // more than two intervals: the time itself is the case
    await startHub()
    const lastKept = await eventually(
      () => spans('old'),
      (found) => found.length > 0,
      60_000,
    )
    expect(lastKept, 'it grows while nobody reads the cluster').toMatchObject([{ cause: 'not_received' }])
    expect(lastKept[0]?.from).toBe(begun)
    const back = Date.now()
    await send('after', [back])
    // A machine on which the rest of this takes longer than two intervals adds another one after it.
    const spansBefore = async () => (await spans('old')).filter(({ from }) => from < back)
    const isNamed = (found: HistoryView['spans']) => found.some(({ cause }) => cause === 'hub_down')
    const hole = { kind: 'lost', cause: 'hub_down', from: begun, to: back, count: expect.any(Number) }
    expect(await eventually(spansBefore, isNamed, 60_000)).toEqual([hole])
    // Nothing of it is told anew by a hub that reads its log again.
    await hub.kill('SIGKILL')
    await startHub()
    expect(await eventually(spansBefore, isNamed, 60_000)).toEqual([hole])
  })
})
