import workers from 'node:cluster'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { ChannelCredentials } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Batch, type ClusterName, parseClusterName } from '#model'
import { originalFromBatch } from '#wire'
import { aBatch, aNode, complete } from '../../state/test/fleet-words.ts'
import { TestAuthority } from '../stream/test/certificates.ts'
import { type Payload, StreamClient } from '../stream/test/clients.ts'
import { hello, OwnAgent } from '../stream/test/own-agent.ts'
import { aFrontedHub, frontProgram, type TestFronts } from './test/fleet.ts'

let program: Awaited<ReturnType<typeof frontProgram>>
beforeAll(async () => {
  program = await frontProgram()
})
afterAll(() => program[Symbol.asyncDispose]())

const named = (count: number) => Array.from({ length: count }, (_, i) => `c${i}`)
const batchOf = (cluster: ClusterName, sequence: number, origin: string): Batch =>
  aBatch(cluster, sequence, [complete('node', aNode(`n${sequence}`), aNode('always'))], { source: 'push', origin })

const originalBatch = (id: string): Payload => {
  const batch = aBatch(parseClusterName('west'), 1, [complete('node', aNode('n1'))])
  const value = { ...originalFromBatch(batch), batchId: id, collectedAt: timestampFromMs(Date.now()) }
  return { case: 'metrics', value }
}

const connect = ({ fronts }: TestFronts, cluster: string, origin = `buffer-of-${cluster}`) =>
  OwnAgent.connect({ address: fronts.address, token: `${cluster}-token`, cluster, origin })

