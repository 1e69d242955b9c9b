import { beforeEach, describe, expect, it } from 'vitest'
import type { Logger } from '#runtime'
import { SinkHealth } from './sink-health.ts'

const PLACE = { family: 'database', namespace: 'team-a', name: 'one' } as const
const away = { reason: 'Transient', message: 'it is away' }
const denied = { reason: 'Forbidden', message: 'it says no' }

describe('what deliveries say of a sink', () => {
  let lines: [string, string, Record<string, unknown>][]
  let doubts: number
  let health: SinkHealth
  beforeEach(() => {
    lines = []
    doubts = 0
    const line = (level: string) => (fields: Record<string, unknown>, text: string) => lines.push([level, text, fields])
    health = new SinkHealth({
      logger: { info: line('info'), warn: line('warn') } as unknown as Logger, // no more of it is used
      now: () => Date.parse('2026-01-01T00:00:00Z'),
      onDoubt: () => doubts++,
    })
  })
  const said = () => lines.map(([level, text]) => `${level}: ${text}`)

  it('is told once when it first takes something, not with each delivery', () => {
    for (let n = 0; n < 3; n++) health.took(PLACE, 'team-a/apps', 42)
    expect(said()).toEqual(['info: a sink took its first export'])
    expect(lines[0]?.[2]).toEqual({ sink: 'database/team-a/one', inventory: 'team-a/apps', rows: 42 })
    expect(doubts).toBe(0)
  })

  it('is told once when it fails, with why and since when, and once when it works again', () => {
    health.took(PLACE, 'team-a/apps', 1)
    for (let n = 0; n < 3; n++) health.refused(PLACE, 'team-a/apps', away)
    health.took(PLACE, 'team-a/apps', 1)
    health.took(PLACE, 'team-a/apps', 1)
    expect(said().slice(1)).toEqual(['warn: a sink fails', 'info: a sink takes what it is given again'])
    expect(lines[1]?.[2]).toMatchObject({ reason: 'Transient', why: 'it is away', since: '2026-01-01T00:00:00.000Z' })
    expect(lines[2]?.[2]).toMatchObject({ failedSince: '2026-01-01T00:00:00.000Z' })
  })

  it('is one line for a thousand inventories that fail for one reason, and another for another reason', () => {
    for (let n = 0; n < 1000; n++) health.refused(PLACE, `team-a/${n}`, away)
    health.refused(PLACE, 'team-a/other', denied)
    expect(said()).toEqual(['warn: a sink fails', 'warn: a sink fails'])
  })

  it('works again when the last that failed is taken, or is not written there any more', () => {
    health.refused(PLACE, 'a', away)
    health.refused(PLACE, 'b', away)
    health.took(PLACE, 'a', 1)
    expect(said()).not.toContain('info: a sink takes what it is given again')
    health.left(PLACE, 'b')
    health.refused(PLACE, 'a', away)
    health.took(PLACE, 'a', 1)
    expect(said().at(-1)).toBe('info: a sink takes what it is given again')
  })

  it('puts what was found of it in doubt with each failure, and when it works again', () => {
    health.refused(PLACE, 'a', away)
    health.refused(PLACE, 'a', away)
    health.took(PLACE, 'a', 1)
    expect(doubts).toBe(3)
  })
})
