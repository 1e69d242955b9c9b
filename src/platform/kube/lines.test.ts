import type { Dispatcher } from 'undici'
import { expect, it } from 'vitest'
import { CallPace, RequestLines } from './lines.ts'
import { ManualClock } from './testing/scripted-server.ts'

const never = new AbortController().signal
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A call that hangs and one that waits behind it. @returns whether the latter got a connection within this time */
async function isHelpedWithin(pace: CallPace, ms: number): Promise<boolean> {
  const clock = new ManualClock()
  const [kept, more] = [{}, {}] as Dispatcher[]
  if (!kept || !more) return false
  const lines = new RequestLines({ kept, keptConnections: 1, openMore: () => more, moreConnections: 1, clock, pace })
  void lines.run(() => new Promise(() => undefined), never)
  let isHelped = false
  void lines.run(async () => {
    isHelped = true
  }, never)
  await settled()
  clock.advance(ms)
  for (let turn = 0; turn < 5; turn++) await settled()
  return isHelped
}

it('waits for a slow call before it opens a further connection, and longer where most calls are slow', async () => {
  const pace = new CallPace()
  expect([await isHelpedWithin(pace, 400), await isHelpedWithin(pace, 600)]).toEqual([false, true])
  // One that hangs among many says nothing of the others.
  for (let call = 0; call < 300; call++) pace.ended(call % 3 === 0 ? 10_000 : 20)
  expect(await isHelpedWithin(pace, 600)).toBe(true)
  for (let call = 0; call < 300; call++) pace.ended(800)
  expect([await isHelpedWithin(pace, 2_500), await isHelpedWithin(pace, 4_000)]).toEqual([false, true])
  for (let call = 0; call < 300; call++) pace.ended(60_000)
  expect(await isHelpedWithin(pace, 5_100)).toBe(true)
  for (let call = 0; call < 300; call++) pace.ended(5)
  expect(await isHelpedWithin(pace, 600)).toBe(true)
})
