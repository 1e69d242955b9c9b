import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { Principal } from '#access'
import { type Identity, openIdentity } from '#identity'
import { Metrics, silentLogger } from '#runtime'
import { slowness } from '../../platform/runtime/testing/slowness.ts'
import { allow } from './test/policies.ts'
import { StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, localAdministrator, start, type TestClock, type World } from './test/world.ts'

/** Signs everybody in by the session that a header names, each until `expiresAt`. */
async function sessions(expiresAt: number, method: Principal['method'] = 'oidc') {
  const ended: ((id: string) => void)[] = []
  const clock: TestClock = { at: start, now: () => start, sleep: async () => undefined }
  const plain = await openIdentity({
    config: localAdministrator,
    clock,
    logger: silentLogger,
    metrics: new Metrics({}, { processMetrics: false }),
  })
  const principal: Principal = {
    username: 'ann',
    email: '',
    groups: [],
    isServiceAccount: false,
    method,
  }
  const identity: Identity = {
    ...plain,
    identify: async ({ headers }) => ({
      principal,
      session: { id: String(headers['x-session']), expiresAt },
      byCookie: true,
      ...(headers['x-actor'] && { actor: { ...principal, username: 'admin', method: 'oidc' as const } }),
    }),
    onEnded: (listener) => {
      ended.push(listener)
      return () => undefined
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
  return {
    identity,
    end: (id: string) => {
      for (const listener of ended) listener(id)
    },
  }
}

async function aFleet(identity: Identity): Promise<World> {
  const world = await aWorld({ policies: [allow('ann')] }, { identity })
  await world.connect('west')
  await world.batch('west', [complete('node', [aNode('a')])])
  return world
}

async function open(url: string, headers: Record<string, string>): Promise<StreamReader> {
  const reader = await StreamReader.open(`${url}/api/v1/stream`, headers)
  await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))
  return reader
}

describe('a stream', () => {
  it.each([
    ['server-sent events', '/api/v1/stream', ''],
    [
      'a WebSocket',
      '/api/v1/stream/ws',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
    ],
  ])('of who went before it was known who asks is none (%s)', async (_, path, headers) => {
    const { identity } = await sessions(Number.POSITIVE_INFINITY)
    const [asked, known] = [new AbortController(), new AbortController()]
    const isAsked = once(asked.signal, 'abort')
    const identify: Identity['identify'] = async (request) => {
      asked.abort()
      await once(known.signal, 'abort')
      return identity.identify(request)
    }
    await using world = await aFleet({ ...identity, identify })
    const url = new URL(await world.server.start())
    const socket = connect(Number(url.port), '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n${headers}\r\n`)
    await isAsked
    socket.resetAndDestroy()
    // The server hears of it before it knows who asked.
    await new Promise((resolve) => setTimeout(resolve, 200))
    known.abort()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await world.metrics.registry.getSingleMetricAsString('clusterpulse_streams_open')).toMatch(/ 0$/m)
  })

  it('ends at once with the session it stands on, and no other does', async () => {
    const { identity, end } = await sessions(Number.POSITIVE_INFINITY)
    await using world = await aFleet(identity)
    const url = await world.server.start()
    const one = await open(url, { 'x-session': 'one' })
    const other = await open(url, { 'x-session': 'other' })
    const since = Date.now()
    end('one')
    await one.until(() => one.closed)
    expect((Date.now() - since) / slowness).toBeLessThan(8000)
    expect(one.frames.at(-1)).toMatchObject({ event: 'reset', data: { reason: 'session_ended' } })
    await world.batch('west', [complete('node', [aNode('a'), aNode('b')])])
    await other.until((frames) => frames.at(-1)?.event === 'change')
    expect(JSON.stringify(one.frames)).not.toContain('"total":2')
    other.close()
  })

  it('ends when its session does, by the clock', async () => {
    const { identity } = await sessions(start + 60_000)
    await using world = await aFleet(identity)
    const reader = await open(await world.server.start(), { 'x-session': 'one' })
    world.clock.at += 60_000
    await reader.until(() => reader.closed)
    expect(reader.frames.at(-1)?.data).toEqual({ reason: 'session_ended' })
  })

  it('of a person known by a proxy comes again through it every five minutes, that of others lives on', async () => {
    for (const [method, ends] of [
      ['trusted-proxy', true],
      ['oidc', false],
    ] as const) {
      const { identity } = await sessions(Number.POSITIVE_INFINITY, method)
      await using world = await aFleet(identity)
      const reader = await open(await world.server.start(), { 'x-session': 'one' })
      world.clock.at += 5 * 60_000
      const before = reader.heartbeats
      if (ends) await reader.until(() => reader.closed)
      else await reader.until(() => reader.heartbeats > before + 1)
      expect([method, reader.closed]).toEqual([method, ends])
      reader.close()
    }
  })

  it('of an administrator who looks through another’s eyes shows what those see, and ends after a quarter of an hour', async () => {
    const { identity } = await sessions(Number.POSITIVE_INFINITY)
    await using world = await aFleet(identity)
    await world.connect('east')
    await world.policies.put(allow('ann', { clusters: ['west'] }), {})
    const reader = await open(await world.server.start(), { 'x-session': 'one', 'x-actor': 'admin' })
    expect(JSON.stringify(reader.frames)).not.toContain('"east"')
    world.clock.at += 15 * 60_000
    await reader.until(() => reader.closed)
    expect(reader.frames.at(-1)?.data).toEqual({ reason: 'session_ended' })
  })
})
