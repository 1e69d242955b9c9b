import { describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { EventReader } from '../../../../test/event-stream.ts'
import { type MonitoredWords, monitored, type PodWords } from '../testing/monitored.ts'
import { Picture } from '../testing/picture.ts'
import { serving } from '../testing/serving.ts'
import { admin, user } from '../testing/tokens.ts'

const own = 'compute-abc123-0001'
const podsOf = (...cpu: readonly number[]): readonly PodWords[] => [
  { namespace: 'core', name: 'api', node: 'n1' },
  ...cpu.map((cpuMillicores, at) => ({ namespace: own, name: `p${at}`, node: 'n1', cpuMillicores })),
]
let at = Date.now()
const nextTime = () => {
  at += 1000
  return at
}
const west = (pods: readonly PodWords[] = podsOf(1), more: MonitoredWords = {}) =>
  monitored({ usage: { n1: {} }, pods, at: nextTime(), ...more })

const follow = async (url: string, token: Promise<string>, lastEventId?: string) =>
  EventReader.open(`${url}&token=${await token}`, lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
const kindsOf = (reader: EventReader) =>
  reader.events.map(({ event, data }) => `${event} ${JSON.parse(data).kind ?? ''}`)
const pictureOf = (...readers: readonly EventReader[]) => {
  const picture = new Picture()
  for (const { events } of readers)
    for (const { event, data } of events) picture.apply({ event, data: JSON.parse(data) })
  return picture
}
const lastId = ({ events }: EventReader) => events.at(-1)?.id ?? ''

describe('protocol 2', () => {
  it('begins with snapshots and the status, and goes on with differences', async () => {
    await using served = await serving([west()])
    using stream = await follow(`${served.url}/sse/health?protocol=2`, admin())
    await expect.poll(() => kindsOf(stream)).toEqual(['snapshot nodes', 'snapshot pods', 'status '])
    expect(stream.retries[0]).toBeGreaterThanOrEqual(2000)
    expect(stream.retries[0]).toBeLessThanOrEqual(10_000)
    served.state.set(west(podsOf(1, 2)))
    await expect.poll(() => kindsOf(stream)).toContain('delta pods')
    expect(pictureOf(stream).items('west', 'pods')).toMatchObject([{ name: 'p0' }, { name: 'p1' }, { name: 'api' }])
  })

  it('leads who comes back on from where it was', async () => {
    await using served = await serving([west()])
    const address = `${served.url}/sse/pod-metrics?protocol=2`
    using before = await follow(address, user('abc123'))
    await expect.poll(() => before.events.length).toBe(2)
    before[Symbol.dispose]()
    served.state.set(west(podsOf(5)))
    using after = await follow(address, user('abc123'), lastId(before))
    await expect
      .poll(() => pictureOf(before, after).items('west', 'pods'))
      .toMatchObject([{ name: 'p0', cpu_usage: 5_000_000 }])
    expect(kindsOf(after)).not.toContain('snapshot pods')
  })

  it('gives a snapshot to an id that is forged, of another stream, of another view, or of the future', async () => {
    await using served = await serving([west(), west(podsOf(1), { name: 'east' })], { defaultCluster: 'west' })
    const address = `${served.url}/sse/pod-metrics?protocol=2`
    using mine = await follow(address, user('abc123'))
    using others = await follow(`${served.url}/clusters/east/sse/pod-metrics?protocol=2`, user('abc123'))
    using root = await follow(address, admin())
    await expect.poll(() => Math.min(mine.events.length, others.events.length, root.events.length)).toBe(2)
    const [epoch = '', tick = ''] = lastId(mine).split('.')
    const ids = [
      lastId(others),
      lastId(root),
      `${epoch}.${Number(tick) + 1_000_000}`,
      `${epoch}.`,
      'x.1',
      `${epoch}.-1`,
      '',
    ]
    for (const id of ids) {
      using again = await follow(address, user('abc123'), id)
      await expect.poll(() => kindsOf(again)).toContain('snapshot pods')
    }
  })

  it('starts anew when what is seen changes, and shows nothing of before', async () => {
    await using served = await serving([west()])
    using stream = await follow(`${served.url}/sse/pod-metrics?protocol=2`, user('abc123'))
    await expect.poll(() => stream.events.length).toBe(2)
    served.state.set(west(podsOf(1), { namespaces: { [own]: { 'user-id': 'else' } } }))
    await expect.poll(() => pictureOf(stream).items('west', 'pods')).toEqual([])
    expect(kindsOf(stream).slice(2)).toContain('snapshot pods')
  })

  it('says why it ends', async () => {
    const served = await serving([west(), west(podsOf(1), { name: 'east' })])
    using mine = await follow(`${served.url}/clusters/west/sse/pod-metrics?protocol=2`, user('abc123'))
    using short = await follow(
      `${served.url}/sse/health?protocol=2`,
      user('abc123', { exp: Math.floor(Date.now() / 1000) + 2 }),
    )
    using root = await follow(`${served.url}/fleet/sse/health?protocol=2`, admin())
    await expect.poll(() => root.events.length).toBe(6)
    served.state.set(west(podsOf(1), { namespaces: {} }), west(podsOf(1), { name: 'east' }))
    await expect.poll(() => mine.documents.at(-1)).toMatchObject({ reason: 'access changed' })
    await expect.poll(() => short.documents.at(-1)).toEqual({ reason: 'token expired', retryMs: null })
    await served[Symbol.asyncDispose]()
    await expect.poll(() => root.documents.at(-1)).toMatchObject({ reason: 'server going down' })
    for (const stream of [mine, short, root]) await expect.poll(() => stream.isEnded).toBe(true)
  })

  it('tells the fleet that a cluster went', async () => {
    await using served = await serving([west(), west(podsOf(1), { name: 'east' })])
    using stream = await follow(`${served.url}/fleet/sse/health?protocol=2`, admin())
    await expect.poll(() => pictureOf(stream).places).toEqual(['east nodes', 'east pods', 'west nodes', 'west pods'])
    served.state.set(west())
    await expect.poll(() => pictureOf(stream).places).toEqual(['west nodes', 'west pods'])
  })

  it('tells of a cluster that cannot be read when it was heard last, not when it was tried last', async () => {
    const seen = west()
    await using served = await serving([seen])
    using stream = await follow(`${served.url}/sse/health?protocol=2`, admin())
    const told = () => stream.events.filter(({ event }) => event === 'status').map(({ data }) => JSON.parse(data))
    await expect.poll(() => told().length).toBe(1)
    const [{ lastSeen }] = told()
    const { node } = seen.parts
    served.state.set({
      ...seen,
      status: { ...seen.status, health: 'unhealthy', checkedAt: (seen.status.checkedAt ?? 0) + 60_000 },
      ...(node && { parts: { ...seen.parts, node: { ...node, outcome: 'unreachable' as const } } }),
    })
    await expect.poll(() => told().at(-1)).toMatchObject({ status: 'unhealthy', lastSeen })
  })

  it('is the same over a WebSocket, in envelopes', async () => {
    await using served = await serving([west()])
    const messages: { id: string; event: string; data: Record<string, unknown> }[] = []
    const socket = new WebSocket(`${served.url.replace('http', 'ws')}/ws/pod-metrics?protocol=2&token=${await admin()}`)
    socket.on('message', (data) => messages.push(JSON.parse(String(data))))
    await expect.poll(() => messages.map(({ event }) => event)).toEqual(['snapshot', 'status'])
    served.state.set(west(podsOf()))
    await expect
      .poll(() => messages.find(({ event }) => event === 'delta')?.data)
      .toMatchObject({ remove: [`${own}/p0`] })
    socket.terminate()
  })

  it('costs a steady cluster a fifth of whole snapshots at most', async () => {
    const many = Array.from({ length: 1000 }, (_, i) => ({
      namespace: 'core',
      name: `pod-${i}`,
      node: 'n1',
      cpuMillicores: 50,
    }))
    await using served = await serving([west(many)], { deadBandPoints: 0.1 })
    using whole = await follow(`${served.url}/sse/pod-metrics?`, admin())
    using steps = await follow(`${served.url}/sse/pod-metrics?protocol=2`, admin())
    for (let round = 1; round <= 10; round++) {
      // Every pod moves a little, one in fifty a lot.
      const moved = many.map((pod, i) => ({ ...pod, cpuMillicores: 50 + (i % 50 === round ? 900 : round % 3) }))
      served.state.set(west(moved))
      await expect.poll(() => whole.events.length).toBe(round + 1)
    }
    const bytes = ({ events }: EventReader) => events.slice(1).reduce((sum, { data }) => sum + data.length, 0)
    await expect.poll(() => kindsOf(steps).filter((kind) => kind === 'delta pods').length).toBeGreaterThan(5)
    expect(bytes(steps)).toBeLessThan(bytes(whole) / 5)
  })
})