async function streamsOf({ metrics }: TestFronts): Promise<Record<string, number>> {
  const metric = await metrics.registry.getSingleMetric('clusterpulse_agent_streams')?.get()
  return Object.fromEntries(metric?.values.map(({ labels, value }) => [String(labels.process), value]) ?? [])
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('agents received by two processes', () => {
  it('are spread over both, each batch is taken once, and the owner knows them all', async () => {
    const clusters = named(40)
    await using hub = await aFrontedHub(program.path, { clusters })
    const agents = await Promise.all(clusters.map((cluster) => connect(hub, cluster)))
    await Promise.all(
      agents.map(async ({ agent }, i) => {
        const cluster = parseClusterName(clusters[i] ?? '')
        agent.push(batchOf(cluster, 1, `buffer-of-${cluster}`))
        await agent.ackedTo(1)
        for (let sequence = 2; sequence <= 5; sequence++)
          agent.push(batchOf(cluster, sequence, `buffer-of-${cluster}`), sequence === 2 ? { base: 1 } : {})
        await agent.ackedTo(5)
        agent.push(batchOf(cluster, 3, `buffer-of-${cluster}`))
        await agent.next('ack')
      }),
    )
    expect(new Set(hub.taken).size).toBe(200)
    expect(hub.taken).toHaveLength(200)
    for (const cluster of clusters) {
      expect(hub.hub.ingester.received(parseClusterName(cluster), `buffer-of-${cluster}`)).toEqual([[1, 5]])
      expect(hub.fronts.agents.facts(cluster)).toMatchObject({ connected: true, method: 'token' })
      expect([...hub.fronts.processes.keys()]).toContain(hub.fronts.agents.facts(cluster)?.process)
      expect(hub.fronts.agents.isDelivering(cluster)).toBe(true)
    }
    const streams = await vi.waitFor(async () => {
      const found = await streamsOf(hub)
      expect((found['stream-1'] ?? 0) + (found['stream-2'] ?? 0)).toBe(40)
      return found
    }, 5_000)
    expect(Math.min(...Object.values(streams))).toBeGreaterThan(0)
    const text = await hub.metrics.registry.metrics()
    expect(text).toMatch(/clusterpulse_ingest_process_info\{process="stream-2",pid="\d+"\} 1/)
    expect(text).toMatch(/clusterpulse_agent_messages_total\{what="frame",process="stream-1"\} \d+/)
    await Promise.all(agents.map(({ agent }) => agent[Symbol.asyncDispose]()))
    await vi.waitFor(() => expect(hub.fronts.agents.facts('c0')?.connected).toBe(false), 5_000)
    expect(hub.fronts.agents.isDelivering('c0')).toBe(false)
  })

  it('have one place per cluster: the newest stream wins, whichever process has it', async () => {
    await using hub = await aFrontedHub(program.path)
    const west = parseClusterName('west')
    let epoch = 0
    let { agent: before } = await connect(hub, 'west', 'buffer-0')
    for (let i = 1; i <= 4; i++) {
      const { agent, welcome } = await connect(hub, 'west', 'buffer-0')
      expect(welcome.epoch).toBeGreaterThan(epoch)
      epoch = welcome.epoch
      expect(await before.next('goodbye')).toMatchObject({ code: 'replaced' })
      await before.ended()
      agent.push(batchOf(west, i, 'buffer-0'))
      await agent.ackedTo(i)
      expect(hub.fronts.agents.facts('west')).toMatchObject({ connected: true, epoch })
      before = agent
    }
    hub.fronts.agents.disconnect('west', 'not_connected', 'the connection was removed')
    expect(await before.next('goodbye')).toMatchObject({ code: 'not_connected' })
  })

  it('end within five seconds when their credential is revoked, and no others', async () => {
    await using hub = await aFrontedHub(program.path, { clusters: ['west', 'east', 'north', 'south'] })
    const agents = await Promise.all(['west', 'east', 'north', 'south'].map((cluster) => connect(hub, cluster)))
    const before = performance.now()
    hub.hub.credentials.refuse('west-token', 'revoked')
    hub.hub.credentials.refuse('east-token', 'revoked')
    for (const { agent } of agents.slice(0, 2)) {
      expect(await agent.next('goodbye')).toMatchObject({ code: 'revoked' })
      await agent.ended()
    }
    expect(performance.now() - before).toBeLessThan(5_000)
    await using again = new StreamClient({ address: hub.fronts.address, token: 'west-token' })
    again.send(hello({ cluster: 'west' }))
    expect((await again.ended()).code).toBe(16)
    const [, , north] = agents
    north?.agent.push(batchOf(parseClusterName('north'), 1, 'buffer-of-north'))
    await north?.agent.ackedTo(1)
  })

  it('are told a changed plan, and may show their token in the registration', async () => {
    await using hub = await aFrontedHub(program.path)
    const plan = { version: '1', intervalMs: 30_000, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [] }
    hub.hub.plans.set(parseClusterName('west'), plan)
    await using agent = new StreamClient({ address: hub.fronts.address })
    agent.send(hello({ cluster: 'west', token: 'west-token' }))
    expect(await agent.next('plan')).toMatchObject({ version: '1' })
    hub.hub.plans.set(parseClusterName('west'), { ...plan, version: '2' })
    expect(await agent.next('plan')).toMatchObject({ version: '2' })
    await using wrong = new StreamClient({ address: hub.fronts.address })
    wrong.send(hello({ cluster: 'west', token: 'nobody' }))
    expect((await wrong.ended()).code).toBe(16)
    await using other = new StreamClient({ address: hub.fronts.address, token: 'east-token' })
    other.send(hello({ cluster: 'west' }))
    expect((await other.ended()).code).toBe(7)
    // Whoever may not have the place does not take it.
    expect(hub.fronts.agents.facts('west')).toMatchObject({ connected: true })
  })
})

describe('collectors of the original, received by two processes', () => {
  it('are numbered in one row, whichever process they come to', async () => {
    await using hub = await aFrontedHub(program.path)
    const ids = Array.from({ length: 6 }, (_, i) => `batch-${i}`)
    for (const batchId of ids) {
      await using collector = new StreamClient({ address: hub.fronts.address, token: 'west-token' })
      collector.send({ case: 'register', value: { clusterName: 'west', token: '', version: 'v0.9' } })
      // Each of them sends the last one again: its ack may have been lost.
      for (const id of [...ids.slice(0, ids.indexOf(batchId)).slice(-1), batchId]) {
        collector.send(originalBatch(id))
        expect(await collector.next('ack')).toMatchObject({ batchId: id, success: true })
      }
    }
    expect(hub.taken).toEqual(ids.map((_, i) => `west/original/${i + 1}`))
  })
})

describe('TLS', () => {
  it('ends in the other processes: a client certificate names its cluster there', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'fronts-'))
    const authority = await TestAuthority.make('test')
    const server = await authority.sign('hub', 'server')
    const files = {
      certFile: join(directory, 'crt'),
      keyFile: join(directory, 'key'),
      clientCaFile: join(directory, 'ca'),
    }
    await writeFile(files.certFile, server.cert)
    await writeFile(files.keyFile, server.key)
    await writeFile(files.clientCaFile, authority.pem)
    await using hub = await aFrontedHub(program.path, { tls: files })
    hub.hub.credentials.grant('west', 'west', 'certificate')
    const client = await authority.sign('west', 'client')
    const [ca, key, cert] = [authority.pem, client.key, client.cert].map((text) => Buffer.from(text))
    const credentials = ChannelCredentials.createSsl(ca, key, cert)
    for (let sequence = 1; sequence <= 4; sequence++) {
      const { agent } = await OwnAgent.connect({ address: hub.fronts.address, credentials })
      agent.push(batchOf(parseClusterName('west'), sequence, 'buffer-1'))
      await agent.ackedTo(sequence)
      expect(hub.fronts.agents.facts('west')).toMatchObject({ tls: true, method: 'certificate' })
      await agent[Symbol.asyncDispose]()
    }
    await rm(directory, { recursive: true, force: true })
  })
})

