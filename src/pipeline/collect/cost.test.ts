import { describe, expect, it } from 'vitest'
import { WorkCost } from './cost.ts'

function busy(cpuMs: number): string {
  const begun = process.cpuUsage()
  for (;;) {
    const { user, system } = process.cpuUsage(begun)
    if ((user + system) / 1000 >= cpuMs) return 'done'
  }
}

/** Time passes, and nobody works. */
const idle = (ms: number): number =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms) as unknown as number

describe('the cost of pieces of work', () => {
  it('is the time they had the processor, however long others kept them from that', () => {
    const cost = new WorkCost()
    expect(cost.of(() => busy(40))).toEqual({ result: 'done', costMs: 10 })
    expect(cost.of(() => busy(40)).costMs).toBeGreaterThanOrEqual(20)
    expect(cost.of(() => idle(300)).costMs).toBeLessThan(250)
  })

  it('is that of cheap work without asking how long it had the processor, and never more than 10 ms', () => {
    const cost = new WorkCost()
    expect(cost.of(() => idle(300)).costMs).toBe(10)
    cost.of(() => undefined)
    // It may be kept from the processor in the midst of it.
    expect(Math.min(...Array.from({ length: 5 }, () => cost.of(() => undefined).costMs))).toBeLessThan(10)
  })

  it('is what was thrown where the work throws', () => {
    expect(() =>
      new WorkCost().of(() => {
        throw new Error('no')
      }),
    ).toThrow('no')
  })
})
