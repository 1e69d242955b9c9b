import { compareSights } from '/work/main/test/access/compare.ts'
import { worldOf } from '/work/main/test/access/generate.ts'

const from = Number(process.argv[2] ?? 1),
  n = Number(process.argv[3] ?? 2000)
const kinds = new Map<string, { count: number; seeds: number[]; detail: string }>()
let differing = 0
const t = Date.now()
for (let seed = from; seed < from + n; seed++) {
  const d = await compareSights(worldOf(seed))
  if (!d) continue
  differing++
  const k = kinds.get(d.kind) ?? { count: 0, seeds: [], detail: d.detail }
  k.count++
  if (k.seeds.length < 5) k.seeds.push(seed)
  if (d.detail.length < k.detail.length) k.detail = d.detail
  kinds.set(d.kind, k)
}
console.log({ n, differing, ms: Date.now() - t })
for (const [kind, { count, seeds, detail }] of kinds)
  console.log('==', kind, count, seeds, '\n   ', detail.slice(0, 900))
