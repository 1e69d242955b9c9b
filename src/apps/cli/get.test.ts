import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ApiProblem, type ClusterView, type ColumnView, type SourceView } from '#http'
import { AUTHORITY_LOST, TWO_AGENTS } from '#model'
import { MemoryRegistries } from '#registry'
import { aMember, SomeMembers } from '../../pipeline/api/test/members.ts'
import { aSource, GivenCatalog } from '../../pipeline/api/test/sources.ts'
import { aNode, aWorld, complete, failed, proxy, start, type World } from '../../pipeline/api/test/world.ts'
import { targetAt } from '../../pipeline/registry/testing/registry-server.ts'
import { apiForm } from './api-form.ts'
import { failureOf } from './failure.ts'
import { type GetOptions, get, watch } from './get.ts'
import { columnsOf } from './get-columns.ts'
import { type KindRow, kindColumns } from './get-kinds.ts'

describe('clusterpulse get, of a hub of several processes', () => {
  let world: World
  let server = ''
  beforeAll(async () => {
    world = await aWorld()
    await world.connect('east', { owner: 'owner-1' })
    await world.connect('west', { owner: 'owner-2', mode: 'push' })
    for (const name of ['east', 'west']) await world.batch(name, [complete('node', [aNode('a')])])
    await world.agent('west', { process: 'owner-2' })
    server = await world.server.start()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const ask = async (over: Partial<GetOptions>) =>
    (await get({ noun: 'clusters', server, names: [], clusters: [], output: 'table', ...over }, start)).text
  /** Cells of a column, by the name in the first. */
  const column = (text: string, header: string) => {
    const [titles = [], ...rows] = text.split('\n').map((line) => line.split(/ {3,}/))
    return Object.fromEntries(rows.map((cells) => [cells[0], cells[titles.indexOf(header)]]))
  }

  it('tells in its wide form where each cluster is and who owns it, and else takes no room for that', async () => {
    const wide = await ask({ output: 'wide' })
    expect(column(wide, 'OWNER')).toEqual({ east: 'owner-1', west: 'owner-2' })
    expect(column(wide, 'ENDPOINT')).toEqual({ east: 'https://west.example:6443', west: 'https://west.example:6443' })
    const narrow = await ask({})
    expect(narrow).not.toMatch(/OWNER|ENDPOINT|owner-/)
    expect(column(narrow, 'MODE')).toEqual({ east: 'pull', west: 'push' })
  })

  it.each(['table', 'wide'] as const)('names the process of every agent in a %s', async (output) => {
    expect(column(await ask({ noun: 'agents', output }), 'PROCESS')).toEqual({ west: 'owner-2' })
  })

  it('gives programs the owner beside the agent', async () => {
    const [json] = JSON.parse(await ask({ noun: 'agents', output: 'json' }))
    expect(json).toMatchObject({ name: 'west', mode: 'push', owner: 'owner-2', agent: { process: 'owner-2' } })
    expect(parse(await ask({ noun: 'agents', output: 'yaml' }))).toEqual([json])
  })

  it('knows no owners where one process has all', async () => {
    await world.connect('east')
    expect(column(await ask({ output: 'wide' }), 'OWNER')).toEqual({ east: '-', west: 'owner-2' })
  })

  it('says of no agent that was never seen that it collects', async () => {
    await world.connect('north', { mode: 'push' })
    const agents = await ask({ noun: 'agents' })
    expect(column(agents, 'AGENT')).toMatchObject({ north: 'never seen' })
    expect(column(agents, 'COLLECTED BY')).toMatchObject({ north: '-' })
  })
})

it('clusterpulse get clusters holds running pods against those that are not completed, as the page does', () => {
  const pods = { total: 62, running: 54, pending: 2, failed: 0, succeeded: 6, unknown: 0 }
  const column = columnsOf('clusters', 0).find(({ header }) => header === 'PODS')
  expect(column?.value({ pods } as ClusterView)).toBe('54/56')
})

it.each([
  ['forbidden', false, null, 'forbidden'],
  ['unreachable', false, null, 'unreachable'],
  ['complete', true, {}, 'hidden'],
  ['complete', false, {}, null],
] as const)(
  'clusterpulse get clusters says why it has no nodes: %s, filtered %s',
  (outcome, filtered, freshness, said) => {
    const column = columnsOf('clusters', 0).find(({ header }) => header === 'NODES')
    const view = { nodes: null, filtered, parts: { node: { outcome, freshness } } }
    expect(column?.value(view as unknown as ClusterView)).toBe(said)
  },
)

it('clusterpulse get tells what an object has none of from what is not known, hidden, or 0', () => {
  const column = (name: string, absence: 'none' | 'unknown', restricted = false) =>
    ({
      name,
      label: name,
      kind: 'number',
      unit: 'none',
      absence,
      restricted,
      refersTo: null,
      extra: false,
    }) as ColumnView
  const columns = [column('size', 'none'), column('used', 'unknown', true), column('later', 'none')]
  const cells = (values: KindRow['values'], filtered: boolean) => {
    const row = { cluster: 'west', namespace: '', name: 'a', values, filtered, observedAt: 0 } as KindRow
    const shown = kindColumns({ columns, scope: 'Cluster' } as unknown as SourceView, 0)
    return shown
      .filter(({ header }) => columns.some(({ label }) => label.toUpperCase() === header))
      .map(({ value }) => value(row))
  }
  expect(cells({ size: null, used: null }, false)).toEqual(['none', null, null])
  expect(cells({ size: null, used: null }, true)).toEqual(['none', 'hidden', null])
  expect(cells({ size: 0, used: 0 }, true)).toEqual(['0', '0', null])
})

it('clusterpulse get events says what happened in the words of the page', () => {
  const column = columnsOf('events', 0).find(({ header }) => header === 'MESSAGE')
  const said = (type: string, data: Record<string, unknown>) => column?.value({ type, cluster: 'east', at: 0, data })
  expect(said('cluster.health', { from: 'healthy', to: 'degraded', message: '1 of 9 nodes not ready' })).toBe(
    'turned degraded, was healthy: 1 of 9 nodes not ready',
  )
  expect(said('collection.lost', { count: 2, cause: 'hub_down', from: 1_000, to: 61_000 })).toBe(
    'lost 2 batches of 1970-01-01T00:00:01.000Z to 1970-01-01T00:01:01.000Z for good: not collected: the hub did not run',
  )
  expect(said('comet.seen', { tail: 2 })).toBe('comet.seen: tail 2')
})

it('clusterpulse get events gives programs the times that are facts of an event in RFC 3339, too', () =>
  expect(apiForm({ at: 90_000, data: { count: 2, from: 1_000, to: 61_000, message: 'x' } })).toEqual({
    at: '1970-01-01T00:01:30.000Z',
    data: { count: 2, from: '1970-01-01T00:00:01.000Z', to: '1970-01-01T00:01:01.000Z', message: 'x' },
  }))

describe('clusterpulse get of a name that two have', () => {
  it('says which built-in kind is called so beside the MetricSource', async () => {
    await using world = await aWorld({}, { catalog: new GivenCatalog(aSource('no')) })
    await world.connect('east')
    await world.batch('east', [complete('node', [aNode('a')])])
    const server = await world.server.start()
    const ask = (kind: string) =>
      get({ noun: { kind }, server, names: [], clusters: [], output: 'table' as const }, start)
    expect((await ask('no')).notes).toContain('no is declared by MetricSource test/no; the built-in kind is nodes')
    expect((await ask('node')).notes).toEqual([])
  })
})

describe('clusterpulse get registries', () => {
  it('tells of what stands on no cluster without one, and refuses to look for it on one', async () => {
    const registries = await MemoryRegistries.open()
    await using world = await aWorld({}, { registries })
    const server = await world.server.start()
    const ask = (more: Partial<GetOptions> = {}) =>
      get({ noun: { kind: 'registry' }, server, names: [], clusters: [], output: 'table', ...more }, start)
    expect(await ask()).toEqual({ text: '', notes: ['no registries that you may see'] })
    for (const name of ['quay', 'harbor']) await registries.declare(targetAt(`https://${name}.example`, { name }))
    const { text, notes } = await ask()
    const lines = text.trimEnd().split('\n')
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['NAME', 'HEALTH', 'ENDPOINT'],
      ['harbor', 'unknown', 'https://harbor.example'],
      ['quay', 'unknown', 'https://quay.example'],
    ])
    expect(notes).toEqual([])
    expect((await ask({ names: ['quay'] })).text).not.toContain('harbor')
    await world.connect('east')
    expect((await ask({ noun: 'types' })).text).toMatch(/^registries +registries +RegistryConnection +- +2 /m)
    expect((await ask({ noun: 'types', clusters: ['east'] })).text).not.toContain('registries')
    await expect(ask({ clusters: ['east'] })).rejects.toThrow('registries stand on no cluster: leave out -c')
    await expect(ask({ namespace: 'shop' })).rejects.toThrow('registries stand in no namespace: leave out -n')
    const [document] = JSON.parse((await ask({ names: ['quay'], output: 'json' })).text) as Record<string, unknown>[]
    expect(document).toMatchObject({ name: 'quay', values: { endpoint: 'https://quay.example', checked_at: null } })
  })
})

