import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { parseClusterName, systemClock } from '#model'
import { encodeRequest } from '#wire'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { StreamClient } from '../stream/test/clients.ts'
import { aHub } from '../stream/test/hub.ts'
import { hello, OwnAgent } from '../stream/test/own-agent.ts'
import { RelayDirectoryError } from './errors.ts'
import { someOwners } from './test/owners.ts'
import { batchOf, connect, metricOf, namesOf } from './test/words.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

const west = parseClusterName('west')
const registration = (cluster: string, token = `${cluster}-token`) =>
  encodeRequest({ payload: hello({ cluster, token }) })

describe('the first message of a stream', () => {
  it('that is none of this protocol or no registration is refused, wherever it came', async () => {
    await using fleet = await someOwners()
    for (const { server } of fleet.owners) {
      for (const [bytes, code] of [
        [Uint8Array.of(255, 255, 255), 'malformed'],
        [registration('west').subarray(0, 20), 'malformed'],
        [encodeRequest({ payload: { case: 'health', value: { clusterName: 'west' } } }), 'not_registered'],
      ] as const) {
        await using client = new StreamClient({ address: server.address, token: 'west-token' })
        client.sendBytes(bytes)
        expect((await client.ended()).details).toMatch(new RegExp(`^${code}: `))
      }
    }
  })

  it('that is too large ends its stream alone', async () => {
    await using fleet = await someOwners({ limits: { maxMessageBytes: 2 ** 20 } })
    const front = fleet.otherThan('west')
    await using agent = (await connect(front, 'west')).agent
    await using giant = new StreamClient({ address: front.server.address, token: 'west-token' })
    giant.sendBytes(new Uint8Array(2 ** 21))
    expect((await giant.ended()).code).toBe(8)
    agent.push(batchOf(west, 1))
    await agent.ackedTo(1)
    agent.sendBytes(new Uint8Array(2 ** 21))
    expect((await agent.ended()).code).toBe(8)
    const { agents } = fleet.ownerOf('west').server
    await eventually('its place is free', () => agents.facts('west')?.connected === false)
  })

  it('is waited for a short time, for few who showed nothing or what is not known, and for who is known', async () => {
    await using fleet = await someOwners({ limits: { maxUnnamed: 2, registerMs: 400, sweepMs: 50 } })
    const [front] = fleet.owners
    if (!front) throw new Error('there are two')
    const { address } = front.server
    const open = (token?: string) => new StreamClient({ address, ...(token && { token }) })
    await using nobody = open()
    await using wrong = open('wrong')
    await eventually('both are there', () => front.server.streams === 2)
    await using third = open('wrong-too')
    expect((await third.ended()).details).toBe('unauthenticated: the credential is not accepted')
    await using known = open('west-token')
    await eventually('it is there as well', () => front.server.streams === 3)
    expect(await metricOf(front, 'clusterpulse_agent_streams')).toBe(3)
    await using silent = open('east-token')
    known.send(hello({ cluster: 'west' }))
    await known.next('welcome')
    for (const client of [nobody, wrong, silent]) expect((await client.ended()).code).toBe(16)
    expect((await nobody.ended()).details).toBe('unauthenticated: no registration came in time')
    const { agents } = fleet.ownerOf('west').server
    expect(agents.facts('west')?.connected).toBe(true)
  })

  it('that never comes because the peer finished or left keeps nothing', async () => {
    await using fleet = await someOwners()
    const [front] = fleet.owners
    if (!front) throw new Error('there are two')
    const { address } = front.server
    await using finished = new StreamClient({ address, token: 'west-token' })
    finished.finish()
    expect((await finished.ended()).code).toBe(0)
    const left = new StreamClient({ address, token: 'west-token' })
    await eventually('it is there', () => front.server.streams === 1)
    await left[Symbol.asyncDispose]()
    await eventually('it is gone', () => front.server.streams === 0)
  })

  it('guessed through any door is counted where the cluster is, and few guesses wait there for their answer', async () => {
    // By a clock that stands still nothing is forgiven, however long the test takes.
    const at = Date.now()
    const clock = { now: () => at, sleep: systemClock.sleep }
    await using fleet = await someOwners({ clock, limits: { maxUnnamed: 1 } })
    const [owner, other] = [fleet.ownerOf('west'), fleet.otherThan('west')]
    const guess = async (turn: number) => {
      const { address } = (turn % 2 === 0 ? owner : other).server
      await using client = new StreamClient({ address })
      client.send(hello({ cluster: 'west', token: `guess-${turn}` }))
      const begun = performance.now()
      expect((await client.ended()).details).toBe('unauthenticated: the credential is not accepted')
      return performance.now() - begun
    }
    for (let turn = 0; turn < 10; turn++) await guess(turn)
    const late = guess(11)
    await eventually('its answer waits', () => owner.server.streams === 1)
    // It would wait for two seconds.
    expect(await guess(13)).toBeLessThan(1_900)
    expect(await late).toBeGreaterThan(1_000)
    const refused = (reason: string) => `clusterpulse_agent_refused_total{reason="${reason}"}`
    expect(await metricOf(owner, refused('unauthenticated'))).toBe(11)
    expect(await metricOf(owner, refused('unnamed'))).toBe(1)
    expect(await metricOf(other, refused('unauthenticated'))).toBe(0)
  })
})

