import { compareAnswers, endServers } from './answers.ts'
import { compareSights } from './compare.ts'
import { worldOf } from './generate.ts'
import { reduced } from './reduce.ts'

for (const seed of process.argv.slice(2).map(Number)) {
  const w = worldOf(seed)
  const a = await compareSights(w)
  if (a) console.log('A also:', a.kind, a.detail)
  const d = await compareAnswers(w)
  if (!d) {
    console.log(seed, 'no difference')
    continue
  }
  const small = await reduced(w, async (s) => (await compareAnswers(s))?.kind === d.kind, 150)
  const { policies, clusters, ...rest } = small
  console.log('=====', seed, w.semantics, d.kind, (await compareAnswers(small))?.detail.slice(0, 1200))
  console.log(JSON.stringify(rest))
  for (const p of policies) console.log('P', JSON.stringify(p))
  for (const c of clusters) console.log('C', JSON.stringify(c))
}
await endServers()
