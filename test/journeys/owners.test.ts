import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { KubeObject } from '#kube'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { natsPrograms, startNats, type TestNats } from '../../src/platform/nats/testing/nats-server.ts'
import {
  connections,
  HUB,
  isAlive,
  type ManagerRun,
  OwnedFleet,
  ownerIn,
  policies,
  SLOW_MS,
  sources,
} from '../owned-fleet.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const OF = 3
const [server] = natsPrograms
const names = ['owner-1', 'owner-2', 'owner-3']
const inHub = (name: string) => ({ name, namespace: HUB })

const noHistory = victoriaMissing() !== undefined
const where = noRealApiServer() === undefined ? 'a real Kubernetes API' : 'the embedded API'
const title = `a hub of three owners on ${where}${noHistory ? ', without VictoriaMetrics' : ''}${redisMissing ? ` (not run: ${redisMissing})` : ''}`

/** Six clusters that are pulled and six that push, owned by three processes of a manager that has a standby. */
describe.skipIf(redisMissing !== undefined)(title, () => {
  let fleet: OwnedFleet
  let manager: ManagerRun
  let standby: ManagerRun
  let agent: Running
  let nats: TestNats | undefined
  let env = {}

  beforeAll(async () => {
    fleet = await OwnedFleet.open({ realApi: noRealApiServer() === undefined, withHistory: !noHistory })
    if (server?.missing === undefined && server) nats = await startNats(server)
    if (nats) env = { NATS_URL: nats.url, NATS_PERIOD: '1s', DEFAULT_CLUSTER: fleet.pulled[0] }
    manager = await fleet.manager({ processes: OF, leaderElect: true, env })
    await manager.ready()
    await eventually(
      () => manager.owners(),
      (owners) => owners.size === OF,
      SLOW_MS,
    )
    // It would wait longer and longer for a hub that is not there yet.
    agent = fleet.startAgent()
    standby = await fleet.manager({ processes: OF, leaderElect: true, env })
    fleet.beginPushing()
  })
  afterEach(({ task }) => {
    if (task.result?.state === 'fail')
      process.stderr.write(`the manager at "${task.name}":\n${manager?.run.stderr().slice(-8000)}\n`)
  })
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]()
    await nats?.[Symbol.asyncDispose]()
  })

  it('shows every cluster whole, and says everywhere which process owns it', async () => {
    const clusters = await fleet.whole(OF)
    expect([...new Set(clusters.map(({ owner }) => owner))].sort()).toEqual(names)
    const pushed = await eventually(
      async () => (await fleet.client.clusters({ limit: 1000 })).items.filter(({ mode }) => mode === 'push'),
      (found) => found.every(({ agent: known, source }) => known?.connected && source === 'push'),
      SLOW_MS,
    )
    expect(pushed.map(({ name, agent: known }) => [name, known?.process])).toEqual(
      [...fleet.pushed].sort().map((name) => [name, ownerIn(name, OF)]),
    )

    await fleet.statusesSay(OF)
    const table = await fleet.kubectl(['-n', HUB, 'get', 'clusterconnections', '-o', 'wide'])
    expect(table).toMatch(/MODE +AGENT +NODES .*OWNER/)
    for (const name of fleet.clusters)
      expect(table, name).toMatch(new RegExp(`^${name} .* ${ownerIn(name, OF)}( |$)`, 'm'))

    const told = async (...args: string[]) => {
      const run = clusterpulse(['get', ...args, '--server', fleet.address])
      expect(await run.ended(), run.stderr()).toBe(0)
      return run.stdout()
    }
    const [wide, agents] = [await told('clusters', '-o', 'wide'), await told('agents')]
    expect(wide).toMatch(/ENDPOINT +OWNER/)
    for (const name of fleet.clusters)
      expect(wide, name).toMatch(new RegExp(`^${name} .* ${ownerIn(name, OF)}( |$)`, 'm'))
    expect(agents).toMatch(/PROCESS/)
    for (const name of fleet.pushed)
      expect(agents, name).toMatch(new RegExp(`^${name} +connected .* ${ownerIn(name, OF)} `, 'm'))
  })

  it('serves streams that arrive at another process, and shows all processes in one page of metrics', async () => {
    const sum = async (metric: string) => (await manager.numbers(metric)).reduce((total, { value }) => total + value, 0)
    await eventually(
      () => sum('clusterpulse_agent_streams'),
      (streams) => streams === fleet.pushed.length,
      SLOW_MS,
    )
    // Which process a stream comes to is chance: where each came to its own, some come once more.
    let dialedAt = Date.now()
    await eventually(
      async () => {
        const relayed = await sum('clusterpulse_agent_relayed_streams')
        if (relayed > 0 || Date.now() - dialedAt < 3000) return relayed
        dialedAt = Date.now()
        for (const original of fleet.originals) original.dialAnew()
        return relayed
      },
      (relayed) => relayed > 0,
      SLOW_MS,
    )
    await eventually(
      () => sum('clusterpulse_agent_streams'),
      (streams) => streams === fleet.pushed.length,
      SLOW_MS,
    )
    const streams = await manager.numbers('clusterpulse_agent_streams')
    for (const name of names) {
      const own = streams.find(({ labels }) => labels.includes(`process="${name}"`))
      expect(own?.value, name).toBe(fleet.pushed.filter((cluster) => ownerIn(cluster, OF) === name).length)
    }
    const pids = await manager.owners()
    expect([...pids.keys()].sort()).toEqual(names)
    expect(new Set(pids.values()).size).toBe(OF)
  })

  it.skipIf(server?.missing !== undefined)('publishes each cluster by the process that owns it', async () => {
    const nc = await connect({ servers: `127.0.0.1:${nats?.port}` })
    onTestFinished(() => nc.close())
    const { streams } = await jetstreamManager(nc)
    const [first, ...others] = fleet.pulled
    const wanted = others.flatMap((cluster) => [`cluster.${cluster}.metrics`, `cluster.${cluster}.pods`])
    const kept = await eventually(
      async () => Object.keys((await streams.info('CLUSTER', { subjects_filter: '>' })).state.subjects ?? {}),
      (subjects) => ['cluster.metrics', 'cluster.pods', ...wanted].every((subject) => subjects.includes(subject)),
      SLOW_MS,
    )
    expect(kept).not.toContain(`cluster.${first}.pods`)
    await eventually(
      () => manager.numbers('clusterpulse_nats_published_total'),
      (counts) =>
        names.every((name) => counts.some(({ labels, value }) => labels.includes(`process="${name}"`) && value > 0)),
      SLOW_MS,
    )
  })

  it('collects a MetricSource from clusters of all owners, and leaves nothing of it behind', async () => {
    const seen = [...fleet.pulled, fleet.agentCluster].sort()
    await fleet.kube.create(sources, { metadata: inHub('seen-pods'), spec: podSource })
    const type = await eventually(
      () => fleet.client.type('seenpod').catch(() => undefined),
      (found) => found?.clusters.filter(({ part }) => part.count > 0).length === seen.length,
      SLOW_MS,
    )
    expect(type?.clusters.map(({ cluster }) => cluster).sort()).toEqual(seen)
    expect(new Set(seen.map((name) => ownerIn(name, OF))).size).toBe(OF)
    for (const { cluster, part, aggregations } of type?.clusters ?? []) {
      const { pods } = await fleet.client.cluster(cluster)
      expect([part.count, aggregations?.pods], cluster).toEqual([pods?.total, pods?.total])
    }
    await eventually(
      async () => (await fleet.kube.get(sources, inHub('seen-pods')))?.status as Record<string, unknown> | undefined,
      (status) => status?.phase === 'Active' && status.clustersCollected === seen.length,
      SLOW_MS,
    )

    await fleet.kube.delete(sources, inHub('seen-pods'))
    await eventually(
      async () => (await fleet.client.types()).items.filter(({ type }) => type === 'seenpod'),
      (items) => items.length === 0,
      SLOW_MS,
    )
    await eventually(
      async () => {
        const keys = await fleet.eyes.keys('*seen-pods*')
        for (const name of fleet.clusters) {
          const fields = await fleet.eyes.hkeys(`clusterpulse:cluster:${name}`)
          keys.push(...fields.filter((field) => field.includes('seen-pods')).map((field) => `${name} ${field}`))
        }
        return keys
      },
      (keys) => keys.length === 0,
      SLOW_MS,
    )
  })

  it('shows people what policies grant, whoever owns the clusters', async () => {
    const as = await fleet.apiBehindProxy()
    const seenBy = async (user: string, groups?: string) =>
      (await as(user, groups).clusters({ limit: 1000 })).items.map(({ name }) => name)
    await eventually(
      () => seenBy('root', 'admins'),
      (seen) => seen.length === fleet.clusters.length,
      SLOW_MS,
    )
    expect(await seenBy('alice')).toEqual([])
    await fleet.kube.create(policies, aPolicy('alice', { matchLabels: { team: 'red' } }))
    const red = fleet.pulled.filter((_, i) => i % 2 === 0).sort()
    expect(new Set(red.map((name) => ownerIn(name, OF))).size).toBe(OF)
    const seen = await eventually(
      () => seenBy('alice'),
      (found) => found.length > 0,
      SLOW_MS,
    )
    expect(seen).toEqual(red)
    await expect(as('alice').cluster('pusher-1')).rejects.toMatchObject({ status: 404 })
    expect(await seenBy('bob')).toEqual([])
  })

  it('goes on with the clusters of the others while an owner is down, names it, and has it back with all it had', async () => {
    const pid = (await manager.owners()).get('owner-2') ?? 0
    const others = [...fleet.pushers].filter(([name]) => ownerIn(name, OF) !== 'owner-2').map(([, pusher]) => pusher)
    expect(others).toHaveLength(2)
    expect(await manager.readiness()).toMatchObject({ status: 200 })

    process.kill(pid, 'SIGKILL')
    // Its next one is held where it begins, as long as the others are looked at.
    const next = await eventually(
      async () => (await manager.owners()).get('owner-2'),
      (found) => found !== undefined && found !== pid,
      SLOW_MS,
    )
    process.kill(next ?? 0, 'SIGSTOP')
    try {
      const made = others.map(({ numbers }) => numbers.length)
      await eventually(
        async () => others.map(({ unsafe }, i) => unsafe.filter((number) => number <= (made[i] ?? 0) + 5)),
        (unsafe) =>
          unsafe.every((left, i) => left.length === 0 && (others[i]?.numbers.length ?? 0) > (made[i] ?? 0) + 5),
        SLOW_MS,
      )
      const { text } = await eventually(
        () => manager.readiness(),
        ({ status }) => status === 503,
        SLOW_MS,
      )
      expect(text).toMatch(/owners: owner-2 /)
      expect(text).not.toMatch(/owner-[13]/)
      // Nobody's clusters are gone meanwhile, not even its own.
      expect((await fleet.client.clusters({ limit: 1000 })).total).toBe(fleet.clusters.length)
    } finally {
      process.kill(next ?? 0, 'SIGCONT')
    }
    await manager.ready()
    expect(
      (await manager.numbers('clusterpulse_owner_process_ends_total')).map(({ labels, value }) => [labels, value]),
    ).toEqual([[expect.stringContaining('process="owner-2"'), 1]])
    await fleet.allSafe()
    await fleet.whole(OF)
    const alive = await manager.owners()
    for (const name of names) expect(await isAlive(alive.get(name) ?? 0), name).toBe(true)
  })

  it('writes all of it again when Redis comes back empty', async () => {
    await fleet.redis.kill()
    await fleet.redis.start()
    await eventually(
      () => fleet.eyes.hgetall('clusterpulse:owners'),
      (marks) => marks.count === String(OF) && [1, 2, 3].every((index) => marks[index] !== undefined),
      SLOW_MS,
    )
    expect((await fleet.eyes.smembers('clusterpulse:clusters')).sort()).toEqual(fleet.clusters)
    for (const name of fleet.clusters) expect(await fleet.eyes.exists(`clusterpulse:cluster:${name}`), name).toBe(1)
    await fleet.whole(OF)
  })

  it('forgets a cluster whose connection goes, whoever owns it, and takes one that comes', async () => {
    const [name = ''] = fleet.pulled.filter((cluster) => ownerIn(cluster, OF) === 'owner-3')
    const object = await fleet.kube.get(connections, inHub(name))
    await fleet.kube.delete(connections, inHub(name))
    await eventually(
      async () => (await fleet.client.clusters({ limit: 1000 })).items.map((cluster) => cluster.name),
      (all) => !all.includes(name) && all.length === fleet.clusters.length - 1,
      SLOW_MS,
    )
    await eventually(
      () => fleet.eyes.keys(`*:${name}*`),
      (keys) => keys.length === 0,
      SLOW_MS,
    )
    await fleet.kube.create(connections, { metadata: inHub(name), spec: object?.spec } as KubeObject)
    await fleet.whole(OF)
  })

  it('starts no owner where it does not lead; a killed manager takes its owners along, and the standby goes on', {
    tags: ['long'],
  }, async () => {
    expect(await standby.readiness()).toMatchObject({ status: 200 })
    expect(await standby.owners()).toEqual(new Map())
    const pids = [...(await manager.owners()).values()]
    expect(pids).toHaveLength(OF)
    await manager.run.kill('SIGKILL')
    for (const pid of pids)
      await eventually(
        () => isAlive(pid),
        (alive) => !alive,
        SLOW_MS,
      )
    await eventually(
      () => standby.owners(),
      (owners) => owners.size === OF,
      SLOW_MS,
    )
    manager = standby
    await manager.ready()
    const made = [...fleet.pushers.values()].map(({ numbers }) => numbers.length)
    await eventually(
      async () =>
        [...fleet.pushers.values()].map(({ unsafe }, i) => unsafe.filter((number) => number <= (made[i] ?? 0))),
      (unsafe) => unsafe.every((left) => left.length === 0),
      SLOW_MS,
    )
    await fleet.whole(OF)
  })

  it('lost nothing of all that and kept nothing twice, and ends in order', async () => {
    fleet.stopPushing()
    await fleet.allSafe()
    await fleet.keptOnce()
    const pids = [...(await manager.owners()).values()]
    expect(await manager.run.kill('SIGTERM'), manager.run.stderr().slice(-4000)).toBe(0)
    for (const pid of pids) expect(await isAlive(pid)).toBe(false)
    expect(await agent.kill('SIGTERM'), agent.stderr().slice(-4000)).toBe(0)
  })
})

const podSource = {
  source: { apiVersion: 'v1', kind: 'Pod' },
  fields: [{ name: 'phase', path: '.status.phase' }],
  aggregations: [{ name: 'pods', function: 'count' }],
  collection: { intervalSeconds: 30 },
  rbac: { resourceTypeName: 'seenpod' },
}

const aPolicy = (user: string, selector: object): KubeObject => ({
  metadata: { name: `for-${user}`, namespace: HUB },
  spec: {
    identity: { subjects: { users: [user] }, priority: 100 },
    access: { effect: 'Allow' },
    scope: { clusters: { rules: [{ selector, permissions: { view: true, viewMetrics: true } }] } },
  },
})