describe('clusterpulse get --set', () => {
  it('keeps to the clusters of one set, of whatever is asked for', async () => {
    const members = new SomeMembers([aMember('east', { sets: ['prod'] }), aMember('west', { sets: ['default'] })])
    members.setsBesides(['empty'])
    await using world = await aWorld({}, { members })
    for (const name of ['east', 'west']) {
      await world.connect(name)
      await world.batch(name, [complete('node', [aNode(`n-${name}`)])])
    }
    const server = await world.server.start()
    const names = async (noun: GetOptions['noun'], set: string, clusters: readonly string[] = []) => {
      const { text } = await get({ noun, server, names: [], clusters, set, output: 'json' as const }, start)
      return (JSON.parse(text) as { name: string }[]).map(({ name }) => name)
    }
    expect(await names('clusters', 'prod')).toEqual(['east'])
    expect(await names({ kind: 'nodes' }, 'prod')).toEqual(['n-east'])
    await expect(names('clusters', 'prod', ['west'])).rejects.toThrow('set prod has east: none that -c names')
    await expect(names('clusters', 'empty')).rejects.toThrow('set empty has no cluster')
    await expect(names({ kind: 'nodes' }, 'prud')).rejects.toThrow('there is no set "prud"')
  })

  it('keeps to the members that are in the set, and says what is in none', async () => {
    const asks = aMember('asks', { state: 'not accepted yet', accepted: false, sets: ['prod'] })
    const members = new SomeMembers([
      asks,
      aMember('east', { sets: ['prod'] }),
      aMember('west', { sets: ['non-prod'] }),
    ])
    members.setsBesides(['empty'])
    await using world = await aWorld({}, { members })
    const server = await world.server.start()
    const ask = (kind: string, set: string) =>
      get({ noun: { kind }, server, names: [], clusters: [], set, output: 'table' as const }, start)
    expect((await ask('members', 'prod')).text.match(/^\S+/gm)).toEqual(['NAME', 'asks', 'east'])
    expect(await ask('members', 'empty')).toEqual({ text: '', notes: ['no members in the set empty that you may see'] })
    await expect(ask('members', 'prud')).rejects.toThrow('there is no set "prud"')
    await expect(ask('memberrequests', 'prod')).rejects.toThrow('memberrequests stand on no cluster, and are in no set')
    const byCluster = get({ noun: { kind: 'members' }, server, names: [], clusters: ['east'], output: 'table' }, start)
    await expect(byCluster).rejects.toThrow('leave out -c, or ask for them by name: get members east')
  })
})

