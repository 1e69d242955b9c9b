import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { aCluster, anAgent, type Wish } from '../../../test/page/clusters.ts'
import type { Gateway } from '../../../test/page/gateway.ts'
import { administrator, PageHub } from '../../../test/page/hub.ts'
import { clustersFor } from '../../../test/page/policies.ts'
import { createClient } from '../contract.ts'
import { HubClock } from './hub-clock.ts'
import { LiveStore } from './live-store.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

/** The least of an EventSource that the store needs, over HTTP. */
class TestSource extends EventTarget {
  readyState = 0
  readonly #abort = new AbortController()
  constructor(url: string) {
    super()
    this.#read(url).catch(() => {
      if (this.readyState === 2) return
      this.readyState = 0 // a browser would try again by itself
      this.dispatchEvent(new Event('error'))
    })
  }
  close(): void {
    this.readyState = 2
    this.#abort.abort()
  }
  async #read(url: string): Promise<void> {
    const response = await fetch(url, { signal: this.#abort.signal, headers: { 'accept-encoding': 'identity' } })
    if (response.status !== 200 || !response.body) {
      this.readyState = 2
      this.dispatchEvent(new Event('error'))
      return
    }
    this.readyState = 1
    let rest = ''
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1] ?? ''
        if (field('event'))
          this.dispatchEvent(new MessageEvent(field('event'), { data: field('data'), lastEventId: field('id') }))
      }
    }
    throw new Error('the stream ended')
  }
}

/** A stream that says what it is told to. */
class TestTarget extends EventTarget {
  readonly readyState = 1
  close(): void {}
  say(kind: string, message: object, lastEventId = ''): void {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(message), lastEventId }))
  }
}