describe('an owner that is away', () => {
  it('ends the streams of its clusters with a reason to come back, and serves them when it is back', async () => {
    const [mine = west, theirs = west] = [namesOf(1, 2, 1)[0], namesOf(2, 2, 1)[0]]
    await using fleet = await someOwners({ clusters: [mine, theirs] })
    const [first] = fleet.owners
    if (!first) throw new Error('there are two')
    await using local = (await connect(first, mine)).agent
    const { agent } = await connect(first, theirs)
    agent.push(batchOf(theirs, 1))
    await agent.ackedTo(1)
    const back = fleet.again(2)
    expect(await agent.next('goodbye')).toMatchObject({ code: 'stopping' })
    await agent.ended()
    await back
    const again = (await connect(first, theirs)).agent
    again.push(batchOf(theirs, 1))
    await again.ackedTo(1)
    local.push(batchOf(mine, 1))
    await local.ackedTo(1)
    expect(fleet.owners[1]?.server.agents.facts(theirs)).toMatchObject({ connected: true })
  })

  it('or dies in the middle ends them with UNAVAILABLE, at once, and no others', async () => {
    const [mine = west, theirs = west] = [namesOf(1, 2, 1)[0], namesOf(2, 2, 1)[0]]
    const directory = await mkdtemp(join(tmpdir(), 'relay-'))
    const place = { index: 1, of: 2 }
    await using hub = await aHub({ clusters: [mine], others: { place, directory } })
    hub.credentials.grant(`${theirs}-token`, theirs)
    const { address } = hub.server
    await using local = (await OwnAgent.connect({ address, token: `${mine}-token`, cluster: mine })).agent
    const relayed = () => new StreamClient({ address, token: `${theirs}-token` })
    await using nobodyThere = relayed()
    nobodyThere.send(hello({ cluster: theirs }))
    const sentence = 'unavailable: the process of the hub that has this cluster is being started again'
    expect(await nobodyThere.ended()).toMatchObject({ code: 14, details: sentence })
    // One that takes the stream, and is killed.
    let taken = 0
    const dying = createServer((socket) => {
      socket.on('error', () => undefined) // it is destroyed from here
      socket.on('data', ({ length }) => {
        taken += length
        if (taken > 100) socket.destroy()
      })
    })
    await new Promise<void>((resolve) => dying.listen(join(directory, '2.sock'), resolve))
    await using killed = relayed()
    killed.send(hello({ cluster: theirs }))
    expect(await killed.ended()).toMatchObject({ code: 14, details: sentence })
    local.push(batchOf(mine, 1))
    await local.ackedTo(1)
    expect(await hub.metrics.registry.metrics()).toContain('clusterpulse_agent_ended_total{code="owner_away"} 2')
    await vi.waitFor(() => expect(hub.server.streams).toBe(1), PATIENCE_MS)
    await new Promise((resolve) => dying.close(resolve))
    await rm(directory, { recursive: true, force: true })
  })

  it('or stands still is given up in bounded time, and one that is only quiet is not', async () => {
    const [mine = west, theirs = west] = [namesOf(1, 2, 1)[0], namesOf(2, 2, 1)[0]]
    const limits = { keepaliveMs: 100, keepaliveTimeoutMs: 300, sweepMs: 20 }
    const directory = await mkdtemp(join(tmpdir(), 'relay-'))
    await using hub = await aHub({ clusters: [mine], limits, others: { place: { index: 1, of: 2 }, directory } })
    const { address } = hub.server
    const taken: Socket[] = []
    const still = createServer((socket) => void taken.push(socket.on('error', () => undefined))) // it is given up
    await new Promise<void>((resolve) => still.listen(join(directory, '2.sock'), resolve))
    await using stuck = new StreamClient({ address, token: `${theirs}-token` })
    stuck.send(hello({ cluster: theirs }))
    expect(await stuck.ended()).toMatchObject({ code: 14, details: expect.stringContaining('started again') })
    for (const socket of taken) socket.destroy()
    await new Promise((resolve) => still.close(resolve))
    // The socket's file went with its server: one that lives takes its place.
    await using other = await aHub({ clusters: [theirs], limits, others: { place: { index: 2, of: 2 }, directory } })
    await using agent = (await OwnAgent.connect({ address, token: `${theirs}-token`, cluster: theirs })).agent
    const begun = performance.now()
    await eventually('it was asked several times', () => performance.now() - begun > 1_000)
    agent.push(batchOf(theirs, 1))
    await agent.ackedTo(1)
    expect(other.server.agents.facts(theirs)?.connected).toBe(true)
    await rm(directory, { recursive: true, force: true })
  })
})

