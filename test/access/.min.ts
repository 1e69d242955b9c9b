import { compareSights } from './compare.ts'
import { worldOf } from './generate.ts'
import { reduced } from './reduce.ts'

for (const seed of process.argv.slice(2).map(Number)) {
  const w = worldOf(seed)
  const d = await compareSights(w)
  if (!d) {
    console.log(seed, 'no difference')
    continue
  }
  const small = await reduced(w, async (s) => (await compareSights(s))?.kind === d.kind)
  const { policies, clusters, ...rest } = small
  console.log('=====', seed, w.semantics, d.kind, (await compareSights(small))?.detail)
  console.log(JSON.stringify(rest))
  for (const p of policies) console.log('P', JSON.stringify(p))
  for (const c of clusters) console.log('C', JSON.stringify(c))
}
