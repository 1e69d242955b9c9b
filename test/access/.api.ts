import { compareAnswers, endServers } from './answers.ts'
import { worldOf } from './generate.ts'

const from = Number(process.argv[2]),
  n = Number(process.argv[3])
const kinds = new Map<string, { n: number; seed: number; detail: string }>()
const t = Date.now()
for (let s = from; s < from + n; s++) {
  const d = await compareAnswers(worldOf(s))
  if (d) {
    const k = `${worldOf(s).semantics} ${d.kind}`
    const e = kinds.get(k)
    if (e) e.n++
    else kinds.set(k, { n: 1, seed: s, detail: d.detail.slice(0, 3500) })
  }
}
console.log(n / ((Date.now() - t) / 1000), 'worlds/s')
for (const [k, e] of [...kinds].sort((a, b) => b[1].n - a[1].n))
  console.log('###', k, e.n, 'seed', e.seed, '\n', e.detail)
await endServers()
