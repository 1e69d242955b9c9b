import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Crosshair, restMs } from './crosshair.ts'

describe('what holds the picture still', () => {
  beforeEach(() => {
    vi.useFakeTimers()
    vi.stubGlobal('requestAnimationFrame', (run: () => void) => setTimeout(run, 16))
  })
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })
  const pointing = () => {
    const crosshair = new Crosshair()
    crosshair.stir()
    crosshair.point(1000)
    return crosshair
  }

  it('a pointer, until it leaves', () => {
    const crosshair = pointing()
    expect(crosshair.current()).toMatchObject({ at: 1000, held: true })
    crosshair.point(null)
    expect(crosshair.current()).toMatchObject({ at: null, held: false })
  })

  it('a pointer at rest only for a while, and it tells when that is over', () => {
    const crosshair = pointing()
    const told: boolean[] = []
    vi.advanceTimersByTime(20)
    crosshair.subscribe(() => told.push(crosshair.current().held))
    vi.advanceTimersByTime(restMs)
    expect(told).toEqual([false])
    expect(crosshair.current().at).toBe(1000)
  })

  it('each movement anew', () => {
    const crosshair = pointing()
    vi.advanceTimersByTime(restMs - 1000)
    crosshair.stir()
    vi.advanceTimersByTime(restMs - 1000)
    expect(crosshair.current().held).toBe(true)
    vi.advanceTimersByTime(1000)
    expect(crosshair.current().held).toBe(false)
    crosshair.stir()
    expect(crosshair.current().held).toBe(true)
  })

  it('not the picture that moves on under a pointer at rest', () => {
    const crosshair = pointing()
    vi.advanceTimersByTime(restMs)
    crosshair.point(2000)
    expect(crosshair.current()).toMatchObject({ at: 2000, held: false })
  })

  it('a button that is down, however long', () => {
    const crosshair = pointing()
    crosshair.brush(true, { from: 1000, to: 2000 })
    vi.advanceTimersByTime(2 * restMs)
    expect(crosshair.current()).toMatchObject({ held: true, brushed: { from: 1000, to: 2000 } })
    crosshair.brush(false)
    expect(crosshair.current()).toMatchObject({ held: false, brushed: null })
  })
})
