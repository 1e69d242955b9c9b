/** What `workMs` gave on the two calm cores on which the bars of tests were set, ms. */
const REFERENCE_MS = 75

/** How much processor time known work takes here and now, ms: short texts and small objects that are made and thrown away, and JSON. */
export function workMs(): number {
  const since = process.cpuUsage()
  let rows: { n: number; name: string }[] = []
  let sum = 0
  for (let n = 0; n < 300_000; n++) {
    rows.push({ n, name: `row-${n}` })
    if (rows.length < 50_000) continue
    sum += JSON.stringify(JSON.parse(JSON.stringify(rows.slice(0, 20_000)))).length
    rows = []
  }
  const { user, system } = process.cpuUsage(since)
  return sum > 0 ? (user + system) / 1000 : Number.NaN
}

/** How many times as long as there something takes here: the least of some looks, never less than 1, and no more than 6. */
export function measuredSlowness(looks = 5): number {
  const least = Math.min(...Array.from({ length: looks }, workMs))
  return Math.min(6, Math.max(1, Math.round((10 * least) / REFERENCE_MS) / 10))
}

/**
 * The same, as it was when the tests began (vitest.config.ts): the time of a shared machine is not always worth the same. A wait of a
 * test may be that much longer, and a bar is for what something would have taken there.
 */
export const slowness: number = Math.max(1, Number(process.env.TEST_SLOWNESS ?? 1))
