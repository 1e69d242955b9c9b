/*
 * One source over so many objects, in a process of its own, with page texts as an API server would send them, read from a file.
 * CPU is of what we do with objects (parsing their JSON is counted apart); memory is over what the process had when it was ready.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { compileMetricSource } from '#metricsource'
import { invariant } from '#model'
import { declaration } from './declaration.ts'

const [file = '', ...numbers] = process.argv.slice(2)
const [count = 10_000, rounds = 1] = numbers.map(Number)
const sizes: readonly number[] = JSON.parse(readFileSync(`${file}.sizes`, 'utf8'))
const pages = openSync(file, 'r')

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
const mebibytes = (bytes: number): number => bytes / 2 ** 20
const collectGarbage = (): void => {
  invariant(globalThis.gc, 'started with --expose-gc')
  globalThis.gc()
  globalThis.gc()
}

function pageText(size: number, position: number): string {
  const page = Buffer.alloc(size)
  readSync(pages, page, { length: size, position })
  return page.toString()
}

const { source, findings } = compileMetricSource(declaration)
invariant(source, `it compiles: ${findings.map(({ message }) => message).join('; ')}`)

/** One collection, page by page. */
function collectOnce(compiled: NonNullable<typeof source>) {
  const times = { parseMs: 0, addMs: 0, rowsMs: 0, aggregateMs: 0 }
  const builder = compiled.collect(1_800_000_000_000)
  let position = 0
  for (const size of sizes) {
    const text = pageText(size, position)
    position += size
    let since = cpuMs()
    const { items } = JSON.parse(text)
    times.parseMs += cpuMs() - since
    since = cpuMs()
    for (const object of items) builder.add(object)
    times.addMs += cpuMs() - since
  }
  let since = cpuMs()
  const rows = builder.rows()
  times.rowsMs = cpuMs() - since
  since = cpuMs()
  const aggregations = compiled.aggregate(rows)
  times.aggregateMs = cpuMs() - since
  return { times, rows, aggregations }
}

collectGarbage()
const before = process.memoryUsage()
const results = []
let kept = collectOnce(source)
results.push(kept.times)
collectGarbage()
const after = process.memoryUsage()
const peakMiB = process.resourceUsage().maxRSS / 1024 - mebibytes(before.rss)
for (let round = 1; round < rounds; round++) {
  kept = collectOnce(source)
  results.push(kept.times)
}
closeSync(pages)
invariant(kept.rows.size === count && kept.aggregations.volumes === count, 'nothing is lost')
process.stdout.write(
  JSON.stringify({
    first: results[0],
    warm: results.at(-1),
    keptMiB: mebibytes(after.heapUsed - before.heapUsed),
    peakMiB,
  }),
)
