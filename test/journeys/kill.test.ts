import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ClusterView, createClient } from '#http'
import { accessForContext, createKubeClient, type KubeClient, loadKubeconfig, type Resource } from '#kube'
import { clusterpulse, type Running } from '../process.ts'

/** More by hand: KILL_CYCLES=200 npx vitest run test/journeys/kill.test.ts */
const CYCLES = Number(process.env.KILL_CYCLES ?? 2)
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }

describe('a hub that is killed at random moments', () => {
  let folder: string
  let fleet: Running
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-kill-'))
    fleet = clusterpulse([
      'simulate',
      '--clusters',
      '3',
      '--nodes',
      '4',
      '--pods',
      '30',
      '--kubeconfig-out',
      join(folder, 'fleet.yaml'),
    ])
    await fleet.says(/kubeconfig in/)
  })
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  it(`loses no answered object, no seen state, and finds its log whole (${CYCLES} times)`, {
    timeout: 60_000 + CYCLES * 60_000,
  }, async () => {
    const data = join(folder, 'data')
    const answered = new Set<string>()
    /** newest observation of each cluster that the API ever showed */
    const seen = new Map<string, number>()
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await using hub = clusterpulse([
        'up',
        '--kubeconfig',
        join(folder, 'fleet.yaml'),
        '--data-dir',
        data,
        '--port',
        '0',
        '--control-plane-port',
        '0',
      ])
      const address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
      const api = createClient({ baseUrl: address })
      await using objects = createKubeClient(await accessForContext(await loadKubeconfig([join(data, 'kubeconfig')])))

      const first = await api.clusters()
      for (const [name, observedAt] of seen) {
        const cluster = first.items.find((candidate) => candidate.name === name)
        expect(cluster, `cycle ${cycle}: ${name} is forgotten`).toBeDefined()
        expect(observationOf(cluster), `cycle ${cycle}: ${name} went back in time`).toBeGreaterThanOrEqual(observedAt)
        expect(cluster?.nodes?.total, `cycle ${cycle}: nodes of ${name}`).toBe(4)
      }
      const kept = new Set(
        (await objects.listAll(configMaps, { namespace: 'clusterpulse' })).map(({ metadata }) => metadata.name),
      )
      for (const name of answered) expect(kept.has(name), `cycle ${cycle}: answered object ${name} is lost`).toBe(true)

      const end = new AbortController()
      const writing = write(objects, cycle, answered, end.signal)
      const watching = look(api, seen, end.signal)
      // The second hub lives until all of it was seen once: without that a slow machine has nothing to lose.
      if (cycle === 1) await expect.poll(() => [seen.size, answered.size > 0]).toEqual([3, true])
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 2_500))
      await hub.kill('SIGKILL')
      end.abort()
      await Promise.all([writing, watching])
      expect(hub.stderr(), `cycle ${cycle}`).not.toMatch(/"kind":"damaged"/)
    }
  })
})

const observationOf = (cluster: ClusterView | undefined) => cluster?.parts.node?.freshness?.observedAt ?? Number.NaN

/** Creates objects until the hub is gone; only what was answered counts. */
async function write(kube: KubeClient, cycle: number, answered: Set<string>, signal: AbortSignal): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const name = `kept-${cycle}-${n}`
    try {
      await kube.create(
        configMaps,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'clusterpulse' }, data: { n: `${n}` } },
        signal,
      )
    } catch {
      return // the hub is gone, as it should be
    }
    answered.add(name)
  }
}

async function look(
  api: ReturnType<typeof createClient>,
  seen: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for (const cluster of (await api.clusters({}, signal)).items) {
        const observedAt = observationOf(cluster)
        if (!Number.isNaN(observedAt)) seen.set(cluster.name, observedAt)
      }
    } catch {
      return // as above
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
