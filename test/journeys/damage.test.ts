import { expect, it } from 'vitest'
import { DamageBench } from '../damage.ts'

/** Of many (`npm run soak damage`): a file of the history, and one of the objects. */
const harms = [
  [0.3, 0.5],
  [0.05, 0.9],
]

it('a hub with a harmed file starts, and serves its objects as they were', async () => {
  await using bench = await DamageBench.open()
  for (const [file = 0, how = 0] of harms) {
    const numbers = [file, how]
    const { what, outcome, detail } = await bench.run(() => numbers.shift() ?? 0.5)
    expect([what, outcome, detail].join('\n')).toMatch(/\nserved/)
  }
})
