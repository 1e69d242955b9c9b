/*
 * One server with open streams, then one policy that changes what all of them see. The server is this process, the clients
 * are another; the clock starts before the policy is written and stops when the last client has what is told of it.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { invariant } from '#model'
import { allowed, startHub } from './hub.ts'

const [directory = '', ...numbers] = process.argv.slice(2)
const [streams = 1000, clusters = 1000, nodes = 10, teams = 20, rounds = 5] = numbers.map(Number)

const teamOf = (index: number): string => `team-${index % teams}`
/** Half of the teams' clusters are another's too; no two teams see the same. */
const clustersOf = (index: number): readonly string[] =>
  [index % 100, (index + 50) % 100]
    .map((tens) => `cluster-?${String(tens).padStart(2, '0')}?`)
    .concat(`cluster-of-${index}`)

const hub = await startHub({
  directory,
  clusters,
  nodes,
  policies: [...Array(teams).keys()].map((i) => allowed(`own-${i}`, teamOf(i), clustersOf(i))),
})
const url = await hub.server.start()
const child = fork(fileURLToPath(new URL('./stream-clients.ts', import.meta.url)), [
  url,
  String(streams),
  String(teams),
])

/** What the clients say: all of them have had so many snapshots. */
async function snapshots(count: number): Promise<{ readonly accessMs: number; readonly bytes: number }> {
  child.send({ await: count })
  const [message] = (await once(child, 'message')) as [{ accessMs: number; bytes: number }]
  return message
}
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const openedAt = performance.now()
const opened = await snapshots(1)
const openMs = performance.now() - openedAt
const results: { accessMs: number; snapshotMs: number; cpuMs: number; bytes: number }[] = []
for (let round = 0; round < rounds; round++) {
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const isDenied = round % 2 === 0
  const deny = {
    ...allowed('freeze', '', ['cluster-???0', 'cluster-???5']),
    effect: 'Deny',
    priority: 9000,
    groups: isDenied ? [...Array(teams).keys()].map(teamOf) : [],
  }
  const [sinceCpu, since] = [cpuMs(), Date.now()]
  const done = snapshots(round + 2)
  await hub.policies.put(deny, {})
  const { accessMs, bytes } = await done
  results.push({ accessMs: accessMs - since, snapshotMs: Date.now() - since, cpuMs: cpuMs() - sinceCpu, bytes })
}
invariant(results.length === rounds, 'every round was waited for')
process.stdout.write(JSON.stringify({ openMs, openBytes: opened.bytes, results }), () => {
  child.kill()
  process.exit()
})
