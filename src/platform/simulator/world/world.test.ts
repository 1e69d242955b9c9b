import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { phaseOf } from '../facts.ts'
import { Life } from '../life.ts'
import { TemplateCatalogue } from '../objects/pod-template.ts'
import { scenarios } from '../scenarios.ts'
import { stages } from '../stages.ts'
import { ManualClock } from '../testing/manual-clock.ts'
import { MapSink } from '../testing/map-sink.ts'
import { faultsOf } from '../testing/validity.ts'
import type { ClusterScenario } from '../types.ts'
import { buildWorld } from './build.ts'
import { settle } from './controllers.ts'
import { writeChanges } from './draw.ts'
import { EVENT_TTL_MS } from './events.ts'
import { breakNode, healNode } from './verbs.ts'

const living = scenarios.demo.clusters.filter(({ reachable }) => reachable)

async function aWorld(scenario: ClusterScenario, seed = 1) {
  const clock = new ManualClock()
  const world = buildWorld(scenario, { seed, now: clock.now(), templates: new TemplateCatalogue() })
  const sink = new MapSink()
  await writeChanges(world, sink)
  return { clock, world, sink }
}

describe('a world at its start', () => {
  it.each(living)(
    '$name holds exactly the pods and nodes of its scenario and nothing that contradicts itself',
    async (scenario) => {
      const { world, sink, clock } = await aWorld(scenario)
      expect(sink.list('pods')).toHaveLength(scenario.pods)
      expect(sink.list('nodes')).toHaveLength(scenario.pools.reduce((sum, { count }) => sum + count, 0))
      expect(faultsOf(world, sink, clock.now())).toEqual([])
    },
  )

  it.each(living)('$name mostly runs: few pods wait or fail', async (scenario) => {
    const { world } = await aWorld(scenario)
    const running = [...world.pods.values()].filter((pod) => ['Running', 'Succeeded'].includes(phaseOf(pod))).length
    expect(running / world.pods.size).toBeGreaterThan(0.9)
  })

  it('is the same for the same seed, byte by byte, and another for another seed', async () => {
    const [one, same, other] = await Promise.all([aWorld(living[2]!, 7), aWorld(living[2]!, 7), aWorld(living[2]!, 8)])
    expect(JSON.stringify([...same.sink.objects])).toBe(JSON.stringify([...one.sink.objects]))
    expect(JSON.stringify([...other.sink.objects])).not.toBe(JSON.stringify([...one.sink.objects]))
  })

  it('gives pods of the size real ones have', async () => {
    const { sink } = await aWorld(living[0]!)
    const sizes = sink.list('pods').map((pod) => JSON.stringify(pod).length)
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
    expect(mean).toBeGreaterThan(4000)
    expect(mean).toBeLessThan(6000)
  })

  it('has OpenShift kinds on OpenShift only', async () => {
    const [openshift, plain] = await Promise.all([aWorld(living[0]!), aWorld(living[2]!)])
    expect(openshift.sink.list('clusteroperators').length).toBeGreaterThan(28)
    expect(openshift.sink.list('clusterversions')).toHaveLength(1)
    expect(plain.sink.list('clusteroperators')).toEqual([])
    expect(plain.sink.list('subscriptions')).toHaveLength(5)
    expect(plain.sink.list('clusterserviceversions')).toHaveLength(5)
  })

  it.each([
    [1, 0],
    [1, 1],
    [2, 5],
    [3, 3000],
    [10, 37],
  ])('%d nodes take %d pods', async (nodes, pods) => {
    const { world, sink, clock } = await aWorld(scenarios.plain({ clusters: 1, nodes, pods }).clusters[0]!)
    expect([sink.list('nodes').length, sink.list('pods').length]).toEqual([nodes, pods])
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })
})

