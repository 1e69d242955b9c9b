import { expect, it } from 'vitest'
import { p99, Siege } from '../siege.ts'

// The short form of `npm run soak siege`, which compares with a calm hub on a calm machine.
it('serves agents, health and page while a crowd is at every door', { timeout: 180_000 }, async () => {
  await using siege = await Siege.open({ agents: 5, hanging: 30 })
  const calm = await siege.measure(5)
  await siege.attack({ silent: 300, idle: 1000, bombsPerSecond: 100 })
  const under = await siege.measure(10)
  expect(under.failures).toEqual([])
  for (const channel of ['acks', 'healthz', 'page'] as const) {
    expect(under[channel].length).toBeGreaterThan(20)
    expect(p99(under[channel]), channel).toBeLessThan(Math.max(2_000, 5 * p99(calm[channel])))
  }
})