describe('stopping', () => {
  it('says goodbye to the streams that came here and to those that belong here, once they have their acks', async () => {
    const [mine = west, theirs = west] = [namesOf(1, 2, 1)[0], namesOf(2, 2, 1)[0]]
    for (const stopped of [0, 1]) {
      await using fleet = await someOwners({ clusters: [mine, theirs] })
      const [first, second] = fleet.owners
      if (!first || !second) throw new Error('there are two')
      const away = await connect(first, theirs)
      const home = await connect(first, mine)
      away.agent.push(batchOf(theirs, 1))
      await away.agent.ackedTo(1)
      const begun = performance.now()
      await fleet.owners[stopped]?.server[Symbol.asyncDispose]()
      expect((performance.now() - begun) / slowness).toBeLessThan(3_000)
      expect(await away.agent.next('goodbye')).toMatchObject({ code: 'stopping' })
      expect((await away.agent.ended()).code).toBe(14)
      if (stopped === 0) expect(await home.agent.next('goodbye')).toMatchObject({ code: 'stopping' })
      else {
        home.agent.push(batchOf(mine, 1))
        await home.agent.ackedTo(1)
      }
      await eventually('nothing is left', () => second.server.streams === 0)
    }
  })

  it('takes bounded time where a peer reads nothing, and all stop at once', async () => {
    const clusters = ['west', 'east', 'north']
    const fleet = await someOwners({ clusters, limits: { goodbyeMs: 200 } })
    const agents = await Promise.all(clusters.map((cluster) => connect(fleet.otherThan(cluster), cluster)))
    agents[0]?.agent.pause()
    const begun = performance.now()
    await fleet[Symbol.asyncDispose]()
    expect((performance.now() - begun) / slowness).toBeLessThan(5_000)
    for (const { agent } of agents.slice(1)) expect(await agent.next('goodbye')).toMatchObject({ code: 'stopping' })
  })
})

describe('the bounds of an owner', () => {
  it('count the streams that came to it and those that came to others for it', async () => {
    const names = namesOf(2, 2, 6)
    await using fleet = await someOwners({ clusters: names, limits: { maxStreams: 3 } })
    const [first, second] = fleet.owners
    if (!first || !second) throw new Error('there are two')
    for (const cluster of names.slice(0, 2)) await connect(first, cluster)
    await connect(second, names[2] ?? '')
    await using busyOwner = new StreamClient({ address: first.server.address, token: `${names[3]}-token` })
    busyOwner.send(hello({ cluster: names[3] ?? '' }))
    const busy = { code: 14, details: 'busy: the hub has as many streams as it may' }
    expect(await busyOwner.ended()).toMatchObject(busy)
    await using waiting = new StreamClient({ address: first.server.address, token: `${names[4]}-token` })
    await eventually('it is there', () => first.server.streams === 3)
    await using busyFront = new StreamClient({ address: first.server.address, token: `${names[5]}-token` })
    expect(await busyFront.ended()).toMatchObject(busy)
    expect(waiting.status).toBeUndefined()
  })
})

describe('the sockets between owners', () => {
  const started = (directory: string, place = { index: 1, of: 2 }) => aHub({ others: { place, directory } })

  it('are refused where others could reach them, or in no directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'relay-'))
    for (const mode of [0o755, 0o710, 0o701]) {
      await chmod(directory, mode)
      await expect(started(directory)).rejects.toThrow(RelayDirectoryError)
    }
    await chmod(directory, 0o700)
    await writeFile(join(directory, 'file'), '', { mode: 0o600 })
    await expect(started(join(directory, 'file'))).rejects.toThrow('it is none')
    await expect(started(join(directory, 'absent'))).rejects.toThrow('cannot be read')
    const long = await mkdtemp(join(directory, 'x'.repeat(100)))
    await expect(started(long)).rejects.toThrow('too long')
    await rm(directory, { recursive: true, force: true })
  })

  it('take the place of what a killed process left, go with the server, and are none where there is one owner', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'relay-'))
    const path = join(directory, '1.sock')
    await writeFile(path, 'left behind')
    const hub = await started(directory)
    expect((await stat(path)).isSocket()).toBe(true)
    const taken = aHub({ port: hub.server.address.port, others: { place: { index: 2, of: 2 }, directory } })
    await expect(taken).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await expect(stat(join(directory, '2.sock'))).rejects.toMatchObject({ code: 'ENOENT' })
    await hub[Symbol.asyncDispose]()
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    await using alone = await started(directory, { index: 1, of: 1 })
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    await using agent = (await OwnAgent.connect({ address: alone.server.address, token: 'west-token' })).agent
    agent.push(batchOf(west, 1))
    await agent.ackedTo(1)
    expect(alone.server.agents.facts('west')).not.toHaveProperty('process')
    await rm(directory, { recursive: true, force: true })
  })
})