describe('a living world', () => {
  const moves = fc.array(
    fc.oneof(
      fc.record({ stage: fc.constantFrom(...Object.keys(stages)) }),
      fc.record({ wait: fc.integer({ min: 1, max: 40_000 }) }),
      fc.record({ steps: fc.integer({ min: 1, max: 60 }) }),
    ),
    { minLength: 1, maxLength: 25 },
  )

  it('stays valid whatever happens in whatever order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(living[1]!, living[2]!, living[3]!),
        fc.nat(1000),
        moves,
        async (scenario, seed, plan) => {
          const { world, sink, clock } = await aWorld(scenario, seed)
          const life = new Life([world], { clock, seed, pace: { ...scenarios.demo.pace!, opening: [] } })
          for (const move of plan) {
            if ('stage' in move) life.begin(world, move.stage)
            else if ('wait' in move) clock.advance(move.wait)
            else for (let step = 0; step < move.steps; step++) life.step()
            life.advance()
            await writeChanges(world, sink)
          }
          expect(faultsOf(world, sink, clock.now())).toEqual([])
          expect(world.pods.size).toBeGreaterThan(scenario.pods * 0.6)
          expect(world.pods.size).toBeLessThan(scenario.pods * 1.5)
        },
      ),
      { numRuns: 25 },
    )
  })

  it('is the same after an hour, however often one looked', { tags: ['long'] }, async () => {
    const runs = await Promise.all(
      [1000, 7000].map(async (stride) => {
        const { world, sink, clock } = await aWorld(living[2]!, 3)
        const life = new Life([world], { clock, seed: 3, pace: { ...scenarios.demo.pace!, opening: [] } })
        for (let at = 0; at < 63 * 60_000; at += stride) {
          clock.advance(stride)
          life.advance()
          if (at % 21_000 === 0) await writeChanges(world, sink)
        }
        await writeChanges(world, sink)
        return {
          text: JSON.stringify([...sink.objects].sort(([a], [b]) => (a < b ? -1 : 1))),
          faults: faultsOf(world, sink, clock.now()),
        }
      }),
    )
    expect(runs[0]!.faults).toEqual([])
    expect(runs[0]!.text === runs[1]!.text).toBe(true)
  })

  it('shows something within 15 seconds and at least every 20 seconds after', async () => {
    const clock = new ManualClock()
    const templates = new TemplateCatalogue()
    const worlds = living.map((scenario) => buildWorld(scenario, { seed: 1, now: clock.now(), templates }))
    const life = new Life(worlds, { clock, seed: 1, pace: scenarios.demo.pace })
    for (const world of worlds) world.takeChanges()
    let quiet = 0
    let longest = 0
    for (let second = 0; second < 1800; second++) {
      clock.advance(1000)
      life.advance()
      const changes = worlds.flatMap((world) => world.takeChanges())
      quiet = changes.some(({ resource }) => resource !== 'nodes') ? 0 : quiet + 1
      longest = Math.max(longest, quiet)
    }
    expect(longest).toBeLessThan(15)
  })

  it('keeps its size over six hours: nothing piles up, nothing stays broken', { tags: ['long'] }, () => {
    const clock = new ManualClock()
    const templates = new TemplateCatalogue()
    const worlds = living.map((scenario) => buildWorld(scenario, { seed: 2, now: clock.now(), templates }))
    const life = new Life(worlds, { clock, seed: 2, pace: scenarios.demo.pace })
    for (let minute = 0; minute < 360; minute++) {
      clock.advance(60_000)
      life.advance()
      for (const world of worlds) world.takeChanges()
    }
    for (const { scenario, pods, nodes, operators } of worlds) {
      expect(pods.size / scenario.pods, scenario.name).toBeGreaterThan(0.85)
      expect(pods.size / scenario.pods, scenario.name).toBeLessThan(1.2)
      expect([...nodes.values()].filter(({ state }) => state !== 'ready').length).toBeLessThanOrEqual(1)
      expect([...operators.values()].filter(({ phase }) => phase !== 'Succeeded').length).toBeLessThanOrEqual(1)
      const ill = [...pods.values()].filter((pod) => !['Running', 'Succeeded'].includes(phaseOf(pod)))
      expect(ill.length / pods.size, scenario.name).toBeLessThan(0.15)
    }
  })

  it('goes on from now, without catching up, after a long sleep of the machine', async () => {
    const { world, clock } = await aWorld(living[2]!)
    const life = new Life([world], { clock, seed: 1, pace: scenarios.demo.pace })
    clock.advance(24 * 3_600_000)
    life.advance()
    expect(life.nextAt! - clock.now()).toBeGreaterThan(-1)
    expect(life.nextAt! - clock.now()).toBeLessThanOrEqual(1000)
  })
})

