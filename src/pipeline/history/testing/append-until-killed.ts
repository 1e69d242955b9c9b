/*
 * Appends one sample after the other to an embedded history, with much sorting and rolling up, and tells each position
 * that is safe. kill.test.ts ends it at any moment.
 */
import { minutes } from '#model'
import { DuckDbHistory } from '../duckdb.ts'
import { pods } from './sets.ts'

const [directory = '', begin = '0'] = process.argv.slice(2)
const store = await DuckDbHistory.open({
  directory,
  sortRows: 50,
  // Samples are a second apart: most of them are rolled up soon.
  rawMs: minutes(10),
  clock: { now: () => Number(begin) + (store.position() + 1) * 1000, sleep: () => new Promise(() => undefined) },
})
for (let round = 1; ; round++) {
  const from = store.position() + 1
  const count = 1 + (from % 7)
  const records = Array.from({ length: count }, (_, i) => pods(Number(begin) + (from + i) * 1000, from + i))
  await store.append(records, from + count - 1)
  process.stdout.write(`${store.position()}\n`)
  if (round % 40 === 0) await store.upkeep()
}
