import { get } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { parseClusterName } from '#model'
import { EventReader } from '../../../test/event-stream.ts'
import { aNode } from '../state/test/fleet-words.ts'
import { type MonitoredWords, monitored } from './testing/monitored.ts'
import { serving } from './testing/serving.ts'
import { admin, signed, user } from './testing/tokens.ts'

const pods = [
  { namespace: 'core', name: 'api', node: 'n1' },
  { namespace: 'compute-abc123-0001', name: 'container', node: 'n1' },
  { namespace: 'compute-xyz789-0002', name: 'container', node: 'n1' },
  { namespace: 'kube-system', name: 'dns', node: 'n1' },
]
const west = (more: MonitoredWords = {}) => monitored({ usage: { n1: {} }, pods, at: Date.now(), ...more })
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const asked = async (url: string, token?: string, init: RequestInit = {}) => {
  const answer = await fetch(url, { ...(token !== undefined && bearer(token)), ...init })
  const text = await answer.text()
  return { status: answer.status, text, headers: answer.headers, json: () => JSON.parse(text) }
}
const statusOfUpgrade = (target: string, origin?: string, more: { protocolVersion?: number } = {}) =>
  new Promise((resolve) => {
    const socket = new WebSocket(target.replace('http', 'ws'), { ...more, ...(origin !== undefined && { origin }) })
    socket.on('unexpected-response', (_, { statusCode }) => resolve(statusCode)).on('error', () => undefined)
    socket.on('open', () => {
      socket.terminate()
      resolve(101)
    })
  })
const namespacesIn = (document: { pods: { namespace: string }[] }) => document.pods.map(({ namespace }) => namespace)

