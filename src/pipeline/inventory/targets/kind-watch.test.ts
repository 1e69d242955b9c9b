import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GroupVersionKind } from '#kinds'
import { KubeError, type KubeObject } from '#kube'
import { silentLogger } from '#runtime'
import { ManualClock, settle } from '../../../platform/controller/testing/manual-clock.ts'
import { RowStore } from '../store/index.ts'
import { compileTarget } from './compile.ts'
import { type ExtractionTime, ExtractionTimes } from './extraction-time.ts'
import { KindRows } from './kind-rows.ts'
import { type Interest, KindWatch } from './kind-watch.ts'
import { RowSpace } from './row-space.ts'
import { isComplete, shownRows } from './testing/cluster.ts'
import { type Opened, ScriptedCluster } from './testing/scripted-cluster.ts'

const gvk: GroupVersionKind = { version: 'v1', kind: 'Pod' }
const key = { namespace: 'shop', name: 'settings' }
const pod = (name: string, namespace = 'shop'): KubeObject => ({
  metadata: { name, namespace, uid: `u-${name}` },
  mode: 'on',
})
const forbidden = new KubeError('forbidden', 'pods may not be listed')

let clock: ManualClock
let cluster: ScriptedCluster
let rows: RowStore
let of: KindRows
let watch: KindWatch
let revision = 0

beforeEach(() => {
  clock = new ManualClock()
  cluster = new ScriptedCluster()
  rows = new RowStore(() => undefined)
  of = new KindRows(key, rows.target(key))
  watch = new KindWatch({
    ...{ gvk, kube: cluster.kube, clock, logger: silentLogger },
    onChange: () => rows.target(key).setComplete(watch.stateFor(of).phase === 'live'),
  })
})
afterEach(() => watch.stop())

function wants(...namespaces: readonly string[]): Interest {
  return wantsWithin(undefined, ...namespaces)
}
/** @param time that its target has */
function wantsWithin(time: ExtractionTime | undefined, ...namespaces: readonly string[]): Interest {
  const profile = { spec: { targetGVK: gvk, attributes: [{ name: 'mode', path: '{.mode}' }] } }
  const { target } = compileTarget({ key, spec: { profileRef: 'x' }, profile }, undefined, time)
  const kind = target!.kinds[0]!
  const turn = ++revision
  return {
    ...{ rows: of, kind, namespaces: new Set(namespaces), facts: new Map() },
    fingerprint: (names) => JSON.stringify([turn, names]),
  }
}
const many = Array.from({ length: 12 }, (_, i) => `n${i}`)
const live = async (...namespaces: readonly string[]) => {
  const interest = wants(...namespaces)
  watch.want([interest])
  await settle()
  return interest
}
const phase = () => watch.stateFor(of).phase

