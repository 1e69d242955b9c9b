import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isNear, nearest } from './near.ts'

describe('near words', () => {
  it.each([
    ['prdo-east', 'prod-east', true],
    ['prodeast', 'prod-east', true],
    ['notredy', 'notReady', true],
    ['helath', 'health', true],
    ['helth', 'health', true],
    ['prodcution', 'production', true],
    ['env', 'dev', false],
    ['prodc', 'production', false],
    ['gpu-lab', 'prod-east', false],
    ['cpu', 'gpu', false],
    ['evn', 'env', true],
    ['envv', 'env', true],
    ['zoe', 'zone', true],
    ['vne', 'env', false],
    ['evn', 'event', false],
    ['os', 'so', false],
    ['.*', '-', false],
  ])('%s and %s: %s', (a, b, near) => {
    expect(isNear(a, b)).toBe(near)
    expect(isNear(b, a)).toBe(near)
  })
  it('every word is near itself, and one slip in a long one is forgiven wherever it is', () =>
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{6,20}$/), fc.nat(), (word, at) => {
        const place = at % word.length
        expect(isNear(word, word)).toBe(true)
        expect(isNear(word.slice(0, place) + word.slice(place + 1), word)).toBe(true)
      }),
    ))
  it('names the nearest, the same on every screen', () => {
    expect(nearest('degarded', ['healthy', 'degraded', 'upgraded'])).toBe('degraded')
    expect(nearest('zebra', ['healthy', 'degraded'])).toBeUndefined()
  })
})
