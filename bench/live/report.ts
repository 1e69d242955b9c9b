import type { Size, Usage } from '../live.ts'
import { machine } from '../rounds/reading.ts'
import { at as atShare, type Change } from './mark.ts'
import type { Made } from './members.ts'
import type { Audience } from './people.ts'
import type { Came, Stages } from './viewers.ts'

export interface Measured {
  readonly size: Size
  readonly turn: readonly Change[]
  readonly made: Made
  readonly before: Usage
  readonly after: Usage
  readonly people: Audience
  readonly came: readonly Came[]
  readonly stages: Stages
}

const ms = (value: number): string => `${value.toFixed(0)} ms`
const ascending = (values: Iterable<number>): Float64Array => Float64Array.from(values).sort()

export function report(measured: Measured): string {
  const { size, made, before, after } = measured
  const seconds = (after.at - before.at) / 1000
  const steps = after.steps - before.steps
  const milli = (name: keyof Usage['cpuMs']) => ((after.cpuMs[name] - before.cpuMs[name]) / seconds).toFixed(0)
  const hubMs = after.cpuMs.hub - before.cpuMs.hub
  const late = (share: number) => ms(atShare(made.late, share))
  return [
    '# Live',
    '',
    `\`npm run bench live\`: ${size.clusters} simulated clusters of ${size.nodes} nodes and ${size.pods} pods, pulled by one hub; ${made.changes} changes of pods in ${made.seconds.toFixed(0)} s`,
    `(${(made.changes / made.seconds).toFixed(0)} a second), ${size.viewers} people with streams. Members, hub and people are a process each, on the same machine:`,
    `${machine()}.`,
    '',
    '| who | people | rows that came | missing | p50 | p90 | p99 | most |',
    '|---|---|---|---|---|---|---|---|',
    ...rowsOfPeople(measured),
    '',
    'From the write in the member to the row in the viewer. Each looks at the 1000 pods changed last that they may see, one in ten at the clusters too; one',
    'in ten has a packed stream. Missing: changes that never came within 3 s after the last.',
    '',
    '| changes made in | p50 | p90 | p99 | most |',
    '|---|---|---|---|---|',
    ...rowsOfTime(measured),
    '',
    '| where the time goes (one administrator) | p50 | p90 | p99 | most |',
    '|---|---|---|---|---|',
    `| a change is late in the members | ${[0.5, 0.9, 0.99, 1].map(late).join(' | ')} |`,
    ...rowsOfStages(measured.stages),
    '',
    '| | CPU, mCPU | RSS | peak RSS |',
    '|---|---|---|---|',
    `| hub | ${milli('hub')} | ${after.rssMb.toFixed(0)} MB | ${after.peakMb.toFixed(0)} MB |`,
    `| members | ${milli('members')} | | |`,
    `| viewers | ${milli('viewers')} | | |`,
    '',
    `${steps} records of the log were applied to state (${(steps / seconds).toFixed(0)} a second): ${(hubMs / steps).toFixed(2)} ms of the hub's CPU each, all its work counted.`,
    '',
  ].join('\n')
}

function rowsOfPeople({ people, came, turn, made }: Measured): string[] {
  const sums = new Map<string, { people: number; expected: number; late: number[] }>()
  for (const [i, { late }] of came.entries()) {
    const sort = people.sortOf[i]
    if (!sort) continue
    const sum = sums.get(sort.name) ?? { people: 0, expected: 0, late: [] }
    sum.people++
    for (let change = 0; change < made.changes; change++) {
      const one = turn[change % turn.length]
      if (one && sort.sees(one)) sum.expected++
    }
    for (const [, lateMs] of late) sum.late.push(lateMs)
    sums.set(sort.name, sum)
  }
  const all = { people: 0, expected: 0, late: [] as number[] }
  for (const { people, expected, late } of sums.values()) {
    all.people += people
    all.expected += expected
    for (const one of late) all.late.push(one)
  }
  return [...sums, ['all', all] as const].map(([name, { people, expected, late }]) => {
    const sorted = ascending(late)
    const shares = [0.5, 0.9, 0.99, 1].map((share) => ms(atShare(sorted, share)))
    return `| ${name} | ${people} | ${late.length} | ${expected - late.length} | ${shares.join(' | ')} |`
  })
}

/** Lateness by the tenth of the run in which a change was made: whether it grows, or a moment was slow. */
function rowsOfTime({ came, made }: Measured): string[] {
  const tenths = Array.from({ length: 10 }, (): number[] => [])
  for (const { late } of came)
    for (const [number, ms] of late) tenths[Math.min(9, Math.floor((number * 10) / made.changes))]?.push(ms)
  return tenths.map((late, at) => {
    const sorted = ascending(late)
    return `| tenth ${at + 1} of the run | ${[0.5, 0.9, 0.99, 1].map((share) => ms(atShare(sorted, share))).join(' | ')} |`
  })
}

function rowsOfStages({ toStep, toIngest, toViewer }: Stages): string[] {
  const row = (name: string, values: readonly number[]) => {
    const sorted = ascending(values)
    return `| ${name} | ${[0.5, 0.9, 0.99, 1].map((share) => ms(atShare(sorted, share))).join(' | ')} |`
  }
  return [
    row('from the write to the step that the hub makes of it (watch, gathering)', toStep),
    row('from there to its receipt by ingest', toIngest),
    row('from there to the viewer (log, state, gathering, frame)', toViewer),
  ]
}
