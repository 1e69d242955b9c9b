import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient, Resource } from '../../src/platform/kube/index.ts'
import { Bencher } from '../ingest/process.ts'
import { processOf } from '../rounds/reading.ts'
import { FollowedMembers } from './followed-members.ts'
import { here, namesOf, startHub } from './hub.ts'
import type { Connected } from './members-process.ts'
import { BenchAuthority, makeMembers } from './membership.ts'

/* What members cost that are only there: streams, signs of life, leases. Collecting is measured elsewhere. */

const leases: Resource = {
  ...{ group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true },
}
const LEASE_NAME = 'managed-cluster-lease'
export const LEASE_MS = 60_000
const PROCESSES = 2
/** Until what a crowd of new members causes is done. */
const CALM_MS = 60_000

interface Lease {
  readonly metadata: { readonly namespace: string }
  readonly spec: { readonly renewTime: string }
}

export interface Heartbeats {
  readonly members: number
  readonly seconds: number
  /** of the hub, over that time */
  readonly cores: number
  /** of the hub at rest, before the first of them came */
  readonly restingCores: number
  /** of the processes that play the members */
  readonly membersCores: number
  readonly rssMb: number
  /** over as many lease durations as were watched */
  readonly leaseWrites: number
  readonly leaseDurations: number
  /** within one lease duration of one member, at most */
  readonly mostLeaseWrites: number
  /** at the end */
  readonly available: number
  readonly ended: number
  /** until all were declared, accepted and monitored; then until all streams stood and all were available */
  readonly declared: Stage
  readonly connected: Stage
}

/** What a part of it took. */
export interface Stage {
  readonly tookMs: number
  /** of the hub */
  readonly cpuMs: number
  /** of the hub, at its end */
  readonly rssMb: number
}

async function stage(pid: number, work: () => Promise<void>): Promise<Stage> {
  const [at, before] = [performance.now(), processOf(pid).cpuMs]
  await work()
  const { cpuMs, rssMb } = processOf(pid)
  return { tookMs: performance.now() - at, cpuMs: cpuMs - before, rssMb }
}

export async function measureHeartbeats(
  bin: string,
  directory: string,
  { members, seconds }: { readonly members: number; readonly seconds: number },
): Promise<Heartbeats> {
  const authority = await BenchAuthority.make(directory)
  // Rounds are not what is measured: they come once in the time.
  await using hub = await startHub(bin, directory, { ...authority.env, RECONCILIATION_INTERVAL: '30m' })
  await sleep(10_000)
  const resting = await coresOf([hub.pid], 10)
  const identities = await Promise.all(namesOf('beat', 0, members).map((name) => authority.identity(name)))
  await using followed = new FollowedMembers(hub.kube)
  const declared = await stage(hub.pid, async () => {
    await makeMembers(hub.kube, identities)
    await followed.settled(members)
  })
  process.stdout.write(`declared: ${wordsOf(declared)}\n`)
  const share = Math.ceil(members / PROCESSES)
  const { key } = authority
  const players = Array.from(
    { length: PROCESSES },
    () => new Bencher(here('members-process.ts'), { address: hub.address, key }),
  )
  await using _ = {
    [Symbol.asyncDispose]: async () => void (await Promise.all(players.map((player) => player[Symbol.asyncDispose]()))),
  }
  const connected = await stage(hub.pid, async () => {
    await Promise.all(
      players.map((player, index) => player.ask<Connected>(identities.slice(index * share, (index + 1) * share))),
    )
    await followed.availables(members)
  })
  process.stdout.write(`connected: ${wordsOf(connected)}\n`)
  await sleep(CALM_MS)
  const [cores = 0, ...ofMembers] = await coresEachOf([hub.pid, ...players.map(({ pid }) => pid)], seconds)
  const { rssMb } = processOf(hub.pid)
  const written = await leaseWrites(hub.kube, 2)
  const ended = await Promise.all(players.map((player) => player.ask<number>('ended')))
  return {
    ...{ members, seconds, cores, restingCores: resting, rssMb, declared, connected },
    membersCores: ofMembers.reduce((sum, one) => sum + one, 0),
    ...written,
    available: followed.available,
    ended: ended.reduce((sum, one) => sum + one, 0),
  }
}

/** Long runs are watched. */
export const wordsOf = ({ tookMs, cpuMs, rssMb }: Stage): string =>
  `${Math.round(tookMs / 1000)} s, in which the hub used ${Math.round(cpuMs / 1000)} s of CPU; its memory then ${Math.round(rssMb)} MB`

const coresOf = async (pids: readonly number[], seconds: number): Promise<number> =>
  (await coresEachOf(pids, seconds)).reduce((sum, one) => sum + one, 0)

async function coresEachOf(pids: readonly number[], seconds: number): Promise<number[]> {
  const before = pids.map((pid) => processOf(pid).cpuMs)
  const at = performance.now()
  await sleep(seconds * 1000)
  const tookMs = performance.now() - at
  return pids.map((pid, index) => (processOf(pid).cpuMs - (before[index] ?? 0)) / tookMs)
}

/** As the API tells them: each write is an event, of the time it says, however late it arrives here. */
async function leaseWrites(
  kube: KubeClient,
  leaseDurations: number,
): Promise<Pick<Heartbeats, 'leaseWrites' | 'leaseDurations' | 'mostLeaseWrites'>> {
  const stop = AbortSignal.timeout(leaseDurations * LEASE_MS)
  const times = new Map<string, number[]>()
  const fieldSelector = `metadata.name=${LEASE_NAME}`
  for await (const event of kube.watch(leases, { fieldSelector, signal: stop })) {
    if (event.type !== 'modified' && event.type !== 'added') continue
    const { metadata, spec } = event.object as unknown as Lease
    const { namespace } = metadata
    times.set(namespace, [...(times.get(namespace) ?? []), Date.parse(spec.renewTime)])
  }
  const all = [...times.values()]
  const within = (one: readonly number[]) =>
    Math.max(...one.map((from) => one.filter((at) => at >= from && at < from + LEASE_MS).length))
  return {
    leaseDurations,
    leaseWrites: all.reduce((sum, one) => sum + one.length, 0),
    mostLeaseWrites: Math.max(0, ...all.map(within)),
  }
}
