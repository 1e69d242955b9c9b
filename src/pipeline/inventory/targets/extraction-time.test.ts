import { expect, it } from 'vitest'
import { ManualClock } from '../../../platform/controller/testing/manual-clock.ts'
import { compileTarget } from './compile.ts'
import { ExtractionTimes } from './extraction-time.ts'

it('is used up by slow objects alone, comes back by a share of each second, and is of one namespace', async () => {
  const clock = new ManualClock()
  const times = new ExtractionTimes(clock)
  const shop = times.of('shop')
  for (let i = 0; i < 1_000_000; i++) shop.spent(1)
  expect(shop.isLeft).toBe(true)
  for (let i = 0; i < 250; i++) shop.spent(100)
  expect(shop.isLeft).toBe(true)
  for (let i = 0; i < 2; i++) shop.spent(625)
  expect([shop.isLeft, times.of('shop').isLeft, times.of('bank').isLeft]).toEqual([false, false, true])
  shop.spent(125)
  await clock.advance(500)
  expect(shop.isLeft).toBe(false)
  await clock.advance(1)
  expect(shop.isLeft).toBe(true)
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
  times.of('shop').spent(7_501)
  expect(takes('shop')).toMatchObject({
    isSkipped: true,
    failure: expect.stringContaining('shop/c: the targets of its'),
  })
  expect(takes('bank')).toMatchObject({ row: { name: 'c' } })
})
