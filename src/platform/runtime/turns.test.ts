import { describe, expect, it } from 'vitest'
import { Turns } from './turns.ts'

describe('long work of many', () => {
  it('lets others be heard after each turn, however much of it there is', async () => {
    const turns = new Turns()
    let [heard, isOver] = [0, false]
    const hear = () => {
      heard++
      if (!isOver) setImmediate(hear)
    }
    hear()
    const told: number[] = []
    const lot = async () => {
      for (let turn = 0; turn < 3; turn++)
        await turns.take((until) => {
          while (performance.now() < until);
          told.push(heard)
        })
    }
    await Promise.all([lot(), lot(), lot()])
    isOver = true
    expect(new Set(told).size).toBe(9)
  })

  it('does what is quick in one turn, in the order in which it came, and goes on after what failed', async () => {
    const turns = new Turns()
    const done: string[] = []
    const failing = turns.take(() => {
      throw new Error('no')
    })
    const all = ['a', 'b', 'c'].map((name) => turns.take(() => done.push(name)))
    await expect(failing).rejects.toThrow('no')
    expect(await Promise.all(all)).toEqual([1, 2, 3])
    expect(done).toEqual(['a', 'b', 'c'])
  })
})
