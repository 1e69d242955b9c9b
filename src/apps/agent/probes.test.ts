import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AgentStatus } from '#agent'
import { Metrics, silentLogger } from '#runtime'
import { readJoinConfig } from './config.ts'
import { agentProbes, type Probed } from './probes.ts'

const stranger = createServer((_, response) => response.end('somebody else'))
let taken = 0
beforeEach(async () => {
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
  taken = (stranger.address() as AddressInfo).port
})
afterEach(() => new Promise((resolve) => stranger.close(resolve)))

describe('the probes of an agent', () => {
  const beside = (orFree: boolean) =>
    agentProbes({
      ...{ address: { host: '127.0.0.1', port: taken, orFree }, metrics: new Metrics(), logger: silentLogger },
      ...{ about: { status: () => undefined, waitsFor: () => 'it waits' }, version: '1' },
    })

  it('are on a free port where another program has theirs and nobody asked for it', async () => {
    const probes = beside(true)
    await probes.start()
    expect(probes.port).not.toBe(taken)
    expect(await (await fetch(`http://127.0.0.1:${probes.port}/healthz`)).json()).toMatchObject({ status: 'ok' })
    await probes.stop()
  })

  it('stay where they are when waiting ends, though the usual port is free by then', async () => {
    const probes = beside(true)
    await probes.start()
    const { port } = probes
    const readiness = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json()
    expect(await readiness()).toMatchObject({ error: 'it waits' })
    await new Promise((resolve) => stranger.close(resolve))
    probes.tellOf({ status: () => undefined, waitsFor: () => 'it is a member' })
    await probes.start()
    expect(probes.port).toBe(port)
    expect(await readiness()).toMatchObject({ error: 'it is a member' })
    await probes.stop()
    await expect(readiness()).rejects.toThrow()
  })

  it('take a replica that stands by as ready, and say for whom', async () => {
    const leadership = { isLeading: false, waitsFor: () => 'another replica of this agent leads: a-1' }
    const inventory = () => ({ phase: 'standby' as const })
    const probes = beside(true)
    await probes.start()
    const ask = async (path: string) => (await fetch(`http://127.0.0.1:${probes.port}${path}`)).json()
    for (const hasHub of [true, false]) {
      probes.tellOf({ status: () => undefined, inventory, leadership, hasHub })
      expect(await ask('/readyz')).toMatchObject({ status: 'ready' })
      expect(await ask('/healthz')).toMatchObject({ leading: false, standsBy: leadership.waitsFor() })
    }
    probes.tellOf({ status: () => undefined, leadership: { ...leadership, isLeading: true } })
    expect(await ask('/readyz')).toMatchObject({ status: 'not ready' })
    expect(await ask('/healthz')).toMatchObject({ leading: true })
    await probes.stop()
  })

  it('are ready where the hub is away, and not where it says no, each in words', async () => {
    const uplink = {
      ...{ phase: 'backing-off', protocol: 'none', reason: 'hub:9443 refuses the connection', awaySince: 0 },
      ...{ refusal: undefined, streams: 1, lastAckAgeMs: undefined, sentBytes: 0, sentBatches: 0 },
    } as const
    const aStatus = (over: Partial<AgentStatus['uplink']>, rounds = 1) => ({
      status: () =>
        ({ uplink: { ...uplink, ...over }, collection: { rounds, failedRounds: 0 } }) as unknown as AgentStatus,
    })
    const probes = beside(true)
    await probes.start()
    const readiness = async (about: Probed) => {
      probes.tellOf(about)
      const answer = await fetch(`http://127.0.0.1:${probes.port}/readyz`)
      return [answer.status, await answer.json()]
    }
    expect(await readiness(aStatus({}))).toMatchObject([
      200,
      {
        state:
          'not connected to the hub since 1970-01-01T00:00:00.000Z (hub:9443 refuses the connection): batches are buffered',
      },
    ])
    expect(await readiness(aStatus({ phase: 'live', reason: '', awaySince: undefined }))).toMatchObject([
      200,
      { state: 'served by the hub' },
    ])
    const refusal = 'the hub does not accept the cluster any more'
    expect(await readiness(aStatus({ refusal }))).toMatchObject([
      503,
      { status: 'not ready', error: `the hub does not serve it: ${refusal}` },
    ])
    expect(await readiness(aStatus({}, 0))).toMatchObject([503, { error: 'nothing was collected yet' }])
    await probes.stop()
  })

  it('say which port is taken, where it was asked for', async () => {
    await expect(beside(false).start()).rejects.toThrow(
      `port ${taken} is taken by another program; choose another with HEALTH_ADDRESS`,
    )
  })

  it.each([
    ['a machine', {}, { host: '127.0.0.1', port: 8081, orFree: true }],
    ['a pod, which is probed from outside', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, { host: '0.0.0.0', port: 8081 }],
    ['wherever it is told to', { HEALTH_ADDRESS: ':9000' }, { host: '0.0.0.0', port: 9000 }],
  ])('of one that joins are open to no network but where it must: on %s', (_, env, address) => {
    const { config } = readJoinConfig(env, { CLUSTER_NAME: 'east' })
    expect(config.healthAddress).toEqual(address)
  })
})