describe('clusterpulse get members', () => {
  it('shows in its wide form what they hold as words, and not as JSON', async () => {
    const condition = { reason: 'JoinedByAgent', message: 'it came', since: 1 }
    const members = new SomeMembers([
      aMember('east', {
        claims: { 'rights.clusterpulse.io': 'observe' },
        capacity: { cpu: '8', memory: '32Gi' },
        conditions: [{ type: 'ManagedClusterJoined', status: 'True', ...condition }],
      }),
    ])
    await using world = await aWorld({}, { members })
    const server = await world.server.start()
    const { text } = await get({ noun: { kind: 'members' }, server, names: [], clusters: [], output: 'wide' }, start)
    const [titles = [], cells = []] = text.split('\n').map((line) => line.split(/ {3,}/))
    const cell = (title: string) => cells[titles.indexOf(title)]
    expect(['CLAIMS', 'CAPACITY', 'CONDITIONS', 'ALLOCATABLE'].map(cell)).toEqual([
      'rights.clusterpulse.io=observe',
      'cpu=8,memory=32Gi',
      'ManagedClusterJoined=True',
      'none',
    ])
    expect(text).not.toMatch(/[{["]/)
  })

  it('says once to who watches that nobody judges them any more, and once that somebody does', async () => {
    const members = new SomeMembers([aMember('east')])
    await using world = await aWorld({}, { members })
    const notes: string[] = []
    const out: string[] = []
    const stop = new AbortController()
    const wish = { noun: { kind: 'members' }, names: [], clusters: [], output: 'table' } as const
    const watching = { out: (text: string) => out.push(text), note: (text: string) => notes.push(text) }
    const watched = watch({ ...wish, server: await world.server.start() }, { ...watching, signal: stop.signal })
    await expect.poll(() => out.length).toBe(2)
    members.say({ since: world.clock.at, code: 'members_not_judged', message: 'no manager judges members' })
    await expect
      .poll(() => notes)
      .toEqual([expect.stringMatching(/^members are as of \d{4}-\d\d-\d\dT[\d:]{8}Z: .*no manager judges/)])
    members.set([aMember('east'), aMember('west')])
    await expect.poll(() => out.length).toBe(3)
    expect(notes).toHaveLength(1)
    members.say(undefined)
    await expect.poll(() => notes.slice(1)).toEqual(['what is shown is of now again'])
    stop.abort()
    await watched
  })

  it('says beside the table who is locked out, and of who is asked for by name why it is not served', async () => {
    const lockedOut = (name: string) =>
      aMember(name, { state: 'lost', reason: AUTHORITY_LOST, message: `restore it, or connect ${name}` })
    const denied = {
      state: 'denied',
      accepted: false,
      reason: 'HubClusterAdminDenied',
      message: 'Denied by ann.',
    } as const
    const twice = { reason: TWO_AGENTS, message: 'two agents: stop one' }
    const members = new SomeMembers(
      [...'abcdefg'].map(lockedOut).concat(aMember('out', denied), aMember('well'), aMember('twice', twice)),
    )
    await using world = await aWorld({}, { members })
    const server = await world.server.start()
    const notes = async (...names: readonly string[]) =>
      (await get({ noun: { kind: 'members' }, server, names, clusters: [], output: 'table' }, start)).notes
    expect(await notes()).toEqual(['a, b, c, d, e and 2 more: restore it, or connect a', 'twice: two agents: stop one'])
    expect(await notes('twice')).toEqual(['twice: two agents: stop one'])
    expect(await notes('b', 'out', 'well')).toEqual(['b: restore it, or connect b', 'out: Denied by ann.'])
    expect(await notes('well')).toEqual([])
  })

  it('tells who is one, and who asks to be', async () => {
    const asks = {
      state: 'not accepted yet',
      accepted: false,
      joined: false,
      available: null,
      kubernetesVersion: null,
    } as const
    const members = new SomeMembers([aMember('asks', asks), aMember('east')])
    await using world = await aWorld({}, { members })
    const server = await world.server.start()
    const { text } = await get(
      { noun: { kind: 'member' }, server, names: [], clusters: [], output: 'table' as const },
      start,
    )
    const lines = text.trimEnd().split('\n')
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 5))).toEqual([
      ['NAME', 'STATE', 'ACCEPTED', 'JOINED', 'AVAILABLE'],
      ['asks', 'not accepted yet', 'false', 'false', '-'],
      ['east', 'available', 'true', 'true', 'True'],
    ])
  })
})

describe('clusterpulse get', () => {
  let world: World
  let server = ''
  beforeAll(async () => {
    world = await aWorld()
    await world.connect('east')
    await world.connect('ill')
    await world.connect('dark')
    const day = 86_400_000
    await world.batch('east', [
      complete('node', [
        aNode('a', { createdAt: start - 9 * day }),
        aNode('z-broken', { ready: 'notReady', labels: { createdAt: 'someTeam' } }),
      ]),
      complete('deployment', [
        { name: 'shop/cart', namespace: 'shop', replicas: 2, ready: 2, available: 2, updated: 2 },
        { name: 'shop/pay', namespace: 'shop', replicas: 3, ready: 1, available: 1, updated: 3 },
      ]),
      failed('operator', 'forbidden'),
      failed('clusterOperator', 'absent'),
    ])
    await world.batch('ill', [], { failure: { code: 'cluster_unreachable', message: 'it does not answer' } })
    server = await world.server.start()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const ask = (over: Partial<GetOptions> = {}, now = start + 5_000) =>
    get({ noun: 'clusters', names: [], server, clusters: [], output: 'table', ...over }, now)
  const firsts = (text: string, at = 0) =>
    text
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {3,}/)[at])

  it('prints what needs somebody first', async () => {
    expect(firsts((await ask()).text)[0]).toBe('ill')
    expect(firsts((await ask({ noun: { kind: 'nodes' } })).text, 1)).toEqual(['z-broken', 'a'])
    expect(firsts((await ask({ noun: { kind: 'deployments' } })).text, 2)).toEqual(['pay', 'cart'])
  })

  it('tells the age of a thing from that of what is known of it', async () => {
    const { text } = await ask({ noun: { kind: 'nodes' }, names: ['a'] })
    const [titles = [], cells = []] = text.split('\n').map((line) => line.split(/ {3,}/))
    expect([cells[titles.indexOf('AGE')], cells[titles.indexOf('AS-OF')]]).toEqual(['9d', '5s'])
    expect((await ask()).text).toMatch(/^NAME.* AS-OF /)
  })

  it('takes names, of things as of clusters, and says which are near', async () => {
    expect(firsts((await ask({ names: ['east'] })).text)).toEqual(['east'])
    expect(firsts((await ask({ noun: { kind: 'deployments' }, names: ['pay'] })).text, 2)).toEqual(['pay'])
    await expect(ask({ names: ['eats'] })).rejects.toThrow(/no cluster named eats; did you mean east\?/)
    await expect(ask({ noun: { kind: 'nodes' }, names: ['other'] })).rejects.toThrow(
      /no node named other; there are a, z-broken/,
    )
    await expect(ask({ clusters: ['far'] })).rejects.toThrow(/no cluster named far; there are dark, east, ill/)
  })

  it('gives programs names in snake_case and times in RFC 3339, and leaves what is data as it is', async () => {
    const [node] = JSON.parse((await ask({ noun: { kind: 'nodes' }, output: 'json', names: ['z-broken'] })).text)
    expect(node).toMatchObject({
      cluster: 'east',
      name: 'z-broken',
      labels: { createdAt: 'someTeam' },
      values: { status: 'NotReady', version: 'v1.31.0', created_at: '2026-01-01T00:00:00.000Z', cpu_capacity: 4 },
      observed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    })
    for (const noun of ['clusters', { kind: 'nodes' }, { kind: 'deployments' }, { kind: 'namespaces' }] as const) {
      const text = (await ask({ noun, output: 'json' })).text.replace(/"labels": \{[^}]*\}/g, '')
      expect(text.match(/"[a-z]+[A-Z]\w*":/g)).toBeNull()
      expect(text.match(/: \d{13}\b/g)).toBeNull()
    }
    expect(parse((await ask({ noun: { kind: 'nodes' }, output: 'yaml', names: ['z-broken'] })).text)).toEqual([node])
  })

  it('tells empty, forbidden and absent apart, beside the table', async () => {
    expect(await ask({ noun: 'agents' })).toMatchObject({
      text: '',
      notes: ['no agents in the fleet that you may see'],
    })
    expect((await ask({ noun: { kind: 'operators' } })).notes).toContain(
      'east: operators are forbidden: the test says forbidden',
    )
    expect((await ask({ noun: { kind: 'cluster-operators' }, clusters: ['east'] })).notes).toEqual([
      'no cluster-operators in east that you may see',
      'east: cluster-operators are absent: the test says absent',
    ])
    expect((await ask({ noun: { kind: 'nodes' }, output: 'json', clusters: ['ill'] })).text).toBe('[]')
    for (const noun of ['events', 'types', { kind: 'namespaces' }] as const) await ask({ noun })
  })

  it('watches: a row again when it changed, not when it only aged, and what is gone', async () => {
    const out: string[] = []
    const notes: string[] = []
    const stop = new AbortController()
    const wish = { noun: { kind: 'nodes' }, names: [], server, clusters: ['east'], output: 'table' } as const
    const watched = watch(wish, {
      out: (text) => out.push(text),
      note: (text) => notes.push(text),
      signal: stop.signal,
      everyMs: 20,
    })
    await expect.poll(() => out.length).toBe(3)
    world.clock.at += 40_000
    await world.batch('east', [complete('node', [aNode('a', { ready: 'notReady' })])])
    await expect.poll(() => out.length).toBe(4)
    expect(out[0]).toMatch(/^CLUSTER +NAME +STATUS/)
    expect(out[3]).toMatch(/^east +a +NotReady/)
    await expect.poll(() => notes).toContain('east/z-broken is gone')
    stop.abort()
    await watched
  })
})

