import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { StreamShare, type ToTab } from './stream-share.ts'

class TestSource extends EventTarget {
  readyState = 1
  readonly url: string
  constructor(url: string) {
    super()
    this.url = url
  }
  close(): void {
    this.readyState = 2
  }
  say(kind: string, data: object, lastEventId = ''): void {
    this.dispatchEvent(new MessageEvent(kind, { data: JSON.stringify(data), lastEventId }))
  }
}

describe('StreamShare', () => {
  let opened: TestSource[]
  let share: StreamShare
  const open = () => opened.filter(({ readyState }) => readyState !== 2)
  const current = () => opened.at(-1) as TestSource
  const asked = () => new URL(current().url).searchParams
  const base = 'http://hub/api/v1/stream'
  beforeEach(() => {
    vi.useFakeTimers()
    opened = []
    share = new StreamShare({
      openStream: (url) => {
        const source = new TestSource(url)
        opened.push(source)
        return source as unknown as EventSource
      },
    })
  })
  afterEach(() => vi.useRealTimers())
  const add = (id: string, query: string) => {
    const told: ToTab[] = []
    share.add(id, `${base}?${query}`, (message) => told.push(message))
    vi.advanceTimersByTime(20)
    return told
  }

  it('opens one stream for all that is asked, each thing once', () => {
    add('a', 'cluster=west&rows=pods%3Flimit%3D5')
    add('b', 'cluster=west&cluster=east&rows=services&rows=pods%3Flimit%3D5')
    expect(open()).toHaveLength(1)
    expect(asked().getAll('cluster')).toEqual(['west', 'east'])
    expect(asked().getAll('rows')).toEqual(['pods?limit=5', 'services'])
  })

  it('tells each tab of its own rows by its own numbers, and of everything else alike', () => {
    const a = add('a', 'rows=pods')
    const b = add('b', 'rows=services&rows=pods')
    current().say('rows', { query: 0, from: 0, items: [{ '{"query":7': 1 }] })
    current().say('rows', { query: 1, from: 0, items: [] })
    current().say('synced', { now: 1 }, 'here')
    const seen = (told: readonly ToTab[]) =>
      told.map((one) => (one.op === 'message' ? [one.kind, JSON.parse(one.data).query, one.lastEventId] : one.op))
    expect(seen(a)).toEqual([
      ['rows', 0, ''],
      ['synced', undefined, 'here'],
    ])
    expect(seen(b)).toEqual([
      ['rows', 1, ''],
      ['rows', 0, ''],
      ['synced', undefined, 'here'],
    ])
  })

  it('goes on where a tab stood that is alone, and begins anew for all when another comes', () => {
    add('a', 'lastEventId=there')
    expect(asked().get('lastEventId')).toBe('there')
    add('b', '')
    expect(asked().get('lastEventId')).toBeNull()
  })

  it('asks for no more than somebody reads, a while after one left, and for nothing when all did', () => {
    add('a', 'rows=pods')
    add('b', 'rows=services')
    share.remove('a')
    vi.advanceTimersByTime(61_000)
    expect(asked().getAll('rows')).toEqual(['services'])
    share.remove('b')
    expect(open()).toEqual([])
  })

  it('tells a tab that comes nothing of what waited in the stream that was open before', () => {
    add('a', '')
    const told: ToTab[] = []
    share.add('b', base, (message) => told.push(message))
    current().say('synced', { now: 1 })
    current().dispatchEvent(new Event('error'))
    expect(told).toEqual([])
    vi.advanceTimersByTime(20)
    current().say('synced', { now: 2 })
    expect(told).toHaveLength(1)
  })

  it('tells every tab that the stream broke off, and nothing of one that was replaced', () => {
    const a = add('a', '')
    const first = current()
    const b = add('b', '')
    first.say('heartbeat', { now: 1 })
    expect(a).toEqual([])
    current().readyState = 2
    current().dispatchEvent(new Event('error'))
    expect([...a, ...b]).toEqual(['a', 'b'].map((id) => ({ op: 'error', id, readyState: 2 })))
  })

  it('has no room for more than one address may ask', () => {
    const clusters = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => `cluster=c${from + i}`).join('&')
    add('a', clusters(0, 30))
    expect(share.hasRoomFor(`${base}?${clusters(20, 32)}`)).toBe(true)
    expect(share.hasRoomFor(`${base}?${clusters(30, 33)}`)).toBe(false)
  })
})