describe('single stages', () => {
  async function play(scenario: ClusterScenario, stage: string) {
    const { world, clock } = await aWorld(scenario)
    const life = new Life([world], { clock, seed: 1, pace: undefined })
    expect(life.begin(world, stage)).toBe(true)
    const run = (ms: number) => {
      for (let at = 0; at < ms; at += 1000) {
        clock.advance(1000)
        life.advance()
      }
    }
    return { world, run }
  }

  it('nodeLost: the node goes, its pods move, and all is well again within two minutes', async () => {
    const { world, run } = await play(living[1]!, 'nodeLost')
    run(3000)
    const lost = [...world.nodes.values()].filter(({ state }) => state === 'lost')
    expect(lost).toHaveLength(1)
    expect([...world.podsOn(lost[0]!.name)].some((pod) => phaseOf(pod) === 'Unknown')).toBe(true)
    run(120_000)
    expect([...world.nodes.values()].every(({ state }) => state === 'ready')).toBe(true)
    expect([...world.pods.values()].some((pod) => phaseOf(pod) === 'Unknown')).toBe(false)
  })

  it('deploymentRollout: every pod of the deployment is of the new revision in the end, and most were ready throughout', async () => {
    const { world, run } = await play(living[0]!, 'deploymentRollout')
    run(1000)
    const workload = [...world.unsettled].find(({ kind }) => kind === 'Deployment')!
    let fewest = Number.POSITIVE_INFINITY
    for (let second = 0; second < 300; second++) {
      run(1000)
      fewest = Math.min(fewest, [...world.podsOf(workload)].filter(({ state }) => state === 'running').length)
    }
    const pods = [...world.podsOf(workload)]
    expect(pods.every(({ revision }) => revision === workload.revision)).toBe(true)
    expect(pods).toHaveLength(workload.replicas)
    expect(fewest).toBeGreaterThanOrEqual(Math.floor(workload.replicas * 0.5))
  })

  it('nodeMaintenance: the node is cordoned, emptied of what can move, and taken back', async () => {
    const { world, run } = await play(living[1]!, 'nodeMaintenance')
    run(2000)
    const node = [...world.nodes.values()].find(({ cordoned }) => cordoned)!
    run(50_000)
    expect(
      [...world.podsOn(node.name)].filter(
        ({ workload, state }) => workload.kind === 'Deployment' && state === 'running',
      ),
    ).toEqual([])
    run(120_000)
    expect(node.cordoned).toBe(false)
  })

  it('clusterUpdate: ends with every operator at the new version and a further update on offer', async () => {
    const { world, run } = await play(living[0]!, 'clusterUpdate')
    const before = world.version!.history[0]!.version
    run(20_000)
    expect(world.version!.progress).toBeGreaterThan(0)
    run(120_000)
    expect(world.version!.progress).toBeUndefined()
    const after = world.version!.history[0]!
    expect(after).toMatchObject({ state: 'Completed' })
    expect(after.version).not.toBe(before)
    expect(new Set([...world.clusterOperators.values()].map(({ version }) => version))).toEqual(
      new Set([after.version]),
    )
    expect(world.version!.updates.length).toBeGreaterThan(0)
  })

  it.each(['operatorFails', 'clusterOperatorDegrades', 'crashLoop', 'nodeFailing', 'scaleBurst'])(
    '%s: something changes, and is well again in the end',
    async (stage) => {
      const { world, run } = await play(living[0]!, stage)
      const calm = () => ({
        nodes: [...world.nodes.values()].filter(({ state }) => state !== 'ready').length,
        degraded: [...world.clusterOperators.values()].filter(({ degraded }) => degraded).length,
        failing: [...world.operators.values()].filter(({ phase }) => phase !== 'Succeeded').length,
        restarts: [...world.pods.values()].reduce((sum, { restarts }) => sum + restarts, 0),
        wanted: world.workloads.reduce((sum, { replicas }) => sum + replicas, 0),
      })
      const before = calm()
      run(3000)
      const during = calm()
      expect(during).not.toEqual(before)
      run(200_000)
      expect({ ...calm(), restarts: 0 }).toEqual({ ...before, restarts: 0 })
    },
  )
})

describe('events of a world', () => {
  it('tell of what is there, or was, in the order it happened, and make room for newer ones', async () => {
    const { clock, world, sink } = await aWorld(living[0]!)
    const life = new Life([world], { clock, seed: 3, pace: { churnMs: 2000, happeningMs: [2000, 6000], opening: [] } })
    const pods = new Set<string>()
    for (let step = 0; step < 400; step++) {
      for (const { name } of world.pods.values()) pods.add(name)
      clock.advance(2000)
      life.advance()
    }
    await writeChanges(world, sink)
    interface Written {
      readonly metadata: { readonly namespace: string }
      readonly involvedObject: { readonly kind: string; readonly name: string; readonly namespace?: string }
      readonly firstTimestamp: string
      readonly lastTimestamp: string
      readonly reason: string
    }
    const events = sink.list('events') as unknown as Written[]
    expect(events.length).toBe(world.events.size)
    expect(events.length).toBeLessThanOrEqual(1000)
    for (const { metadata, involvedObject, firstTimestamp, lastTimestamp } of events) {
      const { kind, name, namespace = 'default' } = involvedObject
      expect(metadata.namespace).toBe(namespace)
      expect(Date.parse(firstTimestamp)).toBeLessThanOrEqual(Date.parse(lastTimestamp))
      expect(Date.parse(lastTimestamp)).toBeLessThanOrEqual(clock.now())
      if (kind === 'Node') expect(world.nodes.has(name)).toBe(true)
      if (kind === 'Pod') expect(pods.has(name) || [...world.pods.values()].some((pod) => pod.name === name)).toBe(true)
    }
    const reasons = new Set(events.map(({ reason }) => reason))
    for (const reason of ['Scheduled', 'Started', 'Killing', 'SuccessfulCreate', 'BackOff', 'ScalingReplicaSet'])
      expect(reasons).toContain(reason)
    expect(faultsOf(world, sink, clock.now())).toEqual([])
  })

  it('are said again, not anew, and are over after an hour', async () => {
    const { clock, world } = await aWorld(living[2]!)
    const [node] = world.nodes.keys()
    const about = () =>
      [...world.events.values()].filter(({ about: { kind, name } }) => kind === 'Node' && name === node)
    for (let times = 0; times < 3; times++) {
      breakNode(world, node!, clock.now(), 'failing')
      healNode(world, node!, clock.now())
    }
    expect(about().map(({ reason, count }) => [reason, count])).toEqual([
      ['NodeNotReady', 3],
      ['NodeReady', 3],
    ])
    settle(world, clock.now() + EVENT_TTL_MS + 1)
    expect(about()).toEqual([])
  })
})