describe('a kind that is watched', () => {
  it('is read namespace by namespace where those are few, and over the cluster where they are many', async () => {
    await live('shop', 'bank')
    expect(cluster.opened.map(({ namespace }) => namespace)).toEqual(['bank', 'shop'])
    await live(...many)
    expect(cluster.last.namespace).toBeUndefined()
    // The narrower ones go on until the wider one has its list.
    expect(cluster.opened.slice(0, 2).map(({ isClosed }) => isClosed)).toEqual([false, false])
    await cluster.last.give({ items: [] }, 'open')
    await clock.advance(1)
    expect(cluster.opened.slice(0, 2).map(({ isClosed }) => isClosed)).toEqual([true, true])
  })

  it('is not complete with a list that is older than what was told of it: the watch behind the list catches up first', async () => {
    const at = (name: string, version: number, mode = 'on'): KubeObject => {
      const { metadata } = pod(name)
      return { metadata: { ...metadata, resourceVersion: String(version) }, mode } as KubeObject
    }
    const seen: string[] = []
    const look = () => {
      const now = (shownRows(rows) ?? []).join(' ')
      if (isComplete(rows) && seen.at(-1) !== now) seen.push(now)
    }
    const mine = wants('shop')
    const others = new KindRows({ ...key, name: 'others' }, rows.target({ ...key, name: 'others' }))
    /** Another target of the namespace wants otherwise: all is listed anew, and the former watch goes on meanwhile. */
    const listedAnew = async () => {
      watch.want([mine, { ...wants('shop'), rows: others }])
      const before = cluster.opened.length
      await settle()
      for (let turns = 0; turns < 100 && cluster.opened.length === before; turns++) await clock.advance(1000)
      return cluster.last
    }
    const former = await listedAnew()
    await former.give({ items: [at('a', 10), at('b', 11)], version: '20' }, 'open')
    await expect.poll(() => isComplete(rows)).toBe(true)
    look()
    const later = await listedAnew()
    expect(later).not.toBe(former)
    await former.give({ changed: at('a', 30, 'off') }, { deleted: at('b', 31) })
    await later.give({ items: [at('a', 10), at('b', 11)], version: '25' }, 'open')
    look()
    await expect.poll(() => shownRows(rows)).toEqual(['shop/a=off'])
    look()
    await later.give({ changed: at('a', 30, 'off') })
    look()
    await later.give({ deleted: at('b', 31) })
    look()
    await expect.poll(() => [phase(), shownRows(rows), isComplete(rows)]).toEqual(['live', ['shop/a=off'], true])
    look()
    expect(former.isClosed).toBe(true)
    expect(seen).toEqual(['shop/a=on shop/b=on', 'shop/a=off'])
    await later.give({ changed: at('a', 40, 'on') })
    await expect.poll(() => shownRows(rows)).toEqual(['shop/a=on'])

    // A cluster that was restored has gone back for good: what is listed then is what there is.
    const restored = await listedAnew()
    await restored.give({ items: [at('a', 5, 'old')], version: '6' }, 'open')
    expect(shownRows(rows)).toEqual(['shop/a=on'])
    await clock.advance(31_000)
    await clock.advance(2_000)
    expect(restored.isClosed).toBe(true)
    await cluster.last.give({ items: [at('a', 5, 'old')], version: '7' }, 'open')
    await expect.poll(() => [phase(), shownRows(rows)]).toEqual(['live', ['shop/a=old']])
  })

  it('is complete once its lists were read to their end, and not before', async () => {
    await live('shop', 'bank')
    const [bank, shop] = cluster.opened as [Opened, Opened]
    expect([phase(), isComplete(rows)]).toEqual(['reading', false])
    await bank.give({ items: [] }, 'open')
    expect([phase(), isComplete(rows)]).toEqual(['reading', false])
    await shop.give({ items: [pod('a')] }, 'open')
    expect([phase(), isComplete(rows), shownRows(rows)]).toEqual(['live', true, ['shop/a=on']])
  })

  describe('and whose list takes long', () => {
    const tenant = (namespace: string) => {
      const name = { namespace, name: 'settings' }
      const ofTenant = new KindRows(name, rows.target(name))
      return {
        phase: () => watch.stateFor(ofTenant).phase,
        wants: (...namespaces: readonly string[]): Interest => ({ ...wants(...namespaces), rows: ofTenant }),
      }
    }
    const want = async (...interests: readonly Interest[]) => {
      watch.want(interests)
      await settle()
    }
    /** The list that is being read takes so long. */
    const listed = async (ms: number) => {
      await clock.advance(ms)
      await cluster.last.give({ items: [] }, 'open')
    }
    /** Every five seconds targets may be changed, and a list takes ten. @returns how many lists began */
    const spend = async (seconds: number, change: (second: number) => readonly Interest[]) => {
      const before = cluster.opened.length
      cluster.onOpened = (one) => void clock.sleep(10_000).then(() => one.give({ items: [] }, 'open'))
      for (let second = 0; second < seconds; second += 5) {
        await want(...change(second))
        await clock.advance(5_000)
      }
      return cluster.opened.length - before
    }

    it('is listed for a first change once it rested for as long as its list took, whatever was listed at the start', async () => {
      const [greedy, quiet] = [tenant('shop'), tenant('bank')]
      const ofGreedy = greedy.wants(...many)
      await want(ofGreedy, quiet.wants(...many))
      await listed(10_000)
      await want(ofGreedy, quiet.wants(...many))
      await clock.advance(9_000)
      expect(cluster.opened).toHaveLength(1)
      await clock.advance(1_000)
      expect(cluster.opened).toHaveLength(2)
      await listed(10_000)
      expect(quiet.phase()).toBe('live')
      await clock.advance(10_000)
      await want(ofGreedy, quiet.wants(...many))
      expect(cluster.opened).toHaveLength(3)
    })

    it('is listed three times for whoever keeps changing it and seldom from then on, and soon for another namespace', async () => {
      const [greedy, quiet] = [tenant('shop'), tenant('bank')]
      const ofQuiet = quiet.wants(...many)
      await want(greedy.wants(...many), ofQuiet)
      await listed(30_000)
      for (const lists of [2, 3, 4]) {
        await want(greedy.wants(...many), ofQuiet)
        await clock.advance(30_000)
        expect(cluster.opened).toHaveLength(lists)
        await listed(30_000)
      }
      const ofGreedy = greedy.wants(...many)
      await want(ofGreedy, ofQuiet)
      await clock.advance(60_000)
      expect(cluster.opened).toHaveLength(4)
      const changed = quiet.wants(...many)
      await want(ofGreedy, changed)
      expect(cluster.opened).toHaveLength(5)
      await listed(30_000)
      expect([greedy.phase(), quiet.phase()]).toEqual(['live', 'live'])
      // That list served both, and both pay for it.
      await want(greedy.wants(...many), changed)
      await clock.advance(268_000)
      expect(cluster.opened).toHaveLength(5)
      await clock.advance(4_000)
      expect(cluster.opened).toHaveLength(6)
    })

    it('is read within three times what a list takes for whoever changes seldom, however much others change', async () => {
      const quiet = tenant('bank')
      const greedy = Array.from({ length: 12 }, (_, i) => tenant(`t${i}`))
      const ofGreedy = greedy.map((one) => one.wants(...many))
      let [ofQuiet, waited, worst] = [quiet.wants(...many), 0, 0]
      const changeSome = (isGreedy: (at: number) => boolean) => (second: number) => {
        waited = quiet.phase() === 'live' ? 0 : waited + 5
        worst = Math.max(worst, waited)
        for (const [at, one] of greedy.entries()) if (isGreedy(at)) ofGreedy[at] = one.wants(...many)
        // At other times with regard to lists, again and again.
        if (second % 155 === 20) ofQuiet = quiet.wants(...many)
        return [...ofGreedy, ofQuiet]
      }
      const byOne = await spend(
        900,
        changeSome((at) => at === 0),
      )
      expect(worst).toBeLessThanOrEqual(35)
      // The first list, three in advance, a tenth of the time, and six changes of the other.
      expect(byOne).toBeLessThanOrEqual(1 + 3 + 9 + 6)
      expect(byOne).toBeGreaterThan(12)
      let turn = 0
      const byAll = await spend(300, (second) => {
        turn++
        return changeSome((at) => at === turn % greedy.length)(second)
      })
      expect(worst).toBeLessThanOrEqual(35)
      expect(byAll).toBeLessThanOrEqual(16)
    })

    it('is not listed more often for whoever goes away and comes back, before a list is over or after', async () => {
      const one = tenant('shop')
      const before = await spend(900, (second) => (second % 10 === 0 ? [one.wants('shop')] : []))
      // Lists that are broken off after five seconds.
      expect(before).toBeLessThanOrEqual(1 + 3 + 18)
      expect(before).toBeGreaterThan(12)
      await want(one.wants('shop'))
      await clock.advance(5_000)
      expect([watch.watches, one.phase(), watch.freshness()[0]?.staleMs]).toEqual([0, 'reading', 5_000])
      await clock.advance(300_000)
      const after = await spend(900, (second) => (second % 20 === 15 ? [] : [one.wants('shop')]))
      expect(after).toBeLessThanOrEqual(1 + 3 + 18)
      expect(after).toBeGreaterThan(6)
    })

    it('rests for what its list took, and not for what was in the way before', async () => {
      const [greedy, quiet] = [tenant('shop'), tenant('bank')]
      const ofGreedy = greedy.wants(...many)
      await want(ofGreedy, quiet.wants(...many))
      await clock.advance(600_000)
      await cluster.last.give({ error: new KubeError('unreachable', 'away') })
      await listed(2_000)
      await want(ofGreedy, quiet.wants(...many))
      await clock.advance(2_000)
      expect(cluster.opened).toHaveLength(2)
    })
  })

  it('loses no row where its watch is lost or a list breaks off, and is not complete meanwhile', async () => {
    await live('shop')
    await cluster.last.give({ items: [pod('a'), pod('b')] }, 'open')
    await cluster.last.give(
      { error: new KubeError('expired', 'too old') },
      { error: new KubeError('unreachable', 'away') },
    )
    expect([isComplete(rows), shownRows(rows)]).toEqual([false, ['shop/a=on', 'shop/b=on']])
    await clock.advance(60_000)
    expect(watch.stateFor(of)).toMatchObject({ phase: 'failing', message: expect.stringContaining('away') })
    expect(shownRows(rows)).toEqual(['shop/a=on', 'shop/b=on'])
    await cluster.last.give({ items: [pod('b')] }, 'open')
    expect([isComplete(rows), shownRows(rows)]).toEqual([true, ['shop/b=on']])
  })

  it('is complete while a quiet watch is begun anew, and not where that takes long', async () => {
    await live('shop')
    await cluster.last.give({ items: [pod('a')] }, 'open')
    const quiet = { error: new KubeError('timeout', 'no sign of life for 80 s') }
    await cluster.last.give(quiet)
    await clock.advance(14_000)
    expect(isComplete(rows)).toBe(true)
    await cluster.last.give('open')
    await clock.advance(60_000)
    expect([phase(), isComplete(rows)]).toEqual(['live', true])
    await cluster.last.give(quiet)
    await clock.advance(8_000)
    await cluster.last.give(quiet)
    await clock.advance(8_000)
    expect(isComplete(rows)).toBe(false)
    await cluster.last.give('open')
    expect(isComplete(rows)).toBe(true)
    await cluster.last.give(quiet, { error: new KubeError('unreachable', 'away') })
    expect(isComplete(rows)).toBe(false)
  })

  it('looks again at what there was no time for', async () => {
    const times = new ExtractionTimes(clock)
    times.of('shop').spent(7_501, {})
    watch.want([wantsWithin(times.of('shop'), 'shop')])
    await settle()
    await cluster.last.give({ items: [pod('a')] }, 'open')
    expect([shownRows(rows), of.failures, of.lastFailure]).toEqual([[], 1, expect.stringContaining('ten minutes')])
    const { length } = cluster.opened
    await clock.advance(302_000)
    expect(cluster.opened.length).toBe(length + 1)
    await cluster.last.give({ items: [pod('a')] }, 'open')
    expect([shownRows(rows), of.failures]).toEqual([['shop/a=on'], 0])
    await clock.advance(900_000)
    expect(cluster.opened.length).toBe(length + 1)
  })

  it('keeps as many rows as there is room for, says what has none, and takes it when there is room', async () => {
    const space = new RowSpace(1000)
    of = new KindRows(key, rows.target(key), space)
    await live('shop')
    await cluster.last.give({ items: [pod('a'), pod('b'), pod('c')] }, 'open')
    const full = [['shop/a=on', 'shop/b=on'], 1, expect.stringContaining('1000 bytes')]
    expect([shownRows(rows), of.failures, of.lastFailure]).toEqual(full)
    // What is read anew needs no second place.
    await cluster.last.give({ items: [pod('a'), pod('b'), pod('c')] })
    expect([shownRows(rows), of.failures, of.lastFailure]).toEqual(full)
    await cluster.last.give({ deleted: pod('a') })
    expect(shownRows(rows)).toEqual(['shop/b=on'])
    const { length } = cluster.opened
    await clock.advance(302_000)
    expect(cluster.opened.length).toBe(length + 1)
    await cluster.last.give({ items: [pod('b'), pod('c')] }, 'open')
    expect([shownRows(rows), of.failures]).toEqual([['shop/b=on', 'shop/c=on'], 0])
    of.limitTo(() => false)
    expect(space.keptBytes).toBe(0)
  })

  it('counts objects that there is not even room for to be known as without a row, for the target whose they are alone', async () => {
    const space = new RowSpace(1000)
    const evil = new KindRows({ ...key, name: 'evil' }, rows.target({ ...key, name: 'evil' }), space)
    const interest = wants('shop')
    const kind = { ...interest.kind, take: () => ({ failure: 'x'.repeat(200) }) }
    watch.want([interest, { ...wants('shop'), rows: evil, kind }])
    await settle()
    await cluster.last.give({ items: Array.from({ length: 9 }, (_, at) => pod(`p${at}`)) }, 'open')
    expect([of.failures, evil.failures, evil.lastFailure]).toEqual([0, 9, 'x'.repeat(200)])
    expect([shownRows(rows)?.length, space.keptBytes]).toEqual([9, 400])
    // Of a later one there is room to know it.
    await cluster.last.give({ deleted: pod('p0') })
    await clock.advance(302_000)
    await cluster.last.give({ items: [pod('p1')] }, 'open')
    expect([evil.failures, space.keptBytes]).toEqual([1, 200])
  })

  it('loses no row where a permission is gone, which it notices though its watch goes on', async () => {
    await live('shop')
    await cluster.last.give({ items: [pod('a')] }, 'open')
    cluster.mayList = false
    await clock.advance(120_000)
    expect(watch.stateFor(of)).toMatchObject({ phase: 'forbidden', namespaces: ['shop'] })
    expect([isComplete(rows), shownRows(rows)]).toEqual([false, ['shop/a=on']])
    cluster.mayList = true
    await clock.advance(120_000)
    expect([phase(), isComplete(rows)]).toEqual(['live', true])
  })

  it('is read namespace by namespace where the cluster may not be listed as a whole', async () => {
    await live(...many)
    await cluster.last.give({ error: forbidden })
    cluster.mayList = false
    await clock.advance(1)
    const single = cluster.opened.filter(({ namespace }) => namespace !== undefined)
    expect(single).toHaveLength(12)
    for (const one of single) await one.give({ items: [pod(`p-${one.namespace}`, one.namespace)] }, 'open')
    expect([phase(), shownRows(rows)?.length]).toEqual(['live', 12])
  })

  it('tells how long each place has not been followed: since it is wanted, or since its watch was lost', async () => {
    const staleMs = () => watch.freshness().map(({ namespace, staleMs: ms }) => [namespace, ms])
    cluster.served = undefined
    await live('shop')
    await clock.advance(29_000)
    expect(staleMs()).toEqual([['', 29_000]])
    cluster.served = { plural: 'pods', namespaced: true }
    await clock.advance(2_000)
    const before = staleMs()[0]?.[1]
    await clock.advance(5_000)
    expect(staleMs()).toEqual([['shop', Number(before) + 5_000]])
    await cluster.last.give({ items: [] }, 'open')
    await clock.advance(60_000)
    expect(staleMs()).toEqual([['shop', 0]])
    await cluster.last.give({ error: new KubeError('unreachable', 'away') })
    await clock.advance(61_000)
    expect(staleMs()).toEqual([['shop', 61_000]])
    await cluster.last.give({ items: [] }, 'open')
    expect(staleMs()).toEqual([['shop', 0]])
  })

  it('may be installed later', async () => {
    cluster.served = undefined
    await live('shop')
    expect(watch.stateFor(of)).toMatchObject({
      phase: 'absent',
      message: expect.stringContaining('does not have v1 Pod'),
    })
    cluster.served = { plural: 'pods', namespaced: true }
    await clock.advance(30_000)
    await cluster.last.give({ items: [pod('a')] }, 'open')
    expect([phase(), shownRows(rows)]).toEqual(['live', ['shop/a=on']])
  })

  it('is told of where its first list takes long, and is waited for', async () => {
    await live('shop')
    await clock.advance(31_000)
    expect(watch.stateFor(of)).toMatchObject({ phase: 'failing', message: expect.stringContaining('more than 30 s') })
    await cluster.last.give({ items: [pod('a')] }, 'open')
    expect(phase()).toBe('live')
  })

  it('has its objects worked on in turns, one for many targets too, and nobody waits for long', async () => {
    const interest = wants('shop')
    let [heard, isOver] = [0, false]
    const told = new Set<number>()
    const slow = (name: string): Interest => {
      const ofOne = new KindRows({ ...key, name }, rows.target({ ...key, name }))
      const take = (object: object, facts: never) => {
        for (const until = performance.now() + 10; performance.now() < until; );
        told.add(heard)
        return interest.kind.take(object, facts)
      }
      return { ...interest, rows: ofOne, kind: { ...interest.kind, take } as Interest['kind'] }
    }
    const names = Array.from({ length: 20 }, (_, i) => `t${i}`)
    watch.want(names.map(slow))
    await settle()
    const hear = () => {
      heard++
      if (!isOver) setImmediate(hear)
    }
    setImmediate(hear)
    await cluster.last.give({ items: [pod('a'), pod('b'), pod('c')] }, 'open')
    // 600 ms of work.
    await expect.poll(() => names.map((name) => shownRows(rows, name)?.length)).toEqual(names.map(() => 3))
    isOver = true
    expect(told.size).toBeGreaterThan(15)
  })

  it('is listed anew for another form of a target, of which nothing is lost until it is read', async () => {
    await live('shop')
    await cluster.last.give({ items: [pod('a'), pod('b')] }, 'open')
    await live('shop')
    expect(cluster.opened).toHaveLength(2)
    expect([isComplete(rows), shownRows(rows)]).toEqual([false, ['shop/a=on', 'shop/b=on']])
    await cluster.last.give({ items: [pod('b')] }, 'open')
    expect([isComplete(rows), shownRows(rows)]).toEqual([true, ['shop/b=on']])
    expect(cluster.opened[0]?.isClosed).toBe(true)
  })

  it('is listed anew for a target that was away in between, though it wants the same as before', async () => {
    const interest = await live('shop')
    await cluster.last.give({ items: [pod('a')] }, 'open')
    const other = { ...interest, rows: new KindRows({ ...key, name: 'other' }, rows.target({ ...key, name: 'other' })) }
    watch.want([other])
    await settle()
    of = new KindRows(key, rows.target(key))
    watch.want([{ ...interest, rows: of }])
    await settle()
    expect(phase()).toBe('reading')
    await cluster.last.give({ items: [pod('c')] }, 'open')
    await clock.advance(1)
    await cluster.last.give({ items: [pod('c')] }, 'open')
    expect(phase()).toBe('live')
    expect(shownRows(rows)).toContain('shop/c=on')
  })

  it('is not listed again and again while everything changes: each list is let finish, and after three it rests', async () => {
    await live('shop')
    await clock.advance(5_000)
    await cluster.last.give({ items: [] }, 'open')
    for (const lists of [2, 3, 4]) {
      for (let i = 0; i < 20; i++) await live('shop')
      expect(cluster.opened).toHaveLength(lists - 1)
      await clock.advance(5_000)
      for (let i = 0; i < 20; i++) await live('shop')
      expect(cluster.opened).toHaveLength(lists)
      expect(phase()).toBe('reading')
      await clock.advance(5_000)
      await cluster.last.give({ items: [] }, 'open')
    }
    // The first of the three is 25 s ago: half a list is back.
    await clock.advance(24_000)
    expect(cluster.opened).toHaveLength(4)
    await clock.advance(2_000)
    expect(cluster.opened).toHaveLength(5)
  })

  it('ends its watches with those who want it', async () => {
    await live('shop')
    await cluster.last.give({ items: [pod('a')] }, 'open')
    watch.want([])
    await settle()
    expect(cluster.last.isClosed).toBe(true)
  })
})
