import { expect, it } from 'vitest'
import { type AgentFacts, parseClusterName } from '#model'
import { silentLogger } from '#runtime'
import { FactsReport } from './facts-report.ts'

const MINUTE_MS = 60_000
const anAgent = (at: number, clockOffsetMs: number): AgentFacts => ({
  ...{ connected: true, since: at, reason: '', version: '1.2.3', protocol: 1, heartbeatAt: at },
  ...{ bufferedBatches: 0, bufferedBytes: 0, oldestBufferedAt: null, lostBatches: 0, clockOffsetMs },
  ...{ tls: true, method: 'certificate', plan: '', epoch: 1 },
})

it('the facts of an agent are told anew as soon as our clock was set back, and seldom after that', async () => {
  let now = Date.parse('2026-01-01T12:00:00Z')
  const told: AgentFacts[] = []
  await using report = new FactsReport({
    ingester: { knows: () => true, agent: async (_, facts) => void told.push(facts) },
    clock: { now: () => now, sleep: () => new Promise(() => undefined) },
    logger: silentLogger,
    everyMs: MINUTE_MS,
  })
  const east = parseClusterName('east')
  const hears = async (clockOffsetMs: number) => {
    report.tell(east, anAgent(now, clockOffsetMs), false)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await hears(-60 * MINUTE_MS)
  now += 1_000
  await hears(-60 * MINUTE_MS)
  expect(told).toHaveLength(1)
  now -= 60 * MINUTE_MS
  await hears(0)
  expect(told.map(({ clockOffsetMs }) => clockOffsetMs)).toEqual([-60 * MINUTE_MS, 0])
  now += 1_000
  await hears(0)
  expect(told).toHaveLength(2)
})
