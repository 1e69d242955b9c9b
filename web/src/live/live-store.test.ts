import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FakeHub } from '../../testing/fake-hub.ts'
import { aCluster } from '../../testing/worlds.ts'
import { createClient } from '../contract.ts'
import { HubClock } from './hub-clock.ts'
import { LiveStore } from './live-store.ts'

/** The least of an EventSource that the store needs, over the real HTTP of the fake hub. */
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
    const response = await fetch(url, { signal: this.#abort.signal })
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

describe('LiveStore', () => {
  let hub: FakeHub
  let store: LiveStore
  beforeEach(async () => {
    hub = new FakeHub({ root: '/nowhere' })
    hub.fill([aCluster('west', Date.now()), aCluster('east', Date.now())])
    const client = createClient({ baseUrl: await hub.start() })
    store = new LiveStore({
      client,
      openStream: (url) => new TestSource(url) as unknown as EventSource,
      timing: { patienceMs: 100, pollMs: 100, lingerMs: 20, silenceMs: 2000, drawMs: 1000 },
      random: () => 0,
    })
  })
  afterEach(async () => {
    store.stop()
    await hub.stop()
  })
  const link = () => store.current().link.state
  const fleet = () => store.current().fleet

  it('shows the snapshot and every change after it', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    expect([...fleet().clusters.keys()]).toEqual(['west', 'east'])
    hub.put(aCluster('west', Date.now(), { health: 'degraded' }))
    await vi.waitFor(() => expect(fleet().clusters.get('west')?.health).toBe('degraded'))
    hub.remove('east')
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(1))
  })

  it('lets the first rows of a long list be drawn before it reads the others, and hides at once what access takes', async () => {
    const large = aCluster('large', Date.now(), { nodes: 1 })
    const [node] = large.rows.node
    if (!node) throw new Error('a cluster of one node has one')
    large.rows.node.length = 0
    for (let index = 0; index < 3000; index++) large.rows.node.push({ ...node, name: `node-${index}` })
    hub.fill([large])
    store.follow('large', 'node')
    store.start()
    const shown = () => fleet().rows.get('large/node')?.items.size
    await vi.waitFor(() => expect(shown()).toBe(300))
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(shown()).toBe(300)
    await vi.waitFor(() => expect(shown()).toBe(3000), { timeout: 10_000 })

    store.refresh()
    await vi.waitFor(() => expect(fleet().rows.get('large/node')?.arriving?.items.size).toBe(300))
    hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
    await vi.waitFor(() => expect(fleet().isOutdated).toBe(true), { timeout: 700, interval: 10 })
  })

  it('polls where no stream gets through, and goes back to the stream by itself', async () => {
    hub.behaviour.streams = false
    store.start()
    await vi.waitFor(() => expect(link()).toBe('polling'))
    expect(fleet().clusters.size).toBe(2)
    hub.behaviour.streams = true
    await vi.waitFor(() => expect(link()).toBe('live'), { timeout: 3000 })
  })

  it('keeps what it knew while the hub is away, says so, and catches up', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.behaviour.refuse = { status: 503, code: 'store_unavailable', error: 'redis is not available' }
    hub.cut()
    await vi.waitFor(() => expect(store.current().problem?.code).toBe('store_unavailable'))
    expect(fleet().clusters.size).toBe(2)
    hub.behaviour.refuse = null
    store.refresh()
    await vi.waitFor(() => expect(link()).toBe('live'))
    expect(store.current().problem).toBeNull()
  })

  it('is live again soon after a hub that was away long comes back, however often it was asked in vain', async () => {
    store.stop()
    const port = Number(new URL(await hubUrl()).port)
    const timing = { patienceMs: 20, pollMs: 600_000, mostAwayMs: 50 }
    store = new LiveStore({
      client: createClient({ baseUrl: `http://127.0.0.1:${port}` }),
      openStream: (url) => new TestSource(url) as unknown as EventSource,
      timing,
      random: () => 0,
    })
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    await hub.stop()
    await vi.waitFor(() => expect(link()).toBe('offline'))
    await new Promise((resolve) => setTimeout(resolve, 300)) // a dozen vain attempts
    await hub.start(port)
    await vi.waitFor(() => expect(link()).toBe('live'), { timeout: 3000 })
  })

  const aStore = async (timing: object) => {
    store.stop()
    store = new LiveStore({
      client: createClient({ baseUrl: await hubUrl() }),
      openStream: (url) => new TestSource(url) as unknown as EventSource,
      timing,
      random: () => 0,
    })
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
  }

  it('is offline as soon as its stream broke off and nothing answers, long before its patience ends', async () => {
    await aStore({ brokenMs: 20 })
    const since = Date.now()
    await hub.stop()
    await vi.waitFor(() => expect(link()).toBe('offline'), { timeout: 3000 })
    expect(Date.now() - since).toBeLessThan(3000)
    expect(fleet().clusters.has('west')).toBe(true)
  })

  it('waits for a hub that is slow to answer, says since when, and never calls it gone', async () => {
    await aStore({ quietMs: 50, answerMs: 50 })
    hub.behaviour.hold = true
    await vi.waitFor(() => expect(link()).toBe('reconnecting'))
    expect(store.current().waitingSince).not.toBeNull()
    await new Promise((resolve) => setTimeout(resolve, 300)) // asked again and again
    expect(link()).toBe('reconnecting')
    hub.behaviour.hold = false
    hub.put(aCluster('west', Date.now(), { health: 'degraded' }))
    await vi.waitFor(() => expect(link()).toBe('live'))
    expect(store.current().waitingSince).toBeNull()
  })

  it('stays live through a silence in which the hub answers when asked', async () => {
    await aStore({ quietMs: 20 })
    const states = new Set<string>()
    store.subscribe(() => states.add(link()))
    await vi.waitFor(() => expect(hub.requests.filter((one) => one.includes('/session')).length).toBeGreaterThan(2))
    expect([...states]).toEqual([])
  })

  it('opens a stream that broke off again at once, while the hub lives', async () => {
    await aStore({ brokenMs: 20, patienceMs: 60_000 })
    hub.cut()
    expect(hub.openStreams).toBe(0)
    await vi.waitFor(() => expect(hub.openStreams).toBe(1))
    await vi.waitFor(() => expect(link()).toBe('live'))
  })

  it.each([401, 403])('stops asking when it is refused with %d', async (status) => {
    hub.behaviour.refuse = { status, code: 'unauthenticated', error: 'who are you' }
    store.start()
    await vi.waitFor(() => expect(link()).toBe('refused'))
    expect(hub.openStreams).toBe(0)
  })

  it('asks for rows while somebody shows them, with one stream for all', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    const release = store.follow('west', 'node')
    await vi.waitFor(() => expect(fleet().rows.get('west/node')?.items.size).toBe(5))
    await vi.waitFor(() => expect(hub.openStreams).toBe(1))
    release()
    await vi.waitFor(() => expect(fleet().rows.size).toBe(0))
  })

  it('says that access changed when the new picture is there, until that was read', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
    hub.fill([aCluster('east', Date.now())])
    hub.snapshot()
    await vi.waitFor(() => expect([...fleet().clusters.keys()]).toEqual(['east']))
    expect(store.current().accessChangedAt).not.toBeNull()
    store.noteRead()
    expect(store.current().accessChangedAt).toBeNull()
  })

  it('shows nothing a second after access changed, even if the new picture takes longer', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.say({ kind: 'access', reason: 'policies', now: hub.now() })
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(0), { timeout: 3_000 })
    hub.snapshot()
    await vi.waitFor(() => expect(fleet().clusters.size).toBeGreaterThan(0))
  })

  it('shows nothing while policies cannot be read, and everything soon after they can', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.behaviour.refuse = { status: 503, code: 'policies_unavailable', error: 'the policies cannot be read' }
    hub.say({ kind: 'reset', reason: 'policies_unavailable' })
    await vi.waitFor(() => expect(store.current().problem?.code).toBe('policies_unavailable'))
    expect(fleet()).toMatchObject({ loaded: false, clusters: new Map(), rows: new Map(), events: [] })
    hub.behaviour.refuse = null
    await vi.waitFor(() => expect(link()).toBe('live'), { timeout: 10_000 })
    expect(fleet().clusters.size).toBe(2)
  })

  it('keeps nothing of a session that ended', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.behaviour.refuse = { status: 401, code: 'unauthenticated', error: 'sign in' }
    hub.say({ kind: 'reset', reason: 'session_ended' })
    await vi.waitFor(() => expect(link()).toBe('refused'))
    expect(fleet()).toMatchObject({ loaded: false, clusters: new Map() })
  })

  it('begins again where a stream was ended for being slow', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    hub.say({ kind: 'reset', reason: 'too slow: begin again' })
    hub.cut()
    hub.worlds.delete('west')
    await vi.waitFor(() => expect(fleet().clusters.size).toBe(1))
    await vi.waitFor(() => expect(link()).toBe('live'))
  })

  it('opens the stream anew when the session was renewed, without a gap in what is shown', async () => {
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    const opened = hub.requests.filter((path) => path.startsWith('/api/v1/stream')).length
    store.reopen()
    await vi.waitFor(() =>
      expect(hub.requests.filter((path) => path.startsWith('/api/v1/stream'))).toHaveLength(opened + 1),
    )
    expect(hub.requests.at(-1)).toContain('lastEventId=')
    expect([link(), fleet().clusters.size]).toEqual(['live', 2])
  })

  it('rests after a long time hidden, and wakes when shown', async () => {
    store.stop()
    store = new LiveStore({
      client: createClient({ baseUrl: await hubUrl() }),
      openStream: (url) => new TestSource(url) as unknown as EventSource,
      timing: { hiddenMs: 10 },
    })
    store.start()
    await vi.waitFor(() => expect(link()).toBe('live'))
    store.setHidden(true)
    await vi.waitFor(() => expect(link()).toBe('paused'))
    await vi.waitFor(() => expect(hub.openStreams).toBe(0))
    store.setHidden(false)
    await vi.waitFor(() => expect(link()).toBe('live'))
  })

  async function hubUrl(): Promise<string> {
    await hub.stop()
    hub = new FakeHub({ root: '/nowhere' }).fill([aCluster('west', Date.now())])
    return hub.start()
  }
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
