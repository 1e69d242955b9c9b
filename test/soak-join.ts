/**
 * `npm run soak join -- [kills] [lanes]`: machines join a hub, several at a time, and machines and hub are killed (SIGKILL) in turn at
 * every step; ends with 1 where a member was lost or doubled, or a credential is anywhere but in its place.
 */
import { JoinKills } from './join-kills.ts'

const [kills = 1000, lanes = 16] = process.argv.slice(2).map(Number)
const startedAt = Date.now()
const seconds = () => Math.round((Date.now() - startedAt) / 1000)
await using siege = await JoinKills.open()
const progress = setInterval(() => {
  const { machines, hub } = siege.killed
  process.stdout.write(`${seconds()} s: ${machines} kills of machines, ${hub} of the hub, ${siege.members} machines\n`)
}, 15_000)
const { kills: by, members, faults } = await siege.run(kills, lanes)
clearInterval(progress)
const words = Object.entries(by).map(([step, count]) => `${step} ${count}`)
process.stdout.write(
  `${seconds()} s, killed where it: ${words.join(', ')}\n${members} members, ${faults.length} faults\n`,
)
for (const fault of faults) process.stdout.write(`  ${fault}\n`)
if (faults.length > 0) process.exitCode = 1
