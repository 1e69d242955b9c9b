import { describe, expect, it } from 'vitest'
import { originalIntervalMs } from './pace.ts'

const inSeconds = (times: readonly number[]) => originalIntervalMs(times.map((at) => at * 1000)) / 1000

describe('the interval of a collector of the original', () => {
  it.each([
    ['its default, of one that was never seen', [], 60],
    ['its default, while it was seen once or twice: what lies between may be a hole', [0, 300], 60],
    ['what three rounds kept', [0, 300, 600], 300],
    ['the shortest, around a hole', [0, 300, 1500, 1800], 300],
    ['the new one, where it was set up anew', [0, 60, 120, 420, 720, 1020], 300],
  ])('is %s', (_, times, interval) => expect(inSeconds(times)).toBe(interval))
})
