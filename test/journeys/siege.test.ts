import { expect, it } from 'vitest'
import { channels, compare, MOST, Siege, type Waits } from '../siege.ts'

/** Windows beside each other, as many as it takes where a p99 is that of a hundred answers. */
const MAX_PAIRS = 8
/** A calm hub that answers later than that has no machine for itself, and what others do there weighs more than a crowd. ms */
const BUSY_MS = 150
const WHEN_BUSY = { ms: 2_000, times: 5 }
/** Two pauses of the collector of garbage: as much more says nothing about a crowd. The long run compares without it. */
const PAUSE_MS = 25

// The short form of `npm run soak siege`.
it('serves agents, health and page while a crowd is at every door, a fifth later than in calm or two pauses of the collector', {
  tags: ['long'],
}, async () => {
  await using siege = await Siege.open({ agents: 5, hanging: 30 })
  await siege.measure(3) // warm
  const [calm, under]: [Waits[], Waits[]] = [[], []]
  const compared = () => channels.map((channel) => ({ channel, ...compare(channel, calm, under) }))
  const isServed = () =>
    calm.length > 0 &&
    compared().every(({ ratio, calm: before, under: after }) => ratio <= MOST || after <= before + PAUSE_MS)
  while (!isServed() && calm.length < MAX_PAIRS) {
    const [before, after] = await siege.pair(5)
    for (const waits of [before, after]) {
      expect(waits.failures).toEqual([])
      for (const channel of channels) expect(waits[channel].length, channel).toBeGreaterThan(20)
    }
    calm.push(before)
    under.push(after)
  }
  const all = compared()
  console.log(
    all.map(({ channel, ...ms }) => `${channel} ${ms.calm.toFixed(0)} to ${ms.under.toFixed(0)} ms`).join(', '),
  )
  if (all.every(({ calm: before }) => before < BUSY_MS)) expect(isServed(), JSON.stringify(all)).toBe(true)
  for (const { channel, calm: before, under: after } of all)
    expect(after, channel).toBeLessThan(Math.max(WHEN_BUSY.ms, WHEN_BUSY.times * before))
})
