/**
 * `npm run soak siege -- [windows] [seconds]`: a calm window and one under attack, side by side, again and again; ends with 1 where
 * anything failed or the p99 of all windows together grew by more than a fifth. A window is a minute, some 1200 answers of each door: one
 * pause of the collector of garbage (40 to 100 ms) decides the p99 of the 280 answers of 15 s, by half of it on the same machine.
 */
import { channels, compare, MOST, p99, Siege, type Waits } from './siege.ts'

const [windows = 5, seconds = 60] = process.argv.slice(2).map(Number)
const line = (name: string, { failures, ...waits }: Waits): string =>
  `${name}  ${channels.map((channel) => `${channel} ${p99(waits[channel]).toFixed(1)}`).join('  ')}  failed ${failures.length}${failures.length ? ` (${failures[0]})` : ''}\n`

process.stdout.write('p99 in ms; 20 agents, 5 members that answer and 30 that hang while it is attacked\n')
await using siege = await Siege.open({ agents: 20, hanging: 30 })
await siege.measure(10) // warm
const [calm, under]: [Waits[], Waits[]] = [[], []]
for (let window = 1; window <= windows; window++) {
  const [before, after] = await siege.pair(seconds)
  process.stdout.write(line(`${window} calm  `, before) + line(`${window} attack`, after))
  calm.push(before)
  under.push(after)
}
for (const channel of channels) {
  const { calm: before, under: after, ratio } = compare(channel, calm, under)
  process.stdout.write(
    `${channel}: ${before.toFixed(1)} calm, ${after.toFixed(1)} under attack: ${ratio.toFixed(2)} ×\n`,
  )
  if (!(ratio <= MOST)) process.exitCode = 1
}
if ([...calm, ...under].some(({ failures }) => failures.length > 0)) process.exitCode = 1
