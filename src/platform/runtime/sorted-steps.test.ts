import { expect, it } from 'vitest'
import { sortedSteps } from './sorted-steps.ts'

it.each([0, 1, 999, 1000, 1001, 2500, 10_000])(
  'sorts %d things in steps as they are sorted at once, equal ones in their order',
  (size) => {
    const all = Array.from({ length: size }, (_, at) => ({ at, key: (at * 7919) % 500 }))
    const compare = (left: { key: number }, right: { key: number }) => left.key - right.key
    const steps = sortedSteps(all, compare)
    let count = 0
    for (;;) {
      const { done, value } = steps.next()
      if (done) {
        expect(value).toEqual(all.toSorted(compare))
        break
      }
      count++
    }
    expect(count).toBeGreaterThanOrEqual(size / 1000)
  },
)
