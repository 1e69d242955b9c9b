import { describe, expect, it } from 'vitest'
import { atOnce, inTurns, type Steps } from './steps.ts'
import { Turns } from './turns.ts'

function* countTo(most: number, seen: (count: number) => void): Steps<number> {
  for (let count = 1; count <= most; count++) {
    seen(count)
    yield
  }
  return most
}
const never = new AbortController().signal
const busyFor = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end; );
}

describe('steps', () => {
  it('come to the same at once and in turns', async () => {
    expect(atOnce(countTo(5, () => undefined))).toBe(5)
    expect(
      await inTurns(
        countTo(5, () => undefined),
        new Turns(),
        never,
      ),
    ).toBe(5)
  })

  it('let others have their turn', async () => {
    let count = 0
    let seenAt = 0
    // The first turn begins with the next look at what came.
    setImmediate(() =>
      setImmediate(() => {
        seenAt = count
      }),
    )
    await inTurns(
      countTo(20, (at) => {
        count = at
        busyFor(3)
      }),
      new Turns(),
      never,
    )
    expect(seenAt).toBeGreaterThan(0)
    expect(seenAt).toBeLessThan(20)
  })

  it('end where nobody waits for them any more', async () => {
    const gone = new AbortController()
    let last = 0
    const answer = await inTurns(
      countTo(1e9, (at) => {
        last = at
        if (at === 3) gone.abort()
      }),
      new Turns(),
      gone.signal,
    )
    expect(answer).toBeUndefined()
    expect(last).toBeLessThan(1e9)
  })

  it('that fail say why', async () => {
    const failing = countTo(3, () => {
      throw new Error('no')
    })
    await expect(inTurns(failing, new Turns(), never)).rejects.toThrow('no')
  })
})