describe('LiveStore', () => {
  let hub: PageHub
  let gateway: Gateway
  let base: string
  let store: LiveStore
  const cluster = (name: string, wish: Wish = {}) => aCluster(name, hub.now(), { rounds: 1, ageMs: 0, ...wish })
  /** The clusters that alice may see, from now on. */
  const share = (...clusters: readonly string[]) =>
    hub.policies.resync([{ document: clustersFor('alice', clusters), status: {} }])

  beforeAll(async () => {
    hub = await PageHub.open({ root: '/nowhere' })
    gateway = hub.gateway
  })
  afterAll(async () => {
    await hub[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    Object.assign(gateway, { visitor: administrator, refuse: null, hold: false, streams: true, only: /^\/api\// })
    await hub.fill([cluster('west'), cluster('east')])
    base = await gateway.start()
    gateway.requests.splice(0)
    store = aStoreWith({ patienceMs: 100, pollMs: 100, lingerMs: 20, silenceMs: 2000 })
  })
  afterEach(async () => {
    store.stop()
    gateway.hold = false
    await gateway.stop()
  })
  const aStoreWith = (timing: object) =>
    new LiveStore({
      client: createClient({ baseUrl: base }),
      openStream: (url) => new TestSource(url) as unknown as EventSource,
      timing,
      random: () => 0,
    })
  const link = () => store.current().link.state
  const fleet = () => store.current().fleet

  it('shows the snapshot and every change after it', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    expect([...fleet().clusters.keys()].sort()).toEqual(['east', 'west'])
    await hub.put(cluster('west', { notReady: 1 }))
    await vi.waitFor(() => expect(fleet().clusters.get('west')?.health).toBe('degraded'), PATIENCE_MS)
    await hub.remove('east')
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(1), PATIENCE_MS)
  })

  it('polls where no stream gets through, and goes back to the stream by itself', async () => {
    gateway.streams = false
    store.start()
    await vi.waitFor(() => expect(link()).toBe('polling'), PATIENCE_MS)
    expect(fleet().clusters.size).toBe(2)
    gateway.streams = true
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })

  it('keeps what it knew while the hub is away, says so, and catches up', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    gateway.refuse = { status: 503, code: 'store_unavailable', error: 'redis is not available' }
    gateway.cut()
    await vi.waitFor(() => expect(store.current().problem?.code).toBe('store_unavailable'), PATIENCE_MS)
    expect(fleet().clusters.size).toBe(2)
    gateway.refuse = null
    store.refresh()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    expect(store.current().problem).toBeNull()
  })

  it('is live again soon after a hub that was away long comes back, however often it was asked in vain', async () => {
    const port = Number(new URL(base).port)
    store = aStoreWith({ patienceMs: 20, pollMs: 600_000, mostAwayMs: 50 })
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    await gateway.stop()
    await vi.waitFor(() => expect(link()).toBe('offline'), PATIENCE_MS)
    await new Promise((resolve) => setTimeout(resolve, 300)) // a dozen vain attempts
    await gateway.start(port)
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })

  const aStore = async (timing: object) => {
    store = aStoreWith(timing)
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  }

  it('is offline as soon as its stream broke off and nothing answers, long before its patience ends', async () => {
    await aStore({ brokenMs: 20 })
    const since = Date.now()
    await gateway.stop()
    await vi.waitFor(() => expect(link()).toBe('offline'), PATIENCE_MS)
    expect(Date.now() - since).toBeLessThan(8000) // ten seconds
    expect(fleet().clusters.has('west')).toBe(true)
  })

  it('waits for a hub that is slow to answer, says since when, and never calls it gone', async () => {
    await aStore({ quietMs: 50, answerMs: 50, againMs: 50 })
    Object.assign(gateway, { hold: true, only: /./ })
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    // Since it was last heard, not since it was asked in vain.
    expect(store.current().waitingSince).toBe(store.current().heardAt)
    await new Promise((resolve) => setTimeout(resolve, 300)) // asked again and again
    expect(link()).toBe('reconnecting')
    gateway.hold = false
    await hub.put(cluster('west', { notReady: 1 }))
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    expect(store.current().waitingSince).toBeNull()
  })

  it('stays live through a silence in which the hub answers when asked', async () => {
    // As long as a busy machine may take to answer.
    await aStore({ quietMs: 20, againMs: 20, answerMs: 20_000, stallMs: 20_000 })
    const states = new Set<string>()
    store.subscribe(() => states.add(link()))
    await vi.waitFor(
      () => expect(gateway.requests.filter((one) => one === '/healthz').length).toBeGreaterThan(2),
      PATIENCE_MS,
    )
    expect([...states].filter((state) => state !== 'live')).toEqual([])
    // To ask so would renew the session of a screen that nobody uses.
    expect(gateway.requests.filter((one) => one.includes('/session'))).toEqual([])
  })

  it('is not live where its stream stalls, though the hub answers and the connection stands, and is read meanwhile', async () => {
    gateway.only = /^\/api\/v1\/stream/
    await aStore({ quietMs: 50, stallMs: 1500, lostMs: 3000, patienceMs: 300, tryMs: 300, pollMs: 100 })
    const opened = () => gateway.requests.filter((one) => gateway.only.test(one)).length
    const before = opened()
    gateway.hold = true
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    expect(store.current().waitingSince).toBe(store.current().heardAt)
    expect(opened()).toBe(before + 1)
    await vi.waitFor(() => expect(link()).toBe('polling'), PATIENCE_MS)
    // Again and again, and the stream is tried between.
    for (const [at, name] of ['north', 'south', 'centre'].entries()) {
      await hub.put(cluster(name))
      await vi.waitFor(() => expect(fleet().clusters.size).toBe(3 + at), PATIENCE_MS)
      expect(link()).toBe('polling')
    }
    gateway.hold = false
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })

  it('opens a stream that stalls anew, once in a while, and is live as soon as one is heard that has told all', async () => {
    const sources: TestTarget[] = []
    let openedAs = ''
    const openStream = () => {
      openedAs = link()
      sources.push(new TestTarget())
      return sources.at(-1) as unknown as EventSource
    }
    const timing = { quietMs: 20, answerMs: 20_000, stallMs: 20, lostMs: 20, silenceMs: 60_000, patienceMs: 60_000 }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream, timing })
    store.followRows({ type: 'pods', limit: 10 }, () => undefined)
    store.start()
    await vi.waitFor(() => expect(sources).toHaveLength(1))
    const say = (kind: string, more = {}) => sources.at(-1)?.say(kind, { now: 1, ...more })
    say('snapshot', { clusters: [], rows: [] })
    say('synced')
    await vi.waitFor(() => expect(sources).toHaveLength(2), PATIENCE_MS)
    expect(openedAs).toBe('live')
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    say('heartbeat')
    expect(link()).toBe('reconnecting')
    say('synced')
    expect(link()).toBe('live')
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    say('heartbeat')
    expect(link()).toBe('live')
    expect(sources).toHaveLength(2)
  })

  it('asks for rows that are shown beside those it follows when a stream is opened, or goes on or begins again by itself', () => {
    const sources: { readonly url: string; readonly target: TestTarget }[] = []
    const openStream = (url: string) => {
      const target = Object.assign(new TestTarget(), { readyState: 0 })
      sources.push({ url, target })
      return target as unknown as EventSource
    }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream })
    let shown = ['west/a']
    store.followRows(
      { type: 'pods', limit: 10 },
      () => undefined,
      () => shown,
    )
    store.start()
    const say = (kind: string, more = {}) => sources.at(-1)?.target.say(kind, { now: 1, ...more })
    const synced = () => {
      const event = { data: '{"now":1}', lastEventId: 'here' }
      sources.at(-1)?.target.dispatchEvent(new MessageEvent('synced', event))
    }
    const after = () => sources.map(({ url }) => new URL(url).searchParams.get('lastEventId'))
    const begin = () => say('rows', { query: 0, from: 0, items: [], total: 0, isLast: true })
    const also = () => sources.map(({ url }) => new URL(url).searchParams.get('rows')?.split('&also=').slice(1))
    say('snapshot', { clusters: [], rows: [] })
    begin()
    synced()
    begin()
    expect(also()).toEqual([['west%2Fa']])
    shown = ['west/b']
    // It is told what becomes of them, until the stream forgets.
    say('rowsChange', { query: 0, changes: [], total: 0 })
    expect(sources).toHaveLength(1)
    begin()
    expect(also()).toEqual([['west%2Fa'], ['west%2Fb']])
    begin()
    synced()
    shown = ['west/c']
    sources.at(-1)?.target.dispatchEvent(new Event('error'))
    say('heartbeat')
    expect(also()).toEqual([['west%2Fa'], ['west%2Fb'], ['west%2Fc']])
    // Where it has forgotten there is nothing to go on with.
    expect(after()).toEqual([null, null, 'here'])
    shown = []
    say('heartbeat')
    sources.at(-1)?.target.dispatchEvent(new Event('error'))
    say('heartbeat')
    expect(sources).toHaveLength(3)
  })

  it('asks for rows that left while nothing was heard, once what began anew is drawn, and goes on where it stands', async () => {
    const sources: { readonly url: string; readonly target: TestTarget }[] = []
    const openStream = (url: string) => {
      sources.push({ url, target: Object.assign(new TestTarget(), { readyState: 0 }) })
      return sources.at(-1)?.target as unknown as EventSource
    }
    const timing = { besidesMs: [20, 20, 20] }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream, timing })
    let shown: readonly string[] = []
    store.followRows(
      { type: 'pods', limit: 10 },
      () => undefined,
      () => shown,
    )
    store.start()
    const say = (kind: string, more = {}) => sources.at(-1)?.target.say(kind, { now: 1, ...more })
    const begin = () => {
      say('snapshot', { clusters: [], rows: [] })
      say('rows', { query: 0, from: 0, items: [], total: 0, isLast: true })
      const event = { data: '{"now":1}', lastEventId: 'here' }
      sources.at(-1)?.target.dispatchEvent(new MessageEvent('synced', event))
    }
    begin()
    shown = ['west/left']
    await vi.waitFor(() => expect(sources).toHaveLength(2), PATIENCE_MS)
    const parameters = new URL(sources[1]?.url ?? '').searchParams
    expect(parameters.get('lastEventId')).toBe('here')
    expect(parameters.get('rows')).toContain('also=west%2Fleft')
    // What leaves later is told, and what began anew is looked at no further.
    begin()
    await new Promise((resolve) => setTimeout(resolve, 200))
    shown = ['west/left', 'west/later']
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(sources).toHaveLength(2)
  })

  /** A store whose streams say what a test lets them, before a hub that says in time that it lives only once `isWell`. */
  const aSilentStore = (timing: object) => {
    const sources: TestTarget[] = []
    const openStream = () => {
      sources.push(new TestTarget())
      return sources.at(-1) as unknown as EventSource
    }
    Object.assign(gateway, { hold: true, only: /^\/healthz/ })
    const waits = { quietMs: 20, answerMs: 500, againMs: 20, stallMs: 20, silenceMs: 60_000 }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream, timing: { ...waits, ...timing } })
    store.start()
    sources[0]?.say('snapshot', { clusters: [], rows: [], now: 1 })
    expect(link()).toBe('live')
    const isWell = () => Object.assign(gateway, { hold: false })
    return { sources, isWell }
  }

  it('opens a silent stream anew as soon as the hub answers, which was slow to do so before, and is live with it', async () => {
    const { sources, isWell } = aSilentStore({ lostMs: 60_000, patienceMs: 60_000 })
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    expect(sources).toHaveLength(1)
    isWell()
    await vi.waitFor(() => expect(sources).toHaveLength(2), PATIENCE_MS)
    expect(link()).toBe('reconnecting')
    sources.at(-1)?.say('heartbeat', { now: 2 })
    expect(link()).toBe('live')
    expect(store.current().waitingSince).toBeNull()
  })

  it('takes an answer that comes late for one: a hub that is always slow to answer has its stream opened anew', async () => {
    const { sources, isWell } = aSilentStore({ lostMs: 60_000, patienceMs: 60_000, answerMs: 100, againMs: 60_000 })
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    isWell()
    await vi.waitFor(() => expect(sources).toHaveLength(2), PATIENCE_MS)
  })

  it('polls where the hub was slow to answer once and new streams stall as well, no later than without that', async () => {
    const since = performance.now()
    const { sources, isWell } = aSilentStore({ lostMs: 1500, patienceMs: 1500, pollMs: 100, tryMs: 300 })
    const states: string[] = []
    store.subscribe(() => {
      if (states.at(-1) !== link()) states.push(link())
    })
    await vi.waitFor(() => expect(link()).toBe('reconnecting'), PATIENCE_MS)
    isWell()
    await vi.waitFor(() => expect(sources).toHaveLength(2), PATIENCE_MS)
    await vi.waitFor(() => expect(link()).toBe('polling'), PATIENCE_MS)
    expect(performance.now() - since).toBeGreaterThan(2900)
    expect(performance.now() - since).toBeLessThan(15_000)
    for (const [at, name] of ['north', 'south'].entries()) {
      await hub.put(cluster(name))
      await vi.waitFor(() => expect(fleet().clusters.size).toBe(3 + at), PATIENCE_MS)
    }
    expect(states).toEqual(['reconnecting', 'polling'])
  })

  it('takes messages that waited while the machine slept for the past, asks what is now, and says so meanwhile', async () => {
    const sources: TestTarget[] = []
    const urls: string[] = []
    const openStream = (url: string) => {
      urls.push(url)
      sources.push(new TestTarget())
      return sources.at(-1) as unknown as EventSource
    }
    let localNow = 1_000_000
    const clock = new HubClock(() => localNow)
    const timing = { quietMs: 60_000, silenceMs: 60_000, patienceMs: 60_000, wakeMs: 50 }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream, clock, timing })
    store.start()
    await vi.waitFor(() => expect(sources).toHaveLength(1))
    const say = (kind: string, now: number, more = {}, id = '') => sources.at(-1)?.say(kind, { now, ...more }, id)
    const ill = { ...cluster('west'), status: 'unhealthy' }
    say('snapshot', 1_000_000, { clusters: [cluster('west')], rows: [] }, 'a-1')
    say('synced', 1_000_000, {}, 'a-1')
    expect(link()).toBe('live')
    // 54 s later all that was said meanwhile comes at once.
    localNow += 54_000
    const [first] = sources
    for (let ms = 1000; ms < 54_000; ms += 1000) first?.say('heartbeat', { now: 1_000_000 + ms }, '')
    expect(link()).toBe('reconnecting')
    expect(store.current().waitingSince).toBe(1_000_000)
    expect(clock.now()).toBe(localNow)
    expect(sources).toHaveLength(2)
    expect(urls[1]).toContain('lastEventId=a-1')
    say('change', localNow, { changes: [{ op: 'put', type: 'cluster', cluster: 'west', view: ill }] }, 'a-2')
    say('synced', localNow, {}, 'a-2')
    expect(link()).toBe('live')
    expect(fleet().clusters.get('west')).toMatchObject({ status: 'unhealthy' })
    // A clock of the hub that was set back makes everything late: that is believed of another stream.
    await vi.waitFor(() => {
      say('heartbeat', localNow - 20_000)
      expect(sources).toHaveLength(3)
    })
    for (let beat = 0; beat < 5; beat++) say('heartbeat', localNow - 20_000 + beat)
    say('synced', localNow - 20_000)
    expect(link()).toBe('live')
    expect(sources).toHaveLength(3)
    expect(Math.abs(clock.now() - (localNow - 20_000))).toBeLessThan(10)
  })

  it('takes a timer that fires late, as after a sleep of the machine, for nothing that the hub did', async () => {
    await aStore({ quietMs: 20, answerMs: 20, againMs: 20, lateMs: -60_000 })
    Object.assign(gateway, { hold: true, only: /./ })
    await vi.waitFor(
      () => expect(gateway.requests.filter((one) => one === '/healthz').length).toBeGreaterThan(5),
      PATIENCE_MS,
    )
    expect(link()).toBe('live')
  })

  it('opens a stream that broke off again at once, while the hub lives', async () => {
    await aStore({ brokenMs: 20, patienceMs: 60_000 })
    gateway.cut()
    expect(gateway.openStreams).toBe(0)
    await vi.waitFor(() => expect(gateway.openStreams).toBe(1), PATIENCE_MS)
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })

  it.each([401, 403])('stops asking when it is refused with %d', async (status) => {
    gateway.refuse = { status, code: 'unauthenticated', error: 'who are you' }
    store.start()
    await vi.waitFor(() => expect(link()).toBe('refused'), PATIENCE_MS)
    expect(gateway.openStreams).toBe(0)
  })

  it('hears what happens on a cluster while somebody shows it, with one stream for all', async () => {
    const asked = () => gateway.requests.filter((request) => request.startsWith('/api/v1/stream'))
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    const release = store.follow('west')
    await vi.waitFor(() => expect(asked().at(-1)).toContain('cluster=west'), PATIENCE_MS)
    await vi.waitFor(() => expect(gateway.openStreams).toBe(1), PATIENCE_MS)
    release()
    await vi.waitFor(() => expect(asked().at(-1)).not.toContain('cluster='), PATIENCE_MS)
  })

  it('hears the events of a cluster that is looked at, also where none of its rows are shown', async () => {
    const agent = anAgent(hub.now())
    for (const name of ['east', 'west']) await hub.put(cluster(name, { mode: 'push', agent }))
    const release = store.follow('west')
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    const away = { mode: 'push' as const, agent: anAgent(hub.now(), { connected: false, reason: 'it was stopped' }) }
    for (const name of ['east', 'west']) await hub.put(cluster(name, away))
    await vi.waitFor(() => expect(fleet().events.map(({ type }) => type)).toContain('agent.disconnected'), PATIENCE_MS)
    expect(new Set(fleet().events.map(({ cluster: of }) => of))).toEqual(new Set(['west']))
    expect(fleet().clusters.get('east')?.agent?.connected).toBe(false)
    gateway.streams = false
    gateway.cut()
    await vi.waitFor(() => expect(link()).toBe('polling'), PATIENCE_MS)
    release()
  })

  const asAlice = async () => {
    await share('west', 'east')
    gateway.visitor = { username: 'alice', email: '', groups: [] }
    store.start()
    await vi.waitFor(() => expect([link(), fleet().clusters.size]).toEqual(['live', 2]), PATIENCE_MS)
  }

  it('says that access changed when the new picture is there, until that was read', async () => {
    await asAlice()
    await share('east')
    await vi.waitFor(() => expect([...fleet().clusters.keys()]).toEqual(['east']), PATIENCE_MS)
    expect(store.current().accessChangedAt).not.toBeNull()
    store.noteRead()
    expect(store.current().accessChangedAt).toBeNull()
  })

  it('shows nothing a second after access changed, even if the new picture takes longer', async () => {
    await asAlice()
    gateway.say('access', { reason: 'policies', now: hub.now() })
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(0), PATIENCE_MS)
    await share('east')
    await vi.waitFor(() => expect(fleet().clusters.size).toBeGreaterThan(0), PATIENCE_MS)
  })

  it('shows nothing while policies cannot be read, and everything soon after they can', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    gateway.refuse = { status: 503, code: 'policies_unavailable', error: 'the policies cannot be read' }
    gateway.say('reset', { reason: 'policies_unavailable' })
    await vi.waitFor(() => expect(store.current().problem?.code).toBe('policies_unavailable'), PATIENCE_MS)
    expect(fleet()).toMatchObject({ loaded: false, clusters: new Map(), events: [] })
    gateway.refuse = null
    await vi.waitFor(() => expect(link()).toBe('live'), { timeout: 40_000 })
    expect(fleet().clusters.size).toBe(2)
  })

  it('keeps nothing of a session that ended', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    gateway.refuse = { status: 401, code: 'unauthenticated', error: 'sign in' }
    gateway.say('reset', { reason: 'session_ended' })
    await vi.waitFor(() => expect(link()).toBe('refused'), PATIENCE_MS)
    expect(fleet()).toMatchObject({ loaded: false, clusters: new Map() })
  })

  it('begins again where a stream was ended for being slow', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    gateway.streams = false
    gateway.say('reset', { reason: 'too slow: begin again' })
    gateway.cut()
    await hub.remove('west')
    gateway.streams = true
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(1), PATIENCE_MS)
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })

  it('opens the stream anew when the session was renewed, without a gap in what is shown', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    const opened = gateway.requests.filter((path) => path.startsWith('/api/v1/stream')).length
    store.reopen()
    await vi.waitFor(
      () => expect(gateway.requests.filter((path) => path.startsWith('/api/v1/stream'))).toHaveLength(opened + 1),
      PATIENCE_MS,
    )
    expect(gateway.requests.at(-1)).toContain('lastEventId=')
    expect([link(), fleet().clusters.size]).toEqual(['live', 2])
  })

  it('is live when rows are told as well, not before', async () => {
    const sources: TestTarget[] = []
    const openStream = () => {
      sources.push(new TestTarget())
      return sources.at(-1) as unknown as EventSource
    }
    store = new LiveStore({ client: createClient({ baseUrl: base }), openStream })
    store.followRows({ type: 'pods', limit: 10 }, () => undefined)
    store.start()
    sources.at(-1)?.say('store', { state: 'available', since: null, reason: '' })
    sources.at(-1)?.say('snapshot', { clusters: [], rows: [], now: 1 })
    expect(link()).toBe('connecting')
    sources.at(-1)?.say('synced', { now: 2 })
    expect(link()).toBe('live')
    // What is heard later says no less.
    sources.at(-1)?.say('heartbeat', { now: 3 })
    expect(link()).toBe('live')
  })

  it('rests after a long time hidden, and wakes when shown', async () => {
    store = aStoreWith({ hiddenMs: 10 })
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
    store.setHidden(true)
    await vi.waitFor(() => expect(link()).toBe('paused'), PATIENCE_MS)
    await vi.waitFor(() => expect(gateway.openStreams).toBe(0), PATIENCE_MS)
    store.setHidden(false)
    await vi.waitFor(() => expect(link()).toBe('live'), PATIENCE_MS)
  })
})

describe('HubClock', () => {
  it('follows the hub to the second, taking the least delayed message for the truth', () => {
    let local = 1_000_000
    const clock = new HubClock(() => local)
    for (const delay of [900, 40, 300]) {
      local += 15_000
      clock.observe(local + 7_200_000 - delay)
    }
    expect(clock.now() - local).toBe(7_200_000 - 40)
  })
})
