import { describe, expect, it } from 'vitest'
import { ChunkMemo } from './chunk-memo.ts'

const bytes = () => 1000

/** What was made, in the order of asking. */
function asking(memo: ChunkMemo) {
  const made: string[] = []
  const ask = (question: string, about: object) =>
    memo.answers<string>(question, bytes).of(about, () => {
      made.push(question)
      return question
    })
  return { made, ask }
}

describe('what is known of chunks', () => {
  it('is found out once, for each question and each chunk', () => {
    const { made, ask } = asking(new ChunkMemo(1e6))
    const [one, other] = [{}, {}]
    for (const about of [one, one, other, one]) expect(ask('a', about)).toBe('a')
    expect(ask('b', one)).toBe('b')
    expect(made).toEqual(['a', 'a', 'b'])
  })

  it('goes where nobody asks for it any more, and stays where somebody does', () => {
    const memo = new ChunkMemo(20_000)
    const { made, ask } = asking(memo)
    const about = {}
    ask('asked again', about)
    ask('asked once', about)
    for (let i = 0; i < 100; i++) {
      ask(`other ${i}`, about)
      ask('asked again', about)
      expect(memo.bytes).toBeLessThanOrEqual(10_000 + 2000)
    }
    ask('asked once', about)
    expect(made.filter((question) => question === 'asked again')).toHaveLength(1)
    expect(made.filter((question) => question === 'asked once')).toHaveLength(2)
  })

  it('is right where a generation ends while it is found out', () => {
    const memo = new ChunkMemo(4000)
    const inner = memo.answers<number>('inner', bytes)
    const outer = memo.answers<number>('outer', bytes)
    for (let i = 0; i < 20; i++) {
      const about = {}
      const ask = () => outer.of(about, () => inner.of(about, () => i) + inner.of({}, () => 1))
      expect([ask(), ask()]).toEqual([i + 1, i + 1])
    }
  })
})
