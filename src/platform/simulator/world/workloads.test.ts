import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiObject, ApiServer } from '#apiserver'
import { Life } from '../life.ts'
import { TemplateCatalogue } from '../objects/pod-template.ts'
import { scenarios } from '../scenarios.ts'
import { ManualClock } from '../testing/manual-clock.ts'
import { MapSink } from '../testing/map-sink.ts'
import { faultsOf } from '../testing/validity.ts'
import type { ClusterScenario, Pace } from '../types.ts'
import { buildWorld } from './build.ts'
import { writeChanges } from './draw.ts'
import { crash, rollOut } from './verbs.ts'

const demo = (name: string): ClusterScenario => {
  const found = scenarios.demo.clusters.find((cluster) => cluster.name === name)
  if (!found) throw new Error(`no cluster ${name}`)
  return found
}

async function aWorld(scenario: ClusterScenario, pace?: Pace) {
  const clock = new ManualClock()
  const world = buildWorld(scenario, { seed: 1, now: clock.now(), templates: new TemplateCatalogue() })
  const sink = new MapSink()
  await writeChanges(world, sink)
  const life = new Life([world], { clock, seed: 1, pace })
  const run = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000)
      life.advance()
    }
    await writeChanges(world, sink)
  }
  return { clock, world, sink, life, run }
}

const QUIET: Pace = { churnMs: 3_600_000, happeningMs: [36_000_000, 36_000_000], opening: [] }
// biome-ignore lint/suspicious/noExplicitAny: a test looks into arbitrary JSON
type Any = any
const list = (sink: MapSink, plural: string): Any[] => sink.list(plural)

/** The kinds that stand between people and pods. */
const KINDS = [
  'deployments',
  'replicasets',
  'statefulsets',
  'daemonsets',
  'cronjobs',
  'jobs',
  'services',
  'persistentvolumeclaims',
  'persistentvolumes',
]

describe('workloads of a simulated cluster', () => {
  it.each(['prod-east', 'staging', 'edge-paris', 'gpu-lab'])('%s has some of every kind', async (name) => {
    const { sink } = await aWorld(demo(name))
    for (const kind of KINDS) expect(list(sink, kind).length, kind).toBeGreaterThan(0)
    expect(list(sink, 'daemonsets')[0].status.desiredNumberScheduled).toBe(list(sink, 'nodes').length)
  })

  it('has services that select the pods of their workload, one of them reached from outside', async () => {
    const { sink } = await aWorld(demo('prod-east'))
    const pods = list(sink, 'pods')
    for (const { metadata, spec } of list(sink, 'services')) {
      const selected = pods.filter(
        (pod) =>
          pod.metadata.namespace === metadata.namespace &&
          Object.entries(spec.selector).every(([key, value]) => pod.metadata.labels[key] === value),
      )
      expect(selected.length, metadata.name).toBeGreaterThan(0)
    }
    const types = new Set(list(sink, 'services').map(({ spec }) => spec.type))
    expect(types).toEqual(new Set(['ClusterIP', 'LoadBalancer']))
  })

  it('loses a volume and lets claims wait where the scenario says so', async () => {
    const phases = async (name: string) => {
      const { sink } = await aWorld(demo(name))
      const all = list(sink, 'persistentvolumeclaims').map(({ status }) => status.phase)
      return {
        lost: all.filter((phase) => phase === 'Lost').length,
        pending: all.filter((phase) => phase === 'Pending').length,
      }
    }
    expect(await phases('staging')).toEqual({ lost: 1, pending: 0 })
    expect(await phases('gpu-lab')).toEqual({ lost: 0, pending: 2 })
  })

  it('has as many services and claims as it is given, and few in a fleet of many', async () => {
    const counts = async (options: { services?: number; claims?: number; pods: number }) => {
      const { sink } = await aWorld(scenarios.plain({ clusters: 1, nodes: 20, ...options }).clusters[0]!)
      return [list(sink, 'services').length, list(sink, 'persistentvolumeclaims').length]
    }
    expect(await counts({ pods: 40 })).toEqual([2, 0])
    expect(await counts({ pods: 400 })).toEqual([2, 3])
    expect(await counts({ pods: 400, services: 9, claims: 6 })).toEqual([9, 6])
  })
})

