import { get } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { leastOf } from '../../../platform/runtime/testing/least-of.ts'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { longestHold } from '../testing/longest-hold.ts'
import { monitored } from '../testing/monitored.ts'
import { serving } from '../testing/serving.ts'
import { admin, user } from '../testing/tokens.ts'

type Point = Readonly<{ t: string; cpu: number; mem: number; disk: number }>

const PATH = '/api/metrics/pods'
const POINTS = 300
/** A client is stuck sooner than in life, ms. */
const STUCK_MS = 1500 * slowness
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 30_000 ? STUCK_MS : ms, signal),
}
const begin = Math.floor(Date.now() / 1000) * 1000 - 3_000_000
// Some 26 MB of history.
const pods = Array.from({ length: 1200 }, (_, at) => ({ namespace: 'core', name: `pod-${at}`, node: 'n1' }))
const past = pods.map(({ namespace, name }, pod) => ({
  ...{ cluster: 'west', entity: 'pod' as const, name: `${namespace}/${name}` },
  numbers: Array.from({ length: POINTS }, (_, at) => [begin + at * 5000, 1e8 + pod * 1e5 + at, 2e9 + at, 3e8]).flat(),
}))

let served: Awaited<ReturnType<typeof serving>>
beforeAll(async () => {
  const west = monitored({ usage: { n1: {} }, pods, at: begin })
  served = await serving([west], { historyMaxBytes: 2 ** 28 }, silentLogger, { clock, past })
})
afterAll(() => served[Symbol.asyncDispose]())

const askedRaw = async (token: string, { version = '1.1', more = '', method = 'GET' } = {}) => {
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1')
  // Until somebody reads: it could have taken all of it before.
  socket.pause()
  socket.on('error', () => undefined)
  socket.write(`${method} ${PATH}?token=${token} HTTP/${version}\r\nhost: x\r\n${more}\r\n`)
  return socket
}
const textOf = async (socket: Awaited<ReturnType<typeof askedRaw>>) => {
  const taken: Buffer[] = []
  for await (const data of socket) taken.push(data)
  return Buffer.concat(taken).toString()
}
const fetched = async (token: string) => {
  const answer = await fetch(served.url + PATH, { headers: { authorization: `Bearer ${token}` } })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const drained = (token: string) =>
  new Promise<number>((resolve) => {
    let bytes = 0
    get(served.url + PATH, { headers: { authorization: `Bearer ${token}` } }, (response) => {
      response.on('data', (data: Buffer) => {
        bytes += data.length
      })
      response.on('end', () => resolve(bytes))
    })
  })

describe('a large answer', () => {
  it('is to the byte the document, with series by name and points as they were measured', async () => {
    const { status, text, headers } = await fetched(await admin())
    const document = JSON.parse(text)
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      ...[200, 'application/json', 'private, no-store'],
    ])
    expect(text).toBe(`${JSON.stringify(document)}\n`)
    expect(Object.keys(document)).toEqual(['start', 'end', 'resolution', 'series', 'timestamp', 'pods'])
    const names = past.map(({ name }) => name)
    expect(Object.keys(document.series)).toEqual(names.toSorted())
    for (const { name, numbers } of past)
      expect(document.series[name].flatMap(({ t, cpu, mem, disk }: Point) => [Date.parse(t), cpu, mem, disk])).toEqual(
        numbers,
      )
    expect(document.pods.map((pod: { name: string }) => `core/${pod.name}`)).toEqual(names.toSorted())
  })

  it('holds nobody up, be it one or several at once', async () => {
    const token = await admin()
    await drained(token)
    // The collector of garbage counts too: it does not always come at the worst time.
    const holdMs = await leastOf(3, 100, () =>
      longestHold(() => Promise.all([drained(token), drained(token), drained(token)])),
    )
    expect(holdMs).toBeLessThan(100)
  })

  it('costs a piece of memory where nobody reads it, and ends after half a minute', async () => {
    const before = process.memoryUsage().arrayBuffers
    const readers = await Promise.all(['a', 'b', 'c', 'd'].map(async (id) => askedRaw(await admin({ user_id: id }))))
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    }, 5)
    await systemClock.sleep(STUCK_MS * 2)
    clearInterval(timer)
    expect(most).toBeLessThan(16 * 2 ** 20)
    // What the system had taken is all they get.
    for (const socket of readers) expect((await textOf(socket).catch(() => '')).length).toBeLessThan(20e6)
  })

  it('is refused with 429 to who waits for many already, and made for others and after who went away', {
    tags: ['long'],
  }, async () => {
    const [token, other] = [await admin({ user_id: 'many' }), await admin({ user_id: 'other' })]
    const slow = await Promise.all(Array.from({ length: 2 }, () => askedRaw(token)))
    await systemClock.sleep(500 * slowness)
    const waiting = Array.from({ length: 8 }, () => drained(token))
    await systemClock.sleep(500 * slowness)
    const refused = await fetched(token)
    expect([refused.status, refused.text, refused.headers.get('retry-after')]).toEqual([
      ...[429, 'too many large answers at once\n', '5'],
    ])
    const length = await drained(other)
    for (const socket of slow) socket.destroy()
    // The present in it may be written a letter shorter: its end is told to the millisecond.
    for (const bytes of await Promise.all(waiting)) expect(Math.abs(bytes - length)).toBeLessThan(10)
    expect((await fetched(await user('nobody'))).status).toBe(200)
  })

  it('reaches who speaks HTTP/1.0 or offers another protocol, and HEAD has its head alone', async () => {
    const token = await admin()
    const old = await textOf(await askedRaw(token, { version: '1.0' }))
    expect(old.endsWith(']}\n')).toBe(true)
    expect(old).not.toContain('transfer-encoding')
    const more = 'connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n'
    expect((await textOf(await askedRaw(token, { more }))).endsWith('0\r\n\r\n')).toBe(true)
    const head = await textOf(await askedRaw(token, { method: 'HEAD', more: 'connection: close\r\n' }))
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n[^{]*application\/json[^{]*$/)
  })
})
