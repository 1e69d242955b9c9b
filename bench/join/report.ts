import type { Crowd } from './crowd.ts'
import { type Heartbeats, wordsOf } from './heartbeats.ts'
import { quantile } from './hub.ts'
import type { Revoked } from './revoke.ts'

const GOALS = { oneMs: 2_000, allMs: 60_000, crowd: 2_000, cores: 1, members: 10_000, revokeMs: 5_000 }

const ms = (value: number): string => `${Math.round(value)} ms`
const met = (value: number, goal: number): string => (value <= goal ? 'met' : 'missed')
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
const spread = (name: string, values: readonly number[]): readonly string[] => [
  name,
  ...[0.5, 0.99, 1].map((part) => ms(quantile(values, part))),
]

export function crowdReport({ ones, crowded, allMs, cpuMs, machinesCpuMs, rssMb }: Crowd): string {
  const each = (value: number) => ms(value / Math.max(1, crowded.length))
  // A part of the crowd has the same part of the time.
  const goalMs = (GOALS.allMs * crowded.length) / GOALS.crowd
  return `${ones.length} machines one after the other, then ${crowded.length} at once.

${table(
  ['', 'p50', 'p99', 'Slowest'],
  [...(ones.length > 0 ? [spread('alone', ones)] : []), spread('at once', crowded)],
)}

${table(
  ['Goal', 'Target', 'Measured', ''],
  [
    ...(ones.length > 0
      ? [['one machine, p99', `≤ ${ms(GOALS.oneMs)}`, ms(quantile(ones, 0.99)), met(quantile(ones, 0.99), GOALS.oneMs)]]
      : []),
    [
      `${crowded.length} at once, all members`,
      `≤ ${ms(goalMs)} (${ms(GOALS.allMs)} for ${GOALS.crowd})`,
      ms(allMs),
      met(allMs, goalMs),
    ],
  ],
)}

CPU for those at once: of the hub ${ms(cpuMs)}, ${each(cpuMs)} each; of the machines and of who accepts them ${ms(machinesCpuMs)}, ${each(machinesCpuMs)} each. The hub's memory after that: ${Math.round(rssMb)} MB.`
}

export function heartbeatsReport(result: Heartbeats): string {
  const { members, seconds, leaseWrites, leaseDurations, mostLeaseWrites } = result
  // Of fewer members the hub's own part would weigh more than theirs.
  const cores = members === GOALS.members ? result.cores : result.cores - result.restingCores
  const perLease = leaseWrites / leaseDurations / members
  const goal = (GOALS.cores * members) / GOALS.members
  const scaled = members === GOALS.members ? '' : ` (${GOALS.cores} for ${GOALS.members}), beyond the hub at rest`
  return `${members} members, each with a stream, a certificate and a connection of its own.

${table(
  ['Goal', 'Target', 'Measured', ''],
  [
    [`cores of the hub, over ${seconds} s`, `≤ ${goal}${scaled}`, cores.toFixed(3), met(cores, goal)],
    ['lease writes per lease duration and member', '≤ 1', perLease.toFixed(2), met(perLease, 1)],
    ['of one member within a lease duration, at most', '≤ 1', String(mostLeaseWrites), met(mostLeaseWrites, 1)],
  ],
)}

The hub at rest before they came: ${result.restingCores.toFixed(3)} cores; the processes that play them: ${result.membersCores.toFixed(3)}. The hub's memory: ${Math.round(result.rssMb)} MB.
Available at the end: ${result.available} of ${members}; streams that ended: ${result.ended}.

- Until all were declared, accepted and monitored: ${wordsOf(result.declared)}.
- From there until all streams stood and all were available: ${wordsOf(result.connected)}.`
}

export function revokeReport({ fromCall, fromReturn }: Revoked): string {
  const p99 = quantile(fromReturn, 0.99)
  return `${fromCall.length} members with an open stream each, revoked one after the other.

${table(
  ['Until the stream has ended', 'p50', 'p99', 'Slowest'],
  [spread('from the command', fromCall), spread('from its return', fromReturn)],
)}

${table(
  ['Goal', 'Target', 'Measured', ''],
  [['from the return of the command, p99', `≤ ${ms(GOALS.revokeMs)}`, ms(p99), met(p99, GOALS.revokeMs)]],
)}`
}

export const METHOD = `## Method

\`npm run bench join\`. The hub is \`clusterpulse up\` as built, with its embedded API, its CA and its controllers, in a process of its own; all else of the bench shares its cores.

**join**: the machines, and whoever accepts them, run in one other process. Each machine has a folder and a token of its own, made before; time is from there until its certificate
is on its disk: key, request written and synced, the hub's CA fetched and compared with the fingerprint, TLS, the token spent, both objects made, accepted (by who follows the requests,
32 at a time; alone looked for every few ms), signed, handed out, written and synced.

**heartbeats**: the hub is given a CA of the bench, which signs the members; they are declared as accepted ManagedClusters by the API, so that the hub makes namespaces, rights and connections as
ever. Two processes play them: a TLS connection with the member's certificate and one stream each, one batch of one node at the beginning, a sign of life every 30 s (as agents send it), and
an answer to every ping. How far the hub is with them is followed by watches: lists of all, read again and again, would cost it more than they do. CPU is counted a minute after all are
available. Lease writes are the events of a watch over all leases, in the two minutes after that.

**revoke**: as above with fewer members in the bench's process; the function behind \`clusterpulse revoke\` over the hub's HTTPS, one after the other, until the member sees its stream end.`
