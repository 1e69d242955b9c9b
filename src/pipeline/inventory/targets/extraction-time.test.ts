import { expect, it } from 'vitest'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { compileTarget } from './compile.ts'
import { ExtractionTimes } from './extraction-time.ts'

it('is used up by slow objects alone, comes back by a share of each second, and is of one namespace', async () => {
  const clock = new ManualClock()
  const times = new ExtractionTimes(clock)
  const shop = times.of('shop')
  for (let i = 0; i < 100_000; i++) shop.spent(0.09, {})
  expect(shop.isLeft).toBe(true)
  for (let i = 0; i < 25_000; i++) shop.spent(1, {})
  expect(shop.isLeft).toBe(true)
  for (let i = 0; i < 2; i++) shop.spent(625, {})
  expect([shop.isLeft, times.of('shop').isLeft, times.of('bank').isLeft]).toEqual([false, false, true])
  shop.spent(125, {})
  await clock.advance(500)
  expect(shop.isLeft).toBe(false)
  await clock.advance(1)
  expect(shop.isLeft).toBe(true)
})

it('is slow long before it is used up, also where that is less than its share of each second, once and for good', async () => {
  const clock = new ManualClock()
  const times = new ExtractionTimes(clock)
  const told: boolean[] = []
  times.onSlow = () => told.push(shop.isLeft)
  const shop = times.of('shop')
  const takes = async (share: number, seconds: number) => {
    for (let i = 0; i < seconds; i++) {
      shop.spent(1000 * share, {})
      await clock.advance(1000)
    }
  }
  await takes(0.02, 600)
  expect([shop.isSlow, told]).toEqual([false, []])
  await takes(0.19, 12)
  expect([shop.isSlow, shop.isLeft, told]).toEqual([true, true, [true]])
  for (let i = 0; i < 310; i++) shop.spent(100, {})
  expect([shop.isLeft, told]).toEqual([false, [true]])
})

it('is bounded for one object, whatever comes in between', () => {
  const shop = new ExtractionTimes(new ManualClock()).of('shop')
  const [object, other] = [{}, {}]
  for (let target = 0; target < 9; target++) shop.spent(100, object)
  expect(shop.isLeftFor(object)).toBe(true)
  shop.spent(100, object)
  expect([shop.isLeftFor(object), shop.isLeftFor(other), shop.isLeft]).toEqual([false, true, true])
  // Others are worked on in between.
  shop.spent(0.01, other)
  expect([shop.isLeftFor(object), shop.isLeftFor(other)]).toEqual([false, true])
})

it('is less for each of several namespaces that used theirs up, and each is told once', async () => {
  const clock = new ManualClock()
  const times = new ExtractionTimes(clock)
  let told = 0
  times.onSlow = () => {
    told++
  }
  const slow = Array.from({ length: 10 }, (_, i) => times.of(`slow-${i}`))
  for (const one of slow) one.spent(7_500 + 250, {})
  expect([told, times.of('bank').isSlow]).toEqual([10, false])
  await clock.advance(19_000) // of which each has a twentieth
  expect(slow.some(({ isLeft }) => isLeft)).toBe(false)
  await clock.advance(2_000)
  expect(slow.every(({ isLeft }) => isLeft)).toBe(true)
  for (const one of slow) one.spent(7_500, {})
  expect([told, slow.every(({ isSlow }) => isSlow)]).toEqual([10, true])
})

it('is used up by what is quick for each of many targets, too', () => {
  const shop = new ExtractionTimes(new ManualClock()).of('shop')
  for (let i = 0; i < 1000; i++) {
    const object = {}
    for (let target = 0; target < 500; target++) shop.spent(0.05, object)
  }
  expect(shop.isLeft).toBe(true)
  for (let i = 0; i < 201; i++) {
    const object = {}
    for (let target = 0; target < 500; target++) shop.spent(0.05, object)
  }
  expect(shop.isLeft).toBe(false)
})

it('is taken by the policies that choose objects, too, and one object has not more of it than its share', () => {
  const time = new ExtractionTimes(new ManualClock()).of('shop')
  const list = (names: number) => `[${Array.from({ length: names }, (_, i) => i)}]`
  const matchPolicy = `${list(400)}.all(a, ${list(400)}.all(b, ${list(400)}.all(c, a + b + c >= 0))) && false`
  const gvk = { version: 'v1', kind: 'ConfigMap' }
  const rules = Array.from({ length: 400 }, () => ({ gvk, matchPolicy })) // on a quick machine, too, more than they may take together
  const profile = { spec: { targetGVK: gvk, attributes: [{ name: 'x', path: '{.data.x}' }] } }
  const spec = { profileRef: 'p', resourceRules: rules }
  const { target } = compileTarget({ key: { namespace: 'shop', name: 't' }, spec, profile }, undefined, time)
  const object = { metadata: { name: 'c', namespace: 'shop', uid: 'u' }, data: { x: '1' } }
  const takes = () => target?.kinds[0]?.take(object, undefined)
  time.spent(6_500, {})
  const began = performance.now()
  let last = takes()
  for (let i = 0; i < 1000 && time.isLeft; i++) last = takes()
  expect(time.isLeft).toBe(false)
  expect((performance.now() - began) / slowness).toBeLessThan(30_000)
  expect(last).toMatchObject({ isSkipped: true, failure: expect.stringContaining('ten minutes') })
  expect(takes()).toMatchObject({ isSkipped: true, failure: expect.stringContaining('the time that all share') })
})

it('that is used up lets objects fail, and none of another namespace', () => {
  const times = new ExtractionTimes(new ManualClock())
  const [path, n] = ['cel:object.data.x', 3]
  const attributes = Array.from({ length: n }, (_, i) => ({ name: `a${i}`, path }))
  const takes = (namespace: string) => {
    const profile = { spec: { targetGVK: { version: 'v1', kind: 'ConfigMap' }, attributes } }
    const key = { namespace, name: 't' }
    const { target } = compileTarget({ key, spec: { profileRef: 'p' }, profile }, undefined, times.of(namespace))
    const object = { metadata: { name: 'c', namespace, uid: 'u' }, data: { x: '1' } }
    return target?.kinds[0]?.take(object, undefined)
  }
  times.of('shop').spent(7_501, {})
  expect(takes('shop')).toMatchObject({
    isSkipped: true,
    failure: expect.stringContaining('shop/c: the targets of its'),
  })
  expect(takes('bank')).toMatchObject({ row: { name: 'c' } })
})