describe('kill -9 of a process that owns streams', () => {
  it('loses nothing that was acknowledged, takes nothing twice, and another one serves its agents', async () => {
    const clusters = named(12)
    await using hub = await aFrontedHub(program.path, { clusters })
    const LAST = 60
    const acknowledged = new Set<string>()
    const pids = [...hub.fronts.processes.values()]
    const over = new AbortController()
    const run = async (name: string) => {
      const cluster = parseClusterName(name)
      const origin = `buffer-of-${name}`
      let next = 1
      while (next <= LAST && !over.signal.aborted) {
        const agent = new OwnAgent({ address: hub.fronts.address, token: `${name}-token` })
        // A connection on its way into the process that dies is nobody's: agents wait so long for an answer, and not longer.
        const patience = setTimeout(() => void agent[Symbol.asyncDispose](), 3_000)
        try {
          agent.send(hello({ cluster: name, origin }))
          await agent.next('welcome')
          clearTimeout(patience)
          for (const first = next; next <= LAST; next++) {
            agent.push(batchOf(cluster, next, origin), next > first && next % 3 === 0 ? { base: next - 1 } : {})
            await agent.ackedTo(next)
            acknowledged.add(`${name}/${origin}/${next}`)
            if (acknowledged.size === 200) process.kill(pids[0] ?? 0, 'SIGKILL') // in the middle of the load
          }
        } catch (error) {
          if (!String(error).includes('the stream ended')) throw error
        } finally {
          clearTimeout(patience)
          await agent[Symbol.asyncDispose]()
        }
      }
    }
    await Promise.all(clusters.map(run)).finally(() => over.abort())
    expect(acknowledged.size).toBe(clusters.length * LAST)
    expect(new Set(hub.taken)).toEqual(acknowledged)
    expect(hub.taken).toHaveLength(acknowledged.size)
    await vi.waitFor(() => {
      expect(hub.fronts.processes.size).toBe(2)
      expect([...hub.fronts.processes.values()]).not.toContain(pids[0])
    }, 10_000)
    expect(isAlive(pids[0] ?? 0)).toBe(false)
  })
})

describe('stopping', () => {
  it('says goodbye to every agent and leaves no process behind', async () => {
    const hub = await aFrontedHub(program.path)
    const { agent } = await connect(hub, 'west')
    const pids = [...hub.fronts.processes.values()]
    expect(pids.filter(isAlive)).toHaveLength(2)
    await hub.fronts[Symbol.asyncDispose]()
    expect(await agent.next('goodbye')).toMatchObject({ code: 'stopping' })
    expect(pids.filter(isAlive)).toEqual([])
    await hub[Symbol.asyncDispose]()
  })

  it('refuses to start where the port is taken, and leaves no process behind', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    await expect(aFrontedHub(program.path, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await vi.waitFor(() => expect(Object.keys(workers.workers ?? {})).toEqual([]))
    taken.close()
  })
})
