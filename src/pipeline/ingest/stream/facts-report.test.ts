import { describe, expect, it } from 'vitest'
import { AGENT_ENDED, type AgentFacts, parseClusterName, seconds } from '#model'
import { silentLogger } from '#runtime'
import { ManualClock, settle } from '../../../platform/controller/testing/manual-clock.ts'
import { FactsReport } from './facts-report.ts'
import { Pauses } from './pauses.ts'

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
    resumedAt: () => Number.NEGATIVE_INFINITY,
  })
  const east = parseClusterName('east')
  const hears = async (clockOffsetMs: number) => {
    report.tell(east, anAgent(now, clockOffsetMs), { now: false, process: 'one' })
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

describe('that an agent went', () => {
  const clock = new ManualClock()
  const east = parseClusterName('east')
  const start = (resumedAt = () => Number.NEGATIVE_INFINITY) => {
    const told: string[] = []
    const agent = async (_: unknown, facts: AgentFacts) => void told.push(facts.connected ? 'there' : facts.reason)
    const ingester = { knows: () => true, agent }
    const report = new FactsReport({ ingester, clock, logger: silentLogger, everyMs: MINUTE_MS, resumedAt })
    const tell = async (facts: Partial<AgentFacts>, process = 'one') => {
      report.tell(east, { ...anAgent(clock.now(), 0), ...facts }, { now: true, process })
      await settle()
    }
    return {
      report,
      told,
      comes: (process?: string) => tell({}, process),
      goes: (reason: string) => tell({ connected: false, reason }),
    }
  }

  it('is not told where it ended its stream itself and is back at once, as for a new certificate', async () => {
    const { report, told, comes, goes } = start()
    await using _ = report
    await comes()
    for (let renewals = 0; renewals < 2; renewals++) {
      await goes(AGENT_ENDED)
      await clock.advance(seconds(4))
      await comes()
    }
    expect(told).toEqual(['there', 'there', 'there'])
    await goes(AGENT_ENDED)
    expect(told).toHaveLength(3)
    await clock.advance(seconds(5))
    expect(told.at(-1), 'it stays away').toBe(AGENT_ENDED)
  })

  it('is told where another process of it comes, at once where it went otherwise, and before the hub stops', async () => {
    const { report, told, comes, goes } = start()
    await comes()
    await goes(AGENT_ENDED)
    await comes('two')
    await goes('it was revoked')
    await comes('two')
    await goes(AGENT_ENDED)
    await report[Symbol.asyncDispose]()
    expect(told).toEqual(['there', AGENT_ENDED, 'there', 'it was revoked', 'there', AGENT_ENDED])
  })

  it('is not told where it is back soon after this process stood still', async () => {
    const pauses = new Pauses({ clock, everyMs: seconds(1) })
    const { report, told, comes, goes } = start(() => pauses.resumedAt)
    await using _ = report
    const pass = async (passing: number) => {
      for (let second = 0; second < passing; second++) {
        await clock.advance(seconds(1))
        pauses.look()
      }
    }
    await comes()
    await clock.advance(seconds(30)) // without a look
    await goes('the connection ended')
    await pass(8)
    await comes()
    expect(told).toEqual(['there', 'there'])
    await goes('the connection ended')
    await pass(7)
    expect(told.at(-1), 'too late to be of it').toBe('the connection ended')
    await comes()
    await goes('the connection ended')
    expect(told).toEqual(['there', 'there', 'the connection ended', 'there', 'the connection ended'])
  })
})