describe('answers', () => {
  it('say ok to anybody at /healthz, and 401, 403 and 404 in one word each', async () => {
    await using served = await serving([west()])
    const { url } = served
    expect(await asked(`${url}/healthz`)).toMatchObject({ status: 200, text: 'ok' })
    for (const path of ['/cluster-info', '/pod-metrics', '/sse/health', '/ws/pod-metrics', '/api/graph/dependencies'])
      expect(await asked(url + path)).toMatchObject({ status: 401, text: 'unauthorized\n' })
    const token = await user('abc123')
    for (const path of [
      '/cluster-info',
      '/api/metrics/nodes',
      '/api/metrics/nodes/n1',
      '/sse/cluster-info',
      '/api/graph/dependencies',
      '/ws/cluster-info',
    ])
      expect(await asked(url + path, token)).toMatchObject({ status: 403, text: 'forbidden\n' })
    for (const path of ['/', '/nothing', '/cluster-info/', '/clusters/west', '/clusters/%/pod-metrics'])
      expect(await asked(url + path, token)).toMatchObject({ status: 404 })
    expect(await asked(`${url}/api/graph/dependencies`, await admin())).toMatchObject({ status: 501 })
    expect(await asked(`${url}/ws/pod-metrics`, token)).toMatchObject({ status: 400 })
  })

  it('answer GET and HEAD alone, and OPTIONS to anybody with an empty body', async () => {
    await using served = await serving([west()])
    const { url } = served
    const refused = await asked(`${url}/pod-metrics`, await admin(), { method: 'POST' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect(await asked(`${url}/pod-metrics`, undefined, { method: 'OPTIONS' })).toMatchObject({ status: 200, text: '' })
    expect(await asked(`${url}/pod-metrics`, undefined, { method: 'HEAD', ...bearer(await admin()) })).toMatchObject({
      status: 200,
      text: '',
    })
  })

  it('tell pages of the dashboard and its sub-domains that they may read, over https only, and nobody else', async () => {
    await using served = await serving([west()])
    const allowed = async (origin: string) =>
      (await asked(`${served.url}/healthz`, undefined, { headers: { origin } })).headers.get(
        'access-control-allow-origin',
      )
    for (const origin of ['https://dash.example.com', 'https://a.b.dash.example.com'])
      expect(await allowed(origin)).toBe(origin)
    for (const origin of [
      'http://dash.example.com',
      'https://evil.example',
      'https://dash.example.com.evil.example',
      'https://xdash.example.com',
      'null',
    ])
      expect(await allowed(origin)).toBeNull()
    const { headers } = await asked(`${served.url}/cluster-info`, undefined, {
      headers: { origin: 'https://dash.example.com' },
    })
    expect(Object.fromEntries(headers)).toMatchObject({
      vary: 'Origin',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, POST, PUT, DELETE, OPTIONS',
      'access-control-allow-headers': 'Content-Type, Authorization',
    })
  })

  it('show an administrator all that is collected, and a user his own namespaces and no nodes', async () => {
    await using served = await serving([west()])
    const { url } = served
    const all = (await asked(`${url}/pod-metrics`, await admin())).json()
    expect(namespacesIn(all)).toEqual(['core', 'compute-abc123-0001', 'compute-xyz789-0002'])
    expect(Object.keys(all)).toEqual(['timestamp', 'pods'])
    expect(namespacesIn((await asked(`${url}/pod-metrics`, await user('abc123'))).json())).toEqual([
      'compute-abc123-0001',
    ])
    for (const nobody of ['', 'core', 'abc', 'ABC123', '*'])
      expect((await asked(`${url}/pod-metrics`, await user(nobody))).json().pods).toEqual([])
  })

  it('let the owner label decide where there is one, and the prefix where there is none', async () => {
    const namespaces = {
      'compute-abc123-0001': { 'user-id': 'xyz789' },
      'compute-q-0002': { 'user-id': 'AbC123' },
      'compute-abc123-0003': {},
      core: { 'user-id': 'abc123' },
    }
    const there = Object.keys(namespaces).map((namespace) => ({ namespace, name: 'p', node: 'n1' }))
    await using served = await serving([west({ pods: there, namespaces })])
    const seen = async (id: string) => namespacesIn((await asked(`${served.url}/pod-metrics`, await user(id))).json())
    expect(await seen('abc123')).toEqual(['compute-abc123-0003'])
    expect(await seen('xyz789')).toEqual(['compute-abc123-0001'])
    expect(await seen('AbC123')).toEqual(['compute-q-0002'])
  })

  it('give the past and the present in one, and 403 for a namespace that is not the caller’s, whether it is or not', async () => {
    await using served = await serving([west()])
    const { url } = served
    const [token, root] = [await user('abc123'), await admin()]
    await expect
      .poll(async () => Object.keys((await asked(`${url}/api/metrics/nodes`, root)).json().series))
      .toEqual(['n1'])
    const nodes = (await asked(`${url}/api/metrics/nodes?resolution=1m`, root)).json()
    expect(Object.keys(nodes)).toEqual(['start', 'end', 'resolution', 'series', 'timestamp', 'nodes'])
    expect(nodes.nodes).toEqual((await asked(`${url}/cluster-info`, root)).json().nodes)
    const mine = (await asked(`${url}/api/metrics/pods`, token)).json()
    expect(Object.keys(mine.series)).toEqual(['compute-abc123-0001/container'])
    expect(mine.series['compute-abc123-0001/container']).toEqual([
      { t: mine.timestamp, cpu: 10_000_000, mem: 2 ** 20, disk: 4096 },
    ])
    for (const namespace of ['compute-xyz789-0002', 'core', 'compute-no-such'])
      expect(await asked(`${url}/api/metrics/pods?namespace=${namespace}`, token)).toMatchObject({ status: 403 })
    expect((await asked(`${url}/api/metrics/pods?namespace=core`, root)).json()).toMatchObject({
      series: { 'core/api': [{ disk: 4096 }] },
      pods: [{ name: 'api' }],
    })
    expect(await asked(`${url}/api/metrics/nodes/none`, root)).toMatchObject({ status: 404 })
    expect(await asked(`${url}/api/metrics/nodes/`, root)).toMatchObject({ status: 400 })
    const past = await asked(`${url}/api/metrics/nodes/n1?start=2020-01-01T00:00:00Z&end=2020-01-02T00:00:00Z`, root)
    expect(past.json()).toMatchObject({ start: '2020-01-01T00:00:00Z', resolution: '5m', series: { n1: [] } })
  })
})

describe('tokens', () => {
  it('are looked for in the header and then in the address; a bad header is not rescued', async () => {
    await using served = await serving([west()])
    const [good, bad] = [await admin(), 'x.y.z']
    const address = `${served.url}/cluster-info?token=${good}`
    expect((await asked(address)).status).toBe(200)
    expect((await asked(address, bad)).status).toBe(401)
    expect((await asked(address, undefined, { headers: { authorization: `bearer ${bad}` } })).status).toBe(200)
    expect((await asked(`${served.url}/cluster-info`, undefined, { headers: { authorization: good } })).status).toBe(
      401,
    )
  })

  it('are HS256 with the shared secret, in force, of an accepted type, and well-formed', async () => {
    await using served = await serving([west()])
    const status = async (token: string) => (await asked(`${served.url}/pod-metrics`, token)).status
    const seconds = Math.floor(Date.now() / 1000)
    const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const none = `${base64({ alg: 'none', typ: 'JWT' })}.${base64({ user_id: 'x', is_admin: true })}.`
    const taken = [
      admin(),
      admin({ type: 'api_token', scopes: { compute: ['read'] }, token_id: 't', sub: 'root' }),
      admin({ exp: seconds + 60, nbf: seconds - 1, iat: seconds + 1000, iss: 'any', aud: 'any' }),
      admin({ exp: null, nbf: null, iat: null, is_admin: true, user_id: null }),
      signed({}),
    ]
    for (const token of taken) expect(await status(await token)).toBe(200)
    const refused = [
      none,
      admin({ exp: seconds - 1 }),
      admin({ nbf: seconds + 30 }),
      admin({ type: '2fa_challenge' }),
      admin({ type: 'API_TOKEN' }),
      admin({ is_admin: 'true' }),
      admin({ user_id: 7 }),
      admin({ scopes: { compute: 'read' } }),
      admin({ exp: 'tomorrow' }),
      admin({ exp: 1e300 }),
      signed({ is_admin: true }, { secret: 'another secret' }),
      signed({ is_admin: true }, { alg: 'HS512' }),
      admin().then((token) => `ecloud_${token}`),
      admin().then((token) => `${token}=`),
      '',
      'Bearer',
    ]
    for (const token of refused) expect(await status(await token)).toBe(401)
  })

  it('may carry a prefix that is configured, and must name issuer and audience where they are', async () => {
    const tokens = { secret: 's', prefixes: ['ecloud_'], issuer: 'auth', audience: 'monitor' }
    await using served = await serving([west()], { tokens })
    const status = async (claims: object, prefix = '') =>
      (await asked(`${served.url}/pod-metrics`, prefix + (await signed({ ...claims }, { secret: 's' })))).status
    expect(await status({ iss: 'auth', aud: ['monitor'] })).toBe(200)
    expect(await status({ iss: 'auth', aud: 'monitor' }, 'ecloud_')).toBe(200)
    for (const claims of [{ iss: 'auth' }, { aud: 'monitor' }, { iss: 'else', aud: 'monitor' }])
      expect(await status(claims)).toBe(401)
  })

  it('open nothing where no secret is configured', async () => {
    const lines: string[] = []
    const note = (_: object, sentence: string) => void lines.push(sentence)
    const logger = { trace: note, debug: note, info: note, warn: note, error: note, child: () => logger }
    await using served = await serving([west()], { tokens: { secret: undefined } }, logger)
    expect((await asked(`${served.url}/pod-metrics`, await admin())).status).toBe(401)
    expect(await asked(`${served.url}/healthz`)).toMatchObject({ status: 200 })
    expect(lines.filter((line) => line.startsWith('JWT_SECRET is not set'))).toHaveLength(1)
  })

  it('in an address are in no log', async () => {
    const lines: string[] = []
    const note = (facts: object) => void lines.push(JSON.stringify(facts))
    const logger = { trace: note, debug: note, info: note, warn: note, error: note, child: () => logger }
    await using served = await serving([west()], {}, logger)
    const token = await admin()
    await asked(`${served.url}/cluster-info?a=1&token=${token}&b=2`)
    await asked(`${served.url}/nothing?TOKEN=${token}`)
    await asked(`${served.url}/nothing?%74ok%65n=${token}`)
    await asked(`${served.url}/nothing??token=${token}`)
    expect(await statusOfUpgrade(`${served.url}/ws/nothing?token=${token}`)).toBe(404)
    await expect.poll(() => lines.filter((line) => line.includes('b=2') || line.includes('nothing')).length).toBe(5)
    expect(lines.join('\n')).not.toContain(token)
  })

  it('are traded for a ticket that opens one stream, once, and answers nothing else', async () => {
    await using served = await serving([west()])
    expect((await asked(`${served.url}/stream-tickets`, undefined, { method: 'POST' })).status).toBe(401)
    expect((await asked(`${served.url}/stream-tickets`, await admin())).status).toBe(405)
    const issued = await asked(`${served.url}/stream-tickets`, undefined, {
      method: 'POST',
      ...bearer(await user('abc123')),
    })
    expect(issued.status).toBe(201)
    const { ticket } = issued.json()
    expect((await asked(`${served.url}/pod-metrics?ticket=${ticket}`)).status).toBe(401)
    using stream = await EventReader.open(`${served.url}/sse/health?ticket=${ticket}`)
    await expect.poll(() => stream.documents).toMatchObject([{ type: 'pods' }])
    await expect(EventReader.open(`${served.url}/sse/health?ticket=${ticket}`)).rejects.toThrow('401')
  })
})

describe('streams', () => {
  const openAs = async (url: string, path: string, token: Promise<string>, headers = {}) =>
    EventReader.open(url + path, { authorization: `Bearer ${await token}`, ...headers })

  it('begin with what is, in envelopes at /sse/health, nodes for administrators alone', async () => {
    await using served = await serving([west()])
    using all = await openAs(served.url, '/sse/health', admin())
    using own = await openAs(served.url, '/sse/health', user('abc123'))
    using bare = await openAs(served.url, '/sse/cluster-info', admin())
    await expect.poll(() => all.documents.map(({ type }) => type)).toEqual(['cluster', 'pods'])
    await expect.poll(() => own.documents.map(({ type }) => type)).toEqual(['pods'])
    await expect.poll(() => bare.documents.map((document) => Object.keys(document))).toEqual([['timestamp', 'nodes']])
    expect(all.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      connection: 'keep-alive',
    })
    expect(all.retries).toEqual([5000])
    for (const { id, event } of all.events) expect([event, /^[0-9a-f]+\.\d+$/.test(id)]).toEqual(['', true])
    expect(namespacesIn(own.documents[0]?.payload as never)).toEqual(['compute-abc123-0001'])
  })

  it('go on with each read of usage, an empty one too, and say once that it is stale', async () => {
    await using served = await serving([west()])
    using nodes = await openAs(served.url, '/sse/cluster-info', admin())
    using nothing = await openAs(served.url, '/sse/pod-metrics', user('nobody'))
    await expect.poll(() => [nodes.events.length, nothing.events.length]).toEqual([1, 1])
    const at = Date.now() + 1000
    served.state.set(west({ at }))
    await expect.poll(() => [nodes.events.length, nothing.events.length]).toEqual([2, 2])
    expect(nothing.documents[1]).toEqual({ timestamp: new Date(at).toISOString().replace(/\.?0+Z$/, 'Z'), pods: [] })
    served.state.set(west({ at, outcome: 'unreachable' }))
    await expect.poll(() => nodes.documents.at(-1)?.stale).toBe(true)
    expect(nodes.documents.filter(({ stale }) => stale)).toHaveLength(1)
    served.state.set(west({ at: at + 1000 }))
    await expect.poll(() => nodes.documents.at(-1)?.stale).toBeUndefined()
  })

  it('end when the token does', async () => {
    await using served = await serving([west()])
    const exp = Math.floor(Date.now() / 1000) + 2
    using stream = await openAs(served.url, '/sse/health', admin({ exp }))
    await expect.poll(() => stream.isEnded).toBe(true)
    expect(stream.events.length).toBeGreaterThan(0)
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000)
  })

  it('follow what a user owns while they are open', async () => {
    await using served = await serving([west()])
    using stream = await openAs(served.url, '/sse/pod-metrics', user('abc123'))
    await expect.poll(() => stream.events.length).toBe(1)
    served.state.set(west({ namespaces: { 'compute-abc123-0001': { 'user-id': 'xyz789' } } }))
    await expect.poll(() => stream.documents.at(-1)?.pods).toEqual([])
  })

  it('speak WebSocket with the same payloads; foreign pages, and who may not, are refused before the upgrade', async () => {
    await using served = await serving([west()])
    const address = `${served.url.replace('http', 'ws')}/ws/pod-metrics`
    const token = await user('abc123')
    expect(await statusOfUpgrade(address)).toBe(401)
    expect(await statusOfUpgrade(`${address.replace('pod-metrics', 'cluster-info')}?token=${token}`)).toBe(403)
    expect(await statusOfUpgrade(`${address}?token=${token}`, 'https://evil.example')).toBe(403)
    // Version 8 has a header of its own for the origin.
    expect(await statusOfUpgrade(`${address}?token=${token}`, undefined, { protocolVersion: 8 })).toBe(400)
    expect(await statusOfUpgrade(`${address.replace('ws/pod', 'pod')}?token=${token}`)).toBe(200)
    const messages: string[] = []
    const socket = new WebSocket(`${address}?token=${token}`, { origin: 'https://dash.example.com' })
    socket.on('message', (data) => messages.push(String(data)))
    await expect.poll(() => messages.length).toBe(1)
    expect(JSON.parse(messages[0] ?? '')).toEqual((await asked(`${served.url}/pod-metrics`, token)).json())
    socket.send('x'.repeat(100))
    served.state.set(west({ at: Date.now() + 1000 }))
    await expect.poll(() => messages.length).toBe(2)
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.send(Buffer.alloc(2 ** 24))
    expect(await closed).toBe(1009)
  })

  it('take no notice of an offer to speak HTTP/2, or of a WebSocket where there is none', async () => {
    await using served = await serving([west()])
    const token = await admin()
    for (const upgrade of ['h2c', 'websocket']) {
      const headers = {
        connection: 'Upgrade',
        upgrade,
        authorization: `Bearer ${token}`,
        origin: 'https://dash.example.com',
      }
      const told = await new Promise<{ readonly status?: number; readonly allowed?: string; readonly text: string }>(
        (resolve, reject) => {
          const asking = get(`${served.url}/pod-metrics`, { headers, agent: false }, async (answer) => {
            let text = ''
            for await (const piece of answer) text += piece
            const { statusCode: status = 0, headers } = answer
            resolve({ status, allowed: headers['access-control-allow-origin'] ?? '', text })
          })
          asking.on('error', reject)
        },
      )
      expect(told).toMatchObject({ status: 200, allowed: 'https://dash.example.com' })
      expect(namespacesIn(JSON.parse(told.text))).toHaveLength(3)
      using stream = await EventReader.open(`${served.url}/sse/pod-metrics`, headers)
      await expect.poll(() => stream.documents.length).toBe(1)
    }
  })

  it('need no chunks, for proxies that speak HTTP/1.0: the end of the connection is that of the stream', async () => {
    await using served = await serving([west()])
    const exp = Math.floor(Date.now() / 1000) + 2
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
    socket.write(`GET /sse/pod-metrics?token=${await admin({ exp })} HTTP/1.0\r\nhost: x\r\n\r\n`)
    let text = ''
    for await (const piece of socket) text += piece
    expect(text).toMatch(/^HTTP\/1\.[01] 200 OK\r\n/)
    expect(text.toLowerCase()).not.toContain('transfer-encoding')
    const [begin = '', event = '', ...others] = text.slice(text.indexOf('\r\n\r\n') + 4).split('\n\n')
    expect(begin).toBe('retry: 5000')
    expect(event).toMatch(/^id: [0-9a-f]+\.\d+\ndata: \{"timestamp":"[^"]+","pods":\[.*\]\}$/)
    expect(others.filter((rest) => rest !== '' && !rest.startsWith('id: '))).toEqual([])
  })

  it('tell of what is read without waiting for the next second', async () => {
    await using served = await serving([west()], { refreshMs: 60_000 })
    using stream = await openAs(served.url, '/sse/pod-metrics', admin())
    await expect.poll(() => stream.events.length).toBe(1)
    const late: number[] = []
    for (let round = 1; round <= 8; round++) {
      const at = Date.now() + round
      served.state.set(west({ at }))
      await expect.poll(() => stream.events.length, { interval: 5 }).toBe(1 + round)
      late.push(Date.now() - at)
    }
    // Each came just after a tick: by the next second alone it would have taken that second.
    expect(late.sort((a, b) => a - b)[1]).toBeLessThan(700)
  })

  it('come and go many times a second, and leave nothing behind', async () => {
    await using served = await serving([west()])
    const token = await admin()
    using staying = await openAs(served.url, '/sse/pod-metrics', admin())
    const open = async () => {
      const gauge = (await served.metrics.moment()).find(({ name }) => name === 'clusterpulse_monitor_streams')
      return gauge?.values[0]?.value
    }
    for (let round = 0; round < 10; round++) {
      const streams = await Promise.all(
        Array.from({ length: 25 }, (_, at) =>
          EventReader.open(`${served.url}/sse/health?protocol=${1 + (at % 2)}&token=${token}`),
        ),
      )
      await Promise.all(streams.map((stream) => expect.poll(() => stream.events.length).toBeGreaterThan(0)))
      for (const stream of streams) stream[Symbol.dispose]()
    }
    // Some are gone before it is known who they are.
    for (let round = 0; round < 50; round++) {
      const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
      await new Promise((resolve) =>
        socket.write(`GET /sse/health?token=${token} HTTP/1.1\r\nhost: x\r\n\r\n`, resolve),
      )
      socket.resetAndDestroy()
    }
    await expect.poll(open).toBe(1)
    const before = staying.events.length
    served.state.set(west({ at: Date.now() + 1000 }))
    await expect.poll(() => staying.events.length).toBeGreaterThan(before)
  })

  it('send a reader that is slow the newest state next, and others are not kept waiting', async () => {
    const many = Array.from({ length: 4000 }, (_, i) => ({ namespace: 'core', name: `pod-${i}`, node: 'n1' }))
    await using served = await serving([west({ pods: many })])
    const { port } = new URL(served.url)
    const slow = connect(Number(port), '127.0.0.1')
    slow.write(`GET /sse/pod-metrics?token=${await admin()} HTTP/1.1\r\nhost: x\r\n\r\n`)
    slow.pause()
    using quick = await openAs(served.url, '/sse/pod-metrics', admin())
    const start = Date.now()
    const timesIn = (text: string) =>
      [...text.matchAll(/"timestamp":"([^"]+)"/g)].map(([, time]) => Date.parse(time ?? ''))
    for (let round = 1; round <= 30; round++) {
      served.state.set(west({ pods: many, at: start + round * 1000 }))
      await expect.poll(() => timesIn(quick.events.at(-1)?.data ?? '')[0]).toBe(start + round * 1000)
    }
    const taken: string[] = []
    slow.on('data', (data) => taken.push(String(data))).resume()
    const times = () => timesIn(taken.join(''))
    await expect.poll(() => times().at(-1)).toBe(start + 30_000)
    expect(times().length).toBeLessThan(quick.events.length)
    slow.destroy()
  })
})

describe('the fleet', () => {
  const east = (more: MonitoredWords = {}) =>
    west({
      name: 'east',
      labels: { env: 'prod', 'cluster.open-cluster-management.io/clusterset': 'blue' },
      pods: [{ namespace: 'compute-xyz789-0009', name: 'container', node: 'n1' }],
      ...more,
    })

  it('is each cluster under its name; one that is not there for the caller is 404', async () => {
    await using served = await serving([east(), west()], { defaultCluster: 'west' })
    const [root, abc, xyz] = [await admin(), await user('abc123'), await user('xyz789')]
    const { url } = served
    expect(namespacesIn((await asked(`${url}/pod-metrics`, root)).json())).toContain('core')
    expect(namespacesIn((await asked(`${url}/clusters/east/pod-metrics`, root)).json())).toEqual([
      'compute-xyz789-0009',
    ])
    expect((await asked(`${url}/clusters/east/pod-metrics`, abc)).status).toBe(404)
    expect((await asked(`${url}/clusters/none/pod-metrics`, root)).status).toBe(404)
    expect((await asked(`${url}/clusters/east/cluster-info`, abc)).status).toBe(404)
    expect((await asked(`${url}/clusters/east/cluster-info`, xyz)).status).toBe(403)
    expect((await asked(`${url}/clusters/east/api/metrics/nodes/n1`, root)).status).toBe(200)
  })

  it('is wrapped and never merged, chosen by name and label, and paged', async () => {
    await using served = await serving([east(), west()])
    const { url } = served
    const root = await admin()
    const namesOf = async (path: string, token = root) => Object.keys((await asked(url + path, token)).json().clusters)
    expect(await namesOf('/fleet/pod-metrics')).toEqual(['east', 'west'])
    expect(await namesOf('/fleet/pod-metrics?selector=env%3Dprod')).toEqual(['east'])
    expect(await namesOf('/fleet/pod-metrics?selector=env%3Dprod&clusters=west')).toEqual([])
    expect(await namesOf('/fleet/pod-metrics', await user('abc123'))).toEqual(['west'])
    expect(await namesOf('/fleet/pod-metrics?set=blue')).toEqual(['east'])
    expect(await namesOf('/fleet/pod-metrics?set=blue&selector=env%21%3Dprod')).toEqual([])
    expect(await namesOf('/fleet/pod-metrics?set=red')).toEqual([])
    const page = (await asked(`${url}/fleet/cluster-info?limit=1`, root)).json()
    expect(page).toMatchObject({
      continue: 'east',
      clusters: { east: { stale: false, status: 'healthy', nodes: [{ name: 'n1' }] } },
    })
    const rest = (await asked(`${url}/fleet/cluster-info?limit=1&continue=${page.continue}`, root)).json()
    expect([Object.keys(rest.clusters), 'continue' in rest]).toEqual([['west'], false])
    for (const query of ['limit=0', 'limit=x', 'selector=a%3D%3D%3Db'])
      expect((await asked(`${url}/fleet/pod-metrics?${query}`, root)).status).toBe(400)
    expect((await asked(`${url}/fleet/cluster-info`, await user('abc123'))).status).toBe(403)
  })

  it('is summed over what the caller sees, in percents of totals, and withholds nodes from who sees none', async () => {
    const half = { n1: { cpuText: '2', memoryText: '8Gi' } }
    const big = aNode('n1', { capacity: { cpuCores: 12, memoryBytes: 16 * 2 ** 30, storageBytes: null, pods: 1 } })
    await using served = await serving([east({ usage: half }), west({ usage: half, nodes: [big] })])
    const summary = (await asked(`${served.url}/fleet/summary`, await admin())).json()
    expect(summary.total).toMatchObject({
      nodes: 2,
      ready_nodes: 2,
      pods: 4,
      cpu_percent: 25,
      memory_percent: 50,
      alerts: 0,
    })
    expect(summary.clusters.east).toMatchObject({ nodes: 1, cpu_percent: 50, status: 'healthy', stale: false })
    const own = (await asked(`${served.url}/fleet/summary`, await user('abc123'))).json()
    expect(own.total).toEqual({
      nodes: null,
      ready_nodes: null,
      nodes_without_metrics: null,
      pods: 1,
      pods_without_metrics: 0,
      cpu_percent: null,
      memory_percent: null,
      disk_percent: null,
      alerts: 0,
    })
    expect(Object.keys(own.clusters)).toEqual(['west'])
    const history = await asked(`${served.url}/fleet/api/metrics/clusters`, await admin())
    await expect
      .poll(async () =>
        Object.keys((await asked(`${served.url}/fleet/api/metrics/clusters`, await admin())).json().series),
      )
      .toEqual(['east', 'west'])
    expect(Object.keys(history.json())).toEqual(['start', 'end', 'resolution', 'series'])
  })

  it('counts what is there, and says how much of it no usage is known of', async () => {
    const pods = [
      { namespace: 'core', name: 'done', node: 'n1', unmeasured: true as const },
      { namespace: 'core', name: 'unread', node: 'n1', memoryUsed: null },
      { namespace: 'core', name: 'runs', node: 'n1' },
      { namespace: 'compute-abc123-1', name: 'starts', node: 'n1', unmeasured: true as const },
      { namespace: 'not-told-of', name: 'other', node: 'n1', unmeasured: true as const },
    ]
    const nodes = [aNode('n1'), aNode('n2')]
    await using served = await serving([monitored({ name: 'west', nodes, usage: { n1: {} }, pods })])
    const total = async (token: string) => (await asked(`${served.url}/fleet/summary`, token)).json().total
    const all = await total(await admin())
    expect(all).toMatchObject({ nodes: 2, nodes_without_metrics: 1, pods: 4, pods_without_metrics: 3 })
    expect(await total(await user('abc123'))).toMatchObject({ pods: 1, pods_without_metrics: 1 })
    const { clusters } = (await asked(`${served.url}/fleet/pod-metrics`, await admin())).json()
    expect(clusters.west.pods).toHaveLength(all.pods - all.pods_without_metrics)
  })

  it('of no clusters has no nodes, of which an administrator is told', async () => {
    await using served = await serving([])
    const total = async (token: string) => (await asked(`${served.url}/fleet/summary`, token)).json().total
    expect(await total(await admin())).toMatchObject({ nodes: 0, ready_nodes: 0, pods: 0, cpu_percent: null })
    expect(await total(await user('abc123'))).toMatchObject({ nodes: null, ready_nodes: null, pods: 0 })
  })

  it('streams envelopes that name their cluster', async () => {
    await using served = await serving([east(), west()])
    using stream = await EventReader.open(`${served.url}/fleet/sse/health?token=${await admin()}`)
    await expect
      .poll(() => stream.documents.map(({ type, cluster }) => `${cluster} ${type}`).sort())
      .toEqual(['east cluster', 'east pods', 'west cluster', 'west pods'])
    using summary = await EventReader.open(`${served.url}/fleet/sse/summary?token=${await user('abc123')}`)
    await expect.poll(() => summary.documents.length).toBeGreaterThan(0)
    expect(Object.keys(summary.documents[0]?.clusters ?? {})).toEqual([parseClusterName('west')])
  })
})
