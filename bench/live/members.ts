/*
 * The clusters of the bench in a process of their own, which also makes the changes: each writes the time of the write and its number into the
 * message of a pod, straight into the store behind a member's API, so that no request of ours waits before the watch.
 *
 *   members.ts {"clusters":…,"nodes":…,"pods":…,"kubeconfig":FILE}
 */
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { kubeconfigOf, scenarios, simulateFleet } from '../../src/platform/simulator/index.ts'
import { type Change, markOf, nowMs } from './mark.ts'

/** Pods of each cluster that change, in turn: one changes again after so many turns of all clusters. */
const PODS_MOVED = 50
const PODS = { group: '', version: 'v1', plural: 'pods' }

interface Sizes {
  readonly clusters: number
  readonly nodes: number
  readonly pods: number
  readonly kubeconfig: string
}

/** What the members say of the changes they made. */
export interface Made {
  readonly changes: number
  readonly seconds: number
  /** how late after its turn each was made, ms, ascending */
  readonly late: readonly number[]
  readonly cpuMs: number
}

const { kubeconfig, ...size } = JSON.parse(process.argv[2] ?? '{}') as Sizes
await using fleet = await simulateFleet(scenarios.plain({ ...size, seed: 1, lives: false }), { seed: 1, lives: false })
await writeFile(kubeconfig, kubeconfigOf(fleet.clusters))

const perCluster = fleet.clusters.map(({ name }) => {
  const { objects } = fleet.server(name)
  const all = objects.list(PODS)
  const stride = Math.max(1, Math.floor(all.length / PODS_MOVED))
  const keys = all.filter((_, at) => at % stride === 0).map(({ metadata }) => metadata)
  return keys.slice(0, PODS_MOVED).map((key) => ({ cluster: name, key, objects }))
})
// Of each cluster one, then of each the next: neighbours in time are of different clusters.
const moved = Array.from({ length: PODS_MOVED }, (_, at) => perCluster.flatMap((list) => list[at] ?? [])).flat()
const turn: readonly Change[] = moved.map(({ cluster, key: { namespace = '' } }) => ({ cluster, namespace }))

async function change({ rate, seconds }: { readonly rate: number; readonly seconds: number }): Promise<Made> {
  const late: number[] = []
  const cpu = process.cpuUsage()
  const begun = nowMs()
  let made = 0
  for (;;) {
    const passed = Math.min(nowMs() - begun, seconds * 1000)
    for (; made < seconds * rate && made <= (passed * rate) / 1000; made++) {
      const { objects, key } = moved[made % moved.length] as (typeof moved)[number]
      const pod = objects.get(PODS, key)
      if (!pod) throw new Error(`${key.namespace}/${key.name} is gone`)
      late.push(nowMs() - begun - (made * 1000) / rate)
      await objects.put({ ...pod, status: { ...(pod.status as object), message: markOf(made) } })
    }
    if (passed >= seconds * 1000) break
    await sleep(2)
  }
  const { user, system } = process.cpuUsage(cpu)
  return {
    changes: made,
    seconds: (nowMs() - begun) / 1000,
    late: late.sort((a, b) => a - b),
    cpuMs: (user + system) / 1000,
  }
}

process.on('message', (message) => {
  if (message === 'turn') process.send?.(turn)
  else void change(message as { rate: number; seconds: number }).then((made) => process.send?.(made))
})
process.send?.('ready')
await new Promise((resolve) => process.once('disconnect', resolve))
