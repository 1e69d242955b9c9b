/** `npm run soak damage -- [runs] [seed]`: harms one file of a hub's folder, again and again; ends with 1 where a hub stays dead or lies. */
import { DamageBench } from './damage.ts'

const [runs = 500, seed = Date.now() % 2 ** 31] = process.argv.slice(2).map(Number)
/** mulberry32: small, and the same everywhere. */
function randomOf(start: number): () => number {
  let state = start >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

process.stdout.write(`${runs} corruptions, seed ${seed}\n`)
await using bench = await DamageBench.open()
const counts = new Map<string, number>()
for (let i = 0; i < runs; i++) {
  const { what, outcome, detail } = await bench.run(randomOf(seed + i))
  counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  const isBad = outcome === 'stays dead' || outcome === 'serves altered objects'
  // A hub that only served when it was started again says why, as one does that stays dead.
  const tells = isBad || outcome === 'served at the second start'
  process.stdout.write(`${i + 1} (seed ${seed + i})  ${what}: ${outcome}\n${tells ? `${detail}\n` : ''}`)
}
for (const [outcome, count] of counts) process.stdout.write(`${count} ${outcome}\n`)
if (counts.has('stays dead') || counts.has('serves altered objects')) process.exitCode = 1