describe('a hub that answers and does not hear everything', () => {
  const wish = { names: [], clusters: [], output: 'table' } as const
  const since = '2026-01-02T03:04:05Z'
  const text = (cause: string) =>
    `The hub does not hear everything. ${cause}. Since ${since}. What is shown may be old.`

  it('is told beside whatever is printed, for people and programs, with cause and time', async () => {
    let fault: string | undefined
    const members = new SomeMembers([aMember('east')])
    await using world = await aWorld({}, { members, readiness: { log: () => undefined, agents: () => fault } })
    world.clock.at = Date.parse(since) + 678
    await world.connect('east')
    await world.batch('east', [complete('node', [aNode('a')])])
    const server = await world.server.start()
    const notes = async (over: Partial<GetOptions>) => {
      const got = await get({ noun: 'clusters', server, ...wish, ...over }, world.clock.at)
      expect(got.text).not.toBe('')
      return got.notes
    }
    expect(await notes({})).toEqual([])
    fault = 'port "9443" is taken: end that one'
    const asked: readonly Partial<GetOptions>[] = [
      {},
      { noun: 'events' },
      { noun: { kind: 'members' } },
      { noun: { kind: 'nodes' }, output: 'json' },
      { noun: { kind: 'members' }, output: 'yaml' },
    ]
    expect(await notes({})).toEqual([text('Port "9443" is taken: end that one')])
    world.clock.at += 20_000
    for (const over of asked) expect(await notes(over)).toEqual([text('Port "9443" is taken: end that one')])
    fault = undefined
    expect(await notes({})).toEqual([])
  })

  it('is told once to who watches, and that it hears again', async () => {
    let fault: string | undefined
    await using world = await aWorld({}, { readiness: { log: () => fault } })
    world.clock.at = Date.parse(since)
    fault = 'the disk is full'
    await world.connect('east')
    const notes: string[] = []
    const stop = new AbortController()
    const watched = watch(
      { noun: 'clusters', server: await world.server.start(), ...wish },
      { out: () => undefined, note: (one) => notes.push(one), signal: stop.signal },
    )
    const told = () => notes.filter((one) => one.includes('hear'))
    await expect.poll(told).toEqual([text('The disk is full')])
    fault = undefined
    await expect.poll(told).toEqual([text('The disk is full'), 'the hub hears everything again'])
    fault = 'no space'
    await expect.poll(() => told().at(-1)).toBe(text('No space'))
    stop.abort()
    await watched
  })
})

