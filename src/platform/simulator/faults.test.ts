import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FaultProxy } from './faults.ts'
import { type SimulatedFleet, simulateFleet } from './fleet.ts'
import { scenarios } from './scenarios.ts'
import { ask, type ListBody } from './testing/ask.ts'

describe('FaultProxy', () => {
  let fleet: SimulatedFleet
  let proxy: FaultProxy
  const cluster = (name: string) => ({
    url: `${proxy.url}/clusters/${name}`,
    token: fleet.clusters.find((one) => one.name === name)!.token,
    caPem: '',
  })
  const pods = (name: string, signal?: AbortSignal) => ask(cluster(name), '/api/v1/pods', signal)

  beforeAll(async () => {
    fleet = await simulateFleet(scenarios.plain({ clusters: 2, nodes: 3, pods: 30 }))
    proxy = await FaultProxy.open({ upstream: fleet })
  })
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]()
    await fleet[Symbol.asyncDispose]()
  })

  it('passes everything where no fault is set', async () => {
    const { status, body } = await pods('sim-001')
    expect([status, (body as ListBody).items.length]).toEqual([200, 30])
  })

  it('fails one cluster and leaves the other alone', async () => {
    proxy.set('sim-001', { kind: 'status', code: 503 })
    expect((await pods('sim-001')).status).toBe(503)
    expect((await pods('sim-002')).status).toBe(200)
    proxy.heal('sim-001')
    expect((await pods('sim-001')).status).toBe(200)
  })

  it('answers 429 with the time to wait, and 403 for one resource only', async () => {
    proxy.set('sim-001', { kind: 'status', code: 429, retryAfterSeconds: 3 })
    expect((await pods('sim-001')).headers['retry-after']).toBe('3')
    proxy.set('sim-001', { kind: 'status', code: 403, resource: 'nodes' })
    expect((await pods('sim-001')).status).toBe(200)
    const { status, body } = await ask(cluster('sim-001'), '/api/v1/nodes')
    expect([status, (body as { reason: string }).reason]).toEqual([403, 'Forbidden'])
    proxy.heal('sim-001')
  })

  it('heals by itself after so many requests', async () => {
    proxy.set('sim-001', { kind: 'status', code: 401, times: 2 })
    const codes = [await pods('sim-001'), await pods('sim-001'), await pods('sim-001')].map(({ status }) => status)
    expect(codes).toEqual([401, 401, 200])
  })

  it('puts another body in place of the true one', async () => {
    proxy.set('sim-001', {
      kind: 'rewrite',
      contentType: 'application/json',
      change: () => Buffer.from('{"items":[1]}'),
    })
    const { status, headers, body } = await pods('sim-001')
    expect([status, headers['content-type'], (body as ListBody).items]).toEqual([200, 'application/json', [1]])
    proxy.heal('sim-001')
  })

  it('resets the connection before the answer or in its middle', async () => {
    proxy.set('sim-001', { kind: 'reset' })
    await expect(pods('sim-001')).rejects.toMatchObject({ code: 'ECONNRESET' })
    proxy.set('sim-001', { kind: 'reset', when: 'mid-body' })
    await expect(pods('sim-001')).rejects.toMatchObject({ code: 'ECONNRESET' })
    proxy.heal('sim-001')
  })

  it('cuts a page in half: as a broken connection, or as if that were all', async () => {
    proxy.set('sim-001', { kind: 'half-page' })
    await expect(pods('sim-001')).rejects.toThrow()
    proxy.set('sim-001', { kind: 'half-page', looksWhole: true })
    const { status, body } = await pods('sim-001')
    expect([status, body]).toEqual([200, undefined])
    proxy.heal('sim-001')
  })

  it.each(['hang', 'hang-mid-body'] as const)('%s: never ends the answer', async (kind) => {
    proxy.set('sim-001', { kind })
    const signal = AbortSignal.timeout(300)
    await expect(pods('sim-001', signal)).rejects.toThrow()
    expect(signal.aborted).toBe(true) // it was we who ended it
    proxy.heal('sim-001')
  })

  it('answers late where it is slow', async () => {
    proxy.set('sim-001', { kind: 'slow', delayMs: 150 })
    const before = performance.now()
    expect((await pods('sim-001')).status).toBe(200)
    expect(performance.now() - before).toBeGreaterThanOrEqual(140)
    proxy.heal('sim-001')
  })
})
