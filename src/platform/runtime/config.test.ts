import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConfigError, configReader, parseDurationMs } from './config.ts'

const meaning = 'for the test'

describe('configReader', () => {
  it('reports every fault together and names each setting', () => {
    const read = configReader({ API_PORT: 'eighty', CACHE_TTL: '5', FLAG: 'maybe', MODE: 'x' })
    read.integer('API_PORT', { default: 8080, min: 1, max: 65535, meaning })
    read.duration('CACHE_TTL', { default: '600s', min: '60s', meaning })
    read.flag('FLAG', { default: false, meaning })
    read.text('MODE', { default: 'a', oneOf: ['a', 'b'], meaning })
    expect(() => read.done()).toThrow(ConfigError)
    try {
      read.done()
    } catch (error) {
      expect((error as ConfigError).faults).toHaveLength(4)
      expect((error as ConfigError).message).toMatch(/API_PORT.*\n.*CACHE_TTL.*\n.*FLAG.*\n.*MODE/)
    }
  })

  it('treats empty text as not set', () => {
    const read = configReader({ A: '', B: '  ' })
    expect(read.integer('A', { default: 7, meaning })).toBe(7)
    expect(read.text('B', { default: 'x', meaning })).toBe('x')
    read.done()
  })

  it.each([
    ['TRUE', true],
    ['yes', true],
    ['1', true],
    ['False', false],
    ['off', false],
  ])('reads %s as %s', (text, value) => {
    const read = configReader({ F: text })
    expect(read.flag('F', { default: !value, meaning })).toBe(value)
    read.done()
  })

  it('never accepts a number outside its bounds', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: -50, max: 0 }), fc.integer({ min: 1, max: 50 }), (n, min, max) => {
        const read = configReader({ N: String(n) })
        const value = read.integer('N', { default: min, min, max, meaning })
        expect(value).toBeGreaterThanOrEqual(min)
        expect(value).toBeLessThanOrEqual(max)
      }),
    )
  })

  it('raises a documented variable to its minimum and says so', () => {
    const read = configReader({ RECONCILIATION_INTERVAL: '5' })
    expect(read.duration('RECONCILIATION_INTERVAL', { default: '30s', min: '30s', raise: true, meaning })).toBe(30_000)
    read.done()
    expect(read.warnings()[0]).toMatch(/RECONCILIATION_INTERVAL is 5; raised/)
  })

  it('says when the file of a secret is not there', () => {
    const read = configReader({ PASSWORD_FILE: '/nowhere/at/all' })
    read.secret('PASSWORD', { meaning })
    expect(() => read.done()).toThrow(/PASSWORD_FILE.*does not exist/)
  })
})

describe('parseDurationMs', () => {
  it.each([
    ['30', 30_000],
    ['30s', 30_000],
    ['500ms', 500],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
  ])('reads %s', (text, ms) => expect(parseDurationMs(text)).toBe(ms))
  it.each(['', 's', '-1s', '1 h', '5x', 'NaN'])('refuses %j', (text) => expect(parseDurationMs(text)).toBeUndefined())
})
