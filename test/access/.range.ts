import { compareAnswers, endServers } from './answers.ts'
import { worldOf } from './generate.ts'

for (const s of process.argv.slice(2).map(Number)) {
  const d = await compareAnswers(worldOf(s))
  console.log(s, d?.kind, d?.detail.slice(0, 1500))
}
await endServers()
