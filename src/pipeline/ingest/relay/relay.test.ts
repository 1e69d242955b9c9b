import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { ChannelCredentials } from '@grpc/grpc-js'
import { describe, expect, it, vi } from 'vitest'
import { parseClusterName } from '#model'
import { originalFromBatch } from '#wire'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { TestAuthority } from '../stream/test/certificates.ts'
import { type Payload, StreamClient } from '../stream/test/clients.ts'
import { hello, OwnAgent } from '../stream/test/own-agent.ts'
import { someOwners } from './test/owners.ts'
import { batchOf, connect, metricOf, refusalOf } from './test/words.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

const west = parseClusterName('west')

const originalBatch = (batchId: string): Payload => ({
  case: 'metrics',
  value: { ...originalFromBatch(batchOf(west, 1)), batchId, collectedAt: timestampFromMs(Date.now()) },
})

describe('a stream that came to another owner', () => {
  it('is served by the owner of its cluster: welcome, acks, differences, facts', async () => {
    await using fleet = await someOwners()
    const { agent, welcome } = await connect(fleet.otherThan('west'), 'west')
    await using _agent = agent
    expect(welcome.received).toEqual([])
    agent.push(batchOf(west, 1))
    await agent.ackedTo(1)
    for (let sequence = 2; sequence <= 9; sequence++) {
      agent.push(batchOf(west, sequence), { base: sequence - 1 })
      await agent.ackedTo(sequence)
    }
    const [owner, other] = [fleet.ownerOf('west'), fleet.otherThan('west')]
    expect(owner.ingester.received(west, 'buffer-of-west')).toEqual([[1, 9]])
    expect(other.ingester.received(west, 'buffer-of-west')).toEqual([])
    expect(owner.server.agents.isDelivering('west')).toBe(true)
    const { index } = owner.place
    expect(owner.server.agents.facts('west')).toMatchObject({ connected: true, process: `owner-${index}` })
    await owner.ingester.flushed()
    expect(owner.state.cluster('west')?.agent).toMatchObject({ connected: true, process: `owner-${index}` })
    expect(await metricOf(owner, 'clusterpulse_agent_streams')).toBe(1)
    expect(await metricOf(owner, 'clusterpulse_agent_relayed_streams')).toBe(0)
    expect(await metricOf(other, 'clusterpulse_agent_streams')).toBe(0)
    expect(await metricOf(other, 'clusterpulse_agent_relayed_streams')).toBe(1)
    await agent[Symbol.asyncDispose]()
    await eventually('the owner knows that it went', () => owner.server.agents.facts('west')?.connected === false)
    await vi.waitFor(() => expect(other.server.streams).toBe(0), PATIENCE_MS)
  })

  it('declares its losses, and hears on the next stream what is safe, whichever door it takes', async () => {
    await using fleet = await someOwners()
    for (let turn = 0; turn < 4; turn++) {
      const { agent, welcome } = await connect(fleet.owners[turn % 2] ?? fleet.otherThan('west'), 'west')
      const [first, last] = [turn * 2 + 1, turn * 2 + 2]
      expect(welcome.received).toMatchObject(
        turn === 0
          ? []
          : [
              { first: 1, last: first - 1 },
              { first: 1_000, last: 999 + turn },
            ],
      )
      agent.push(batchOf(west, first))
      await agent.ackedTo(first)
      const lost = [{ first: 1_000 + turn, last: 1_000 + turn }]
      const [fromMs, toMs] = [Date.now() - 2_000, Date.now() - 1_000]
      agent.send({ case: 'loss', value: { sequence: last, lost, fromMs, toMs, cause: 'dropped', count: 1 } })
      expect(await agent.next('ack')).toMatchObject({ success: true, received: [{ first: last, last }] })
      await agent[Symbol.asyncDispose]()
    }
    const received = fleet.ownerOf('west').ingester.received(west, 'buffer-of-west')
    expect(received[0]).toEqual([1, 8])
  })

  it('is refused as it would be at home: no credential, a wrong one, that of another cluster, no such cluster', async () => {
    await using fleet = await someOwners()
    fleet.credentials.grant('ghost-token', 'ghost')
    await using holder = (await connect(fleet.otherThan('west'), 'west')).agent
    for (const [token, inRegistration, cluster, code] of [
      [undefined, undefined, 'west', 'unauthenticated'],
      [undefined, 'nobody', 'west', 'unauthenticated'],
      ['nobody', 'west-token', 'west', 'unauthenticated'],
      ['east-token', undefined, 'west', 'wrong_cluster'],
      [undefined, 'east-token', 'west', 'wrong_cluster'],
      ['ghost-token', undefined, 'ghost', 'not_connected'],
    ] as const) {
      const answers = []
      for (const { server } of fleet.owners) {
        await using client = new StreamClient({ address: server.address, ...(token && { token }) })
        answers.push(await refusalOf(client, cluster, inRegistration))
      }
      expect(answers[0]).toMatchObject({ code })
      expect(answers[1]).toEqual(answers[0])
    }
    // Whoever may not have the place did not take it.
    holder.push(batchOf(west, 1))
    await holder.ackedTo(1)
  })

  it('may show its token in the registration, and is told every changed plan', async () => {
    await using fleet = await someOwners()
    const plan = { version: '1', intervalMs: 30_000, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [] }
    fleet.plans.set(west, plan)
    await using agent = new StreamClient({ address: fleet.otherThan('west').server.address })
    agent.send(hello({ cluster: 'west', token: 'west-token' }))
    expect(await agent.next('plan')).toMatchObject({ version: '1' })
    fleet.plans.set(west, { ...plan, version: '2' })
    expect(await agent.next('plan')).toMatchObject({ version: '2' })
  })

  it('gives its place to a newer one, whichever doors the two took, and is told; so does who is asked to go', async () => {
    await using fleet = await someOwners({ of: 3 })
    let epoch = 0
    let { agent: before } = await connect(fleet.otherThan('west'), 'west', 'buffer-0')
    for (let i = 1; i <= 6; i++) {
      const { agent, welcome } = await connect(fleet.owners[i % 3] ?? fleet.ownerOf('west'), 'west', 'buffer-0')
      expect(welcome.epoch).toBeGreaterThan(epoch)
      epoch = welcome.epoch
      expect(await before.next('goodbye')).toMatchObject({ code: 'replaced' })
      expect((await before.ended()).code).toBe(10)
      agent.push(batchOf(west, i))
      await agent.ackedTo(i)
      expect(fleet.ownerOf('west').server.agents.facts('west')).toMatchObject({ connected: true, epoch })
      before = agent
    }
    fleet.ownerOf('west').server.agents.disconnect('west', 'not_connected', 'the connection was removed')
    expect(await before.next('goodbye')).toMatchObject({ code: 'not_connected' })
    await before.ended()
    await vi.waitFor(() => expect(fleet.owners.map(({ server }) => server.streams)).toEqual([0, 0, 0]), PATIENCE_MS)
  })

  it('ends within five seconds when its credential is revoked, and no other does', async () => {
    const clusters = ['west', 'east', 'north', 'south']
    await using fleet = await someOwners({ clusters })
    const agents = await Promise.all(clusters.map((cluster) => connect(fleet.otherThan(cluster), cluster)))
    const before = performance.now()
    fleet.credentials.refuse('west-token', 'revoked')
    fleet.credentials.refuse('east-token', 'revoked')
    for (const { agent } of agents.slice(0, 2)) {
      expect(await agent.next('goodbye')).toMatchObject({ code: 'revoked' })
      expect((await agent.ended()).code).toBe(16)
    }
    expect((performance.now() - before) / slowness).toBeLessThan(5_000)
    for (const { server } of fleet.owners) {
      await using again = new StreamClient({ address: server.address, token: 'west-token' })
      expect(await refusalOf(again, 'west')).toMatchObject({ code: 'unauthenticated' })
    }
    agents[2]?.agent.push(batchOf(parseClusterName('north'), 1))
    await agents[2]?.agent.ackedTo(1)
  })

  it('of an original is numbered in one row and repeated once, whichever door it takes, and ends well', async () => {
    await using fleet = await someOwners()
    const ids = Array.from({ length: 6 }, (_, i) => `batch-${i}`)
    for (const [turn, batchId] of ids.entries()) {
      const { address } = (fleet.owners[turn % 2] ?? fleet.otherThan('west')).server
      await using collector = new StreamClient({ address, token: 'west-token' })
      collector.send({ case: 'register', value: { clusterName: 'west', token: '', version: 'v0.9' } })
      // Each of them sends the last one again: its ack may have been lost.
      for (const id of [...ids.slice(0, turn).slice(-1), batchId]) {
        collector.send(originalBatch(id))
        expect(await collector.next('ack')).toMatchObject({ batchId: id, success: true })
      }
      collector.finish()
      expect((await collector.ended()).code).toBe(0)
    }
    const { ingester, state } = fleet.ownerOf('west')
    expect(ingester.received(west, 'original')).toEqual([[1, 6]])
    await ingester.flushed()
    expect([...(state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n1', 'always'])
  })

  it('is known by its client certificate, as the end of its TLS saw it', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'relay-tls-'))
    const authority = await TestAuthority.make('test')
    const server = await authority.sign('hub', 'server')
    const file = (name: string) => join(directory, name)
    const tls = { certFile: file('crt'), keyFile: file('key'), clientCaFile: file('ca') }
    await writeFile(tls.certFile, server.cert)
    await writeFile(tls.keyFile, server.key)
    await writeFile(tls.clientCaFile, authority.pem)
    await using fleet = await someOwners({ tls })
    fleet.credentials.grant('west', 'west', 'certificate')
    const client = await authority.sign('west', 'client')
    const [ca, key, cert] = [authority.pem, client.key, client.cert].map((text) => Buffer.from(text))
    const credentials = ChannelCredentials.createSsl(ca, key, cert)
    for (const [turn, owner] of fleet.owners.entries()) {
      const { agent } = await OwnAgent.connect({ address: owner.server.address, credentials })
      agent.push(batchOf(west, turn + 1))
      await agent.ackedTo(turn + 1)
      const facts = fleet.ownerOf('west').server.agents.facts('west')
      expect(facts).toMatchObject({ tls: true, method: 'certificate', connected: true })
      await using liar = new StreamClient({ address: owner.server.address, credentials })
      expect(await refusalOf(liar, 'east')).toMatchObject({ code: 'wrong_cluster' })
      await agent[Symbol.asyncDispose]()
    }
    await rm(directory, { recursive: true, force: true })
  })
})