describe('a failure of a command that asks a hub', () => {
  const told = (server: string) =>
    get({ noun: 'clusters', names: [], server, clusters: [], output: 'table' }).then(
      () => undefined,
      (error: unknown) => failureOf(error),
    )

  it('has a status of its own where no hub answers, and names the way out', async () => {
    const failure = await told('http://127.0.0.1:4')
    expect(failure?.status).toBe(3)
    expect(failure?.text).toMatch(/cannot be reached.*--server/)
  })

  it('says that nobody is signed in', async () => {
    await using world = await aWorld({ identity: proxy })
    const failure = await told(await world.server.start())
    expect(failure?.status).toBe(1)
    expect(failure?.text).toMatch(/^not signed in: .*CLUSTERPULSE_TOKEN/)
  })

  it('knows what is no hub', async () => {
    const other = createServer((_, answer) => void answer.end('hello')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const failure = await told(`http://127.0.0.1:${(other.address() as AddressInfo).port}`)
    other.close()
    expect(failure).toMatchObject({ status: 1, text: expect.stringMatching(/no ClusterPulse hub.*--server/) })
  })

  it('tells a refusal from all of these', () => {
    const problem = new ApiProblem(403, {
      error: 'only for administrators',
      code: 'administrators_only',
      requestId: 'r1',
    })
    expect(failureOf(problem)).toMatchObject({ status: 1, text: expect.stringMatching(/^not allowed: .*request r1/) })
  })
})
