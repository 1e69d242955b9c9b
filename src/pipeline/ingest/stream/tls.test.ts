import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type Socket, connect as tcpConnect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { ChannelCredentials } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLogger } from '#runtime'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { ServerTlsError } from './errors.ts'
import { TestAuthority, type TestPair } from './test/certificates.ts'
import { StreamClient } from './test/clients.ts'
import { aHub } from './test/hub.ts'
import { hello, OwnAgent } from './test/own-agent.ts'

let directory: string
let authority: TestAuthority
let files: { certFile: string; keyFile: string; clientCaFile: string }

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stream-tls-'))
  authority = await TestAuthority.make('agents')
  files = {
    certFile: join(directory, 'tls.crt'),
    keyFile: join(directory, 'tls.key'),
    clientCaFile: join(directory, 'ca.crt'),
  }
  await writeFile(files.clientCaFile, authority.pem)
  await serve(await authority.sign('hub-1', 'server'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function serve({ cert, key }: TestPair): Promise<void> {
  await writeFile(files.keyFile, key)
  await writeFile(files.certFile, cert)
}

const trusting = (client?: TestPair) =>
  ChannelCredentials.createSsl(
    Buffer.from(authority.pem),
    client ? Buffer.from(client.key) : null,
    client ? Buffer.from(client.cert) : null,
  )

/** common name of the certificate a new connection is shown */
function shownName({ host, port }: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, ca: authority.pem, ALPNProtocols: ['h2'] }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

const batch = (sequence: number) =>
  aBatch(west, sequence, [complete('node', aNode('n1'))], { source: 'push', collectedAt: Date.now() })

describe('the listener of agents', () => {
  it('shows a new certificate to new connections while old streams live on', async () => {
    await using hub = await aHub({ tls: files })
    const { address } = hub.server
    const { agent } = await OwnAgent.connect({ address, token: 'west-token', credentials: trusting() })
    await using _agent = agent
    expect(await shownName(address)).toBe('hub-1')
    await serve(await authority.sign('hub-2', 'server'))
    await eventually('the new certificate is shown', async () => (await shownName(address)) === 'hub-2')
    agent.push(batch(1))
    await agent.ackedTo(1)
    expect(hub.server.agents.facts('west')).toMatchObject({ tls: true, connected: true })
  })

  it('keeps the old certificate while the files are no pair, and refuses to start with such', async () => {
    const warned: string[] = []
    const logger = { ...silentLogger, warn: (_: object, sentence: string) => void warned.push(sentence) }
    await using hub = await aHub({ tls: files, logger })
    const before = await shownName(hub.server.address)
    const { key } = await authority.sign('other', 'server')
    await writeFile(files.keyFile, key)
    await expect(aHub({ tls: files })).rejects.toThrow(ServerTlsError)
    await eventually('the files were looked at', () => warned.some((line) => line.includes('cannot be used yet')))
    expect(await shownName(hub.server.address)).toBe(before)
    // Empty, as a file is while it is written.
    await writeFile(files.certFile, '')
    await expect(aHub({ tls: files })).rejects.toThrow(ServerTlsError)
    const [earlier, more] = [warned.length, () => warned.length > earlier + 1]
    await eventually('the files were looked at again', more)
    expect(await shownName(hub.server.address)).toBe(before)
    await serve(await authority.sign('hub-1', 'server'))
  })

  it('takes a client certificate for who speaks, whatever the payload says', async () => {
    await using hub = await aHub({ tls: files })
    const { address } = hub.server
    hub.credentials.grant('west', 'west', 'certificate')
    const pair = await authority.sign('west', 'client')
    const { agent } = await OwnAgent.connect({ address, credentials: trusting(pair) })
    await using _agent = agent
    expect(hub.server.agents.facts('west')).toMatchObject({ method: 'certificate', tls: true })
    await using liar = new StreamClient({ address, credentials: trusting(pair) })
    liar.send(hello({ cluster: 'east' }))
    expect(await liar.next('goodbye')).toMatchObject({ code: 'wrong_cluster' })
    expect(hub.server.agents.facts('east')).toBeUndefined()
  })

  it('ends a connection whose certificate is revoked, also one that began no stream, and takes it no more', async () => {
    await using hub = await aHub({ tls: files })
    const { host, port } = hub.server.address
    const holder = async (name: string) => {
      hub.credentials.grant(name, name, 'certificate')
      const pair = await authority.sign(name, 'client')
      const socket = connect({ host, port, ca: authority.pem, ALPNProtocols: ['h2'], ...pair })
      socket.on('error', () => undefined).resume() // the end is what is waited for
      const closed = once(socket, 'close')
      await once(socket, 'secureConnect')
      return { socket, closed, pair }
    }
    const [west, east] = [await holder('west'), await holder('east')]
    hub.credentials.refuse('west', 'revoked')
    await west.closed
    const again = connect({ host, port, ca: authority.pem, ALPNProtocols: ['h2'], ...west.pair })
    again.on('error', () => undefined).resume()
    await once(again, 'close')
    expect(east.socket.destroyed).toBe(false)
    east.socket.destroy()
  })

  it('ends the streams of whom an authority signed that is trusted no more, and no others', async () => {
    const [former, next] = [await TestAuthority.make('former'), await TestAuthority.make('next')]
    const { certFile, keyFile } = files
    let trusted = [former.pem, next.pem]
    await using hub = await aHub({ tls: { certFile, keyFile, clientCas: async () => trusted.join('\n') } })
    const { address } = hub.server
    const agentOf = async (name: string, by: TestAuthority) => {
      hub.credentials.grant(name, name, 'certificate')
      const { agent } = await OwnAgent.connect({
        ...{ address, cluster: name },
        credentials: trusting(await by.sign(name, 'client')),
      })
      return agent
    }
    await using _west = await agentOf('west', former)
    await using _east = await agentOf('east', next)
    // As a file is while it is written: no decision about anybody.
    trusted = []
    await eventually('nobody is let in', () =>
      agentOf('west', former).then(
        () => false,
        () => true,
      ),
    )
    expect(['west', 'east'].map((name) => hub.server.agents.facts(name)?.connected)).toEqual([true, true])
    trusted = [next.pem]
    await eventually('the stream of west has ended', () => hub.server.agents.facts('west')?.connected === false)
    expect(hub.server.agents.facts('west')).toMatchObject({
      reason: 'the hub ended the stream, as it no longer trusted the authority that signed its certificate',
    })
    expect(hub.server.agents.facts('east')).toMatchObject({ connected: true })
    await agentOf('west', former).then(
      () => expect.unreachable('its certificate counts for nothing'),
      (error: unknown) => expect(String(error)).toContain('not accepted'),
    )
  })

  it('tells members by which authorities the hub is known and where it is, again when that changes, and nobody else', async () => {
    let roots = 'FIRST'
    let addresses: string[] = []
    await using hub = await aHub({ tls: files, trust: () => ({ roots, addresses }) })
    const { address } = hub.server
    hub.credentials.grant('west', 'west', 'certificate')
    const pair = await authority.sign('west', 'client')
    await using member = (await OwnAgent.connect({ address, credentials: trusting(pair) })).agent
    const other = { address, token: 'east-token', cluster: 'east', credentials: trusting() }
    await using byToken = (await OwnAgent.connect(other)).agent
    const told: string[] = []
    void byToken.next('joinState').then(
      () => told.push('by token'),
      () => undefined, // its stream ends with the test
    )
    expect(await member.next('joinState')).toMatchObject({ phase: 'trust', roots: 'FIRST' })
    roots = 'FIRST SECOND'
    expect(await member.next('joinState')).toMatchObject({ phase: 'trust', roots: 'FIRST SECOND' })
    addresses = ['new.example:9443', 'old.example:9443']
    expect(await member.next('joinState')).toMatchObject({ phase: 'trust', roots: 'FIRST SECOND', addresses })
    roots = ''
    addresses = []
    const { agent: again } = await OwnAgent.connect({ address, credentials: trusting(pair) })
    await using _again = again
    roots = 'SECOND'
    // Nothing was said of none: the first that this stream hears is the next change.
    expect(await again.next('joinState')).toMatchObject({ phase: 'trust', roots: 'SECOND' })
    expect(told).toEqual([])
  })

  it('takes a certificate that does not verify for none at all', async () => {
    const warned: string[] = []
    const logger = { ...silentLogger, warn: (_: object, sentence: string) => void warned.push(sentence) }
    await using hub = await aHub({ tls: files, logger: { ...logger, child: () => logger } })
    const { address } = hub.server
    hub.credentials.grant('west', 'west', 'certificate')
    const stranger = await (await TestAuthority.make('stranger')).sign('west', 'client')
    const expired = await authority.sign('west', 'client', { expired: true })
    for (const pair of [stranger, expired]) {
      await using client = new StreamClient({ address, credentials: trusting(pair) })
      client.send(hello({}))
      expect(await client.next('goodbye')).toMatchObject({ code: 'unauthenticated' })
    }
    expect(warned.filter((sentence) => /does not verify here.*restore it.*join anew/.test(sentence))).toHaveLength(1)
    await using agent = new StreamClient({ address, credentials: trusting(expired), token: 'west-token' })
    agent.send(hello({ token: 'west-token' }))
    await agent.next('welcome')
  })

  it('lets nobody in who speaks no TLS', async () => {
    await using hub = await aHub({ tls: files })
    await using client = new StreamClient({ address: hub.server.address, token: 'west-token' })
    client.send(hello({}))
    expect((await client.ended()).code).not.toBe(0)
    expect(hub.server.agents.facts('west')).toBeUndefined()
  })

  /** Connections that say this much of a handshake and then nothing, from one address. */
  async function quiet({ host, port }: { host: string; port: number }, count: number, words: Buffer) {
    const sockets = await Promise.all(
      Array.from(
        { length: count },
        () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = tcpConnect({ host, port, localAddress: '127.0.0.2' }, () => {
              if (words.length > 0) socket.write(words)
              resolve(socket)
            })
            socket.on('error', reject)
          }),
      ),
    )
    for (const socket of sockets) socket.removeAllListeners('error').on('error', () => undefined)
    return {
      get open() {
        return sockets.filter((socket) => !socket.closed).length
      },
      [Symbol.dispose]() {
        for (const socket of sockets) socket.destroy()
      },
    }
  }

  it.each([
    ['silent ones', Buffer.alloc(0)],
    ['ones that stop in the middle of their handshake', Buffer.from('160301020001000', 'hex')],
  ])('lets an agent in beside 300 connections: %s', async (_, words) => {
    await using hub = await aHub({ tls: files, limits: { firstByteMs: 8_000, handshakeMs: 8_000, turnMs: 200 } })
    const { address } = hub.server
    using crowd = await quiet(address, 300, words)
    const startedAt = performance.now()
    const { agent } = await OwnAgent.connect({ address, token: 'west-token', credentials: trusting() })
    await using _agent = agent
    expect((performance.now() - startedAt) / slowness).toBeLessThan(6_000)
    agent.push(batch(1))
    await agent.ackedTo(1)
    await eventually('the crowd is closed', () => crowd.open === 0)
  })

  it('closes the oldest of the address that has most unfinished connections, when there are too many', async () => {
    await using hub = await aHub({ tls: files, limits: { maxUnfinished: 20 } })
    const { address } = hub.server
    using crowd = await quiet(address, 50, Buffer.alloc(0))
    await eventually('as many as allowed are open', () => crowd.open <= 20)
    expect(await shownName(address)).toMatch(/^hub-/)
    expect(crowd.open).toBeGreaterThanOrEqual(19)
  })

  it('closes a connection that shook hands and opens no stream', async () => {
    await using hub = await aHub({ tls: files, limits: { idleMs: 300 } })
    const socket = connect({ ...hub.server.address, ca: authority.pem, ALPNProtocols: ['h2'] })
    socket.on('error', () => undefined)
    const closed = once(socket, 'close')
    socket.on('secureConnect', () => socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'))
    socket.resume()
    await closed
    expect(hub.server.streams).toBe(0)
  })

  it('brings many at once through their handshakes, a few at a time', async () => {
    await using hub = await aHub({ tls: files, limits: { maxHandshakes: 4 } })
    const { address } = hub.server
    const names = await Promise.all(Array.from({ length: 60 }, () => shownName(address)))
    expect(new Set(names).size).toBe(1)
  })
})
