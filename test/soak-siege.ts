/**
 * `npm run soak siege -- [windows] [seconds]`: a calm window and one under attack, side by side, again and again; ends with 1 where
 * anything failed or the median of the p99 grew by more than a fifth.
 */
import { p99, Siege, type Waits } from './siege.ts'

const [windows = 5, seconds = 20] = process.argv.slice(2).map(Number)
const force = { silent: 300, idle: 1000, bombsPerSecond: 100 }
const channels = ['acks', 'healthz', 'page'] as const
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const line = (name: string, { failures, ...waits }: Waits): string =>
  `${name}  ${channels.map((channel) => `${channel} ${p99(waits[channel]).toFixed(1)}`).join('  ')}  failed ${failures.length}${failures.length ? ` (${failures[0]})` : ''}\n`

process.stdout.write('p99 in ms; 20 agents, 5 members that answer and 30 that hang\n')
await using siege = await Siege.open({ agents: 20, hanging: 30 })
await siege.measure(10) // warm
const calm: Waits[] = []
const under: Waits[] = []
for (let window = 1; window <= windows; window++) {
  calm.push(await siege.measure(seconds))
  process.stdout.write(line(`${window} calm  `, calm.at(-1) as Waits))
  await siege.attack(force)
  await new Promise((resolve) => setTimeout(resolve, 2000))
  under.push(await siege.measure(seconds))
  process.stdout.write(line(`${window} attack`, under.at(-1) as Waits))
  await siege.relieve()
  await new Promise((resolve) => setTimeout(resolve, 2000))
}
for (const channel of channels) {
  const [before, after] = [calm, under].map((all) => median(all.map((waits) => p99(waits[channel])))) as [
    number,
    number,
  ]
  const ratio = after / before
  process.stdout.write(
    `${channel}: ${before.toFixed(1)} calm, ${after.toFixed(1)} under attack: ${ratio.toFixed(2)} ×\n`,
  )
  if (!(ratio <= 1.2)) process.exitCode = 1
}
if ([...calm, ...under].some(({ failures }) => failures.length > 0)) process.exitCode = 1