describe('the life of workloads', () => {
  it('renews a deployment from one replica set to the next, and keeps the last of the old ones', async () => {
    const { world, clock, sink, run } = await aWorld(demo('prod-east'), QUIET)
    const workload = [...world.deployments.values()].find(({ replicas }) => replicas > 6)!
    const sets = () =>
      list(sink, 'replicasets')
        .filter(({ metadata }) => metadata.ownerReferences[0].uid === workload.uid)
        .map(({ status }) => status.replicas)
    rollOut(world, workload, clock.now())
    await run(3)
    expect(sets()).toHaveLength(2)
    expect(sets().every((replicas) => replicas > 0)).toBe(true)
    await run(240)
    expect(sets().sort()).toEqual([0, workload.replicas])
    rollOut(world, workload, clock.now())
    await run(240)
    rollOut(world, workload, clock.now())
    await run(240)
    expect(sets().sort()).toEqual([0, workload.replicas])
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })

  it('runs jobs by their schedule: most complete, some fail after their retries, old ones go', async () => {
    const { world, clock, sink, run } = await aWorld(demo('prod-east'), QUIET)
    const before = new Set(list(sink, 'jobs').map(({ metadata }) => metadata.uid))
    const conditions = new Map<string, string>()
    let active = 0
    let retried = 0
    for (let minute = 0; minute < 120; minute++) {
      await run(60)
      for (const { metadata, status } of list(sink, 'jobs')) {
        if (before.has(metadata.uid)) continue
        active += status.active ?? 0
        retried = Math.max(retried, status.failed ?? 0)
        const ended = status.conditions?.find(({ type }: Any) => type === 'Complete' || type === 'Failed')
        if (ended) conditions.set(metadata.uid, ended.type)
      }
      expect(list(sink, 'jobs').length).toBeLessThanOrEqual(world.cronJobs.size * 4)
    }
    const ended = [...conditions.values()]
    expect(ended.filter((type) => type === 'Complete').length).toBeGreaterThan(20)
    expect(ended).toContain('Failed')
    expect(active).toBeGreaterThan(0)
    expect(retried).toBeGreaterThan(1)
    for (const { metadata, status } of list(sink, 'cronjobs'))
      expect(clock.now() - Date.parse(status.lastScheduleTime), metadata.name).toBeLessThanOrEqual(3_600_000)
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })

  it('has started again what crashes from the start', async () => {
    const { sink } = await aWorld(demo('gpu-lab'))
    const restarts = list(sink, 'pods')
      .flatMap(({ status }) => status.containerStatuses ?? [])
      .filter(({ state }: Any) => state.waiting?.reason === 'CrashLoopBackOff')
      .map(({ restartCount }: Any) => restartCount)
    expect(restarts.length).toBeGreaterThan(0)
    expect(Math.min(...restarts)).toBeGreaterThan(2)
  })

  it('says of a container that ran out of memory how it ended, and how often', async () => {
    const { world, clock, sink } = await aWorld(demo('prod-east'))
    const pod = [...world.pods.values()].find(({ state, restarts }) => state === 'running' && restarts === 0)!
    crash(world, pod, clock.now(), true)
    await writeChanges(world, sink)
    const { status } = list(sink, 'pods').find(({ metadata }) => metadata.uid === pod.uid)
    expect(status.containerStatuses[0]).toMatchObject({
      restartCount: 1,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { reason: 'OOMKilled', exitCode: 137 } },
    })
  })

  it('volumePending: a new pod waits for its volume, gets it, and the claim stays when the pod goes', async () => {
    const { world, life, sink, run, clock } = await aWorld(demo('prod-east'))
    const claims = world.claims.size
    life.begin(world, 'volumePending')
    await run(20)
    const [pending] = list(sink, 'persistentvolumeclaims').filter(({ status }) => status.phase === 'Pending')
    const pod = list(sink, 'pods').find(({ metadata }) => `data-${metadata.name}` === pending.metadata.name)
    expect(pod.status.phase).toBe('Pending')
    await run(75)
    expect([...world.claims.values()].every(({ phase }) => phase === 'Bound')).toBe(true)
    await run(60)
    expect(world.claims.size).toBe(claims + 1)
    expect([...world.statefulSets.values()].every((one) => world.podsOf(one).size === one.usualReplicas)).toBe(true)
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })

  it('volumeLost: a claim says so, then claim, volume and pod are made anew', async () => {
    const { world, life, sink, run, clock } = await aWorld(demo('prod-east'))
    life.begin(world, 'volumeLost')
    await run(5)
    const [lost] = list(sink, 'persistentvolumeclaims').filter(({ status }) => status.phase === 'Lost')
    expect(sink.objects.has(`persistentvolumes//${lost.spec.volumeName}`)).toBe(false)
    await run(120)
    const again = list(sink, 'persistentvolumeclaims').find(({ metadata }) => metadata.name === lost.metadata.name)
    expect(again.status.phase).toBe('Bound')
    expect(again.metadata.uid).not.toBe(lost.metadata.uid)
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })
})

describe('what a simulated cluster writes', () => {
  let server: ApiServer
  beforeAll(async () => {
    server = await ApiServer.open({ storage: { kind: 'memory' } })
  })
  afterAll(() => server[Symbol.asyncDispose]())

  /** A Job's pods are found by its identity, which a new one gets anew. */
  function asWritten(object: Any): ApiObject {
    const { uid: _, creationTimestamp: __, managedFields: ___, ...metadata } = structuredClone(object.metadata)
    const copy = { ...structuredClone(object), metadata }
    if (object.kind !== 'Job') return copy
    delete copy.spec.selector
    delete copy.spec.template.metadata
    return copy
  }

  it.each(['prod-east', 'staging', 'edge-paris', 'gpu-lab'])(
    '%s: every object is one the API would take, and nothing is missing in it',
    async (name) => {
      const { sink } = await aWorld(demo(name))
      for (const { metadata } of sink.list('namespaces'))
        if (!server.objects.get({ group: '', version: 'v1', plural: 'namespaces' }, { name: metadata.name }))
          await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.name } })
      for (const kind of [...KINDS, 'pods'])
        for (const object of list(sink, kind)) {
          const options = { dryRun: true, fieldValidation: 'Strict' } as const
          const { spec } = await server.objects.create(asWritten(object), options)
          if (object.kind !== 'Job') expect(spec, `${kind} ${object.metadata.name}`).toEqual(object.spec)
        }
    },
  )
})
