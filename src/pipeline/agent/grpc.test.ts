import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseClusterName } from '#model'
import { freePort } from '../../platform/runtime/testing/free-port.ts'
import { TestAuthority } from '../ingest/stream/test/certificates.ts'
import { aHub, type TestHub } from '../ingest/stream/test/hub.ts'
import { Agent } from './agent.ts'
import type { LinkError } from './errors.ts'
import { type GrpcTlsOptions, grpcTransport, hostOf, portOf } from './grpc.ts'
import { aliveClient, countingCollector } from './testing/small-cluster.ts'

const west = parseClusterName('west')
let directory = ''
let files: { certFile: string; keyFile: string; clientCaFile: string }
let authority: TestAuthority
let leaf = ''

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-grpc-'))
  authority = await TestAuthority.make('agents')
  const pair = await authority.sign('hub', 'server')
  leaf = pair.cert
  files = {
    certFile: join(directory, 'tls.crt'),
    keyFile: join(directory, 'tls.key'),
    clientCaFile: join(directory, 'ca.crt'),
  }
  await writeFile(files.clientCaFile, authority.pem)
  await writeFile(files.certFile, pair.cert + authority.pem)
  await writeFile(files.keyFile, pair.key)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const fingerprintOf = (pem: string) => new X509Certificate(pem).fingerprint256
const addressOf = ({ server }: TestHub) => `127.0.0.1:${server.address.port}`

async function anAgent(address: string, tls: GrpcTlsOptions | undefined, token: string | undefined = 'west-token') {
  const source = () => Promise.resolve(token)
  return Agent.open({
    cluster: west,
    version: '1.2.3',
    directory: await mkdtemp(join(directory, 'buffer-')),
    plan: { intervalMs: 200 },
    token: source,
    kube: aliveClient,
    collectors: [countingCollector()],
    transport: grpcTransport({ address, token: source, connectTimeoutMs: 3_000, ...(tls && { tls }) }),
  })
}

/** What the agent says of its stream once it tried. */
async function reasonOf(address: string, tls: GrpcTlsOptions | undefined, token?: string): Promise<string> {
  await using agent = await anAgent(address, tls, token)
  await vi.waitFor(() => expect(agent.status().uplink.phase).toBe('backing-off'), 20_000)
  return agent.status().uplink.reason
}

async function delivers(hub: TestHub, tls: GrpcTlsOptions | undefined, token?: string): Promise<void> {
  await using agent = await anAgent(addressOf(hub), tls, token)
  await vi.waitFor(() => expect(agent.status().collection.rounds).toBeGreaterThan(4), 20_000)
  await vi.waitFor(() => expect(agent.status().buffer.batches).toBeLessThanOrEqual(1), 20_000)
  expect(agent.status().uplink).toMatchObject({ phase: 'live', protocol: 'ours', streams: 1 })
  expect(hub.state.cluster(west)?.parts.namespace?.items.size).toBe(5)
  expect(agent.status().buffer.lostBatches).toBe(0)
}

describe('the target', () => {
  it.each([
    ['ingester:9443', 'ingester', 9443],
    ['hub.example.com:443', 'hub.example.com', 443],
    ['hub.example.com', 'hub.example.com', 443],
    ['dns:///hub.example.com:9443', 'hub.example.com', 9443],
    ['dns:hub:9443', 'hub', 9443],
    ['dns://8.8.8.8/hub:9443', 'hub', 9443],
    ['10.0.0.1:9443', '10.0.0.1', 9443],
    ['ipv4:10.0.0.1:9443', '10.0.0.1', 9443],
    ['[::1]:9443', '::1', 9443],
    ['ipv6:[::1]:9443', '::1', 9443],
  ])('%s dials %s at %d', (address, host, port) => {
    expect(hostOf(address)).toBe(host)
    expect(portOf(address)).toBe(port)
  })
})

describe('the transport over gRPC, facing a real hub', () => {
  it('delivers in the clear, with differences, and every batch is in the state of the hub', async () => {
    await using hub = await aHub()
    await delivers(hub, undefined)
  })

  it('delivers over TLS by a CA file, by the fingerprint of the CA, and by that of the certificate itself', async () => {
    await using hub = await aHub({ tls: files })
    await delivers(hub, { caFile: files.clientCaFile })
    await delivers(hub, { caFingerprint: fingerprintOf(authority.pem) })
    await delivers(hub, { caFingerprint: fingerprintOf(leaf).replaceAll(':', '').toLowerCase() })
  })

  it('shows the name it dials, by which a Route or TLSRoute leads it on, and verifies the name it was given', async () => {
    await using hub = await aHub({ tls: files })
    const hellos: string[] = []
    // Leads on without ending TLS, as they do.
    const passthrough = createServer((near) => {
      const far = connect(hub.server.address.port, '127.0.0.1')
      const end = () => {
        near.destroy()
        far.destroy()
      }
      near.once('data', (hello: Buffer) => hellos.push(hello.toString('latin1')))
      near.on('error', end).pipe(far).on('error', end).pipe(near)
    }).listen(0, 'localhost')
    await once(passthrough, 'listening')
    const { port } = passthrough.address() as { port: number }
    try {
      await using agent = await anAgent(`localhost:${port}`, { caFile: files.clientCaFile, serverName: '127.0.0.1' })
      await vi.waitFor(() => expect(agent.status().uplink.phase).toBe('live'), 20_000)
      expect(hellos[0]).toContain('localhost')
      const wrong = { caFile: files.clientCaFile, serverName: 'hub.svc' }
      expect(await reasonOf(`localhost:${port}`, wrong)).toMatch(/not for hub\.svc/)
      expect(hellos.at(-1)).toContain('localhost')
      expect(hellos.join()).not.toContain('hub.svc')
    } finally {
      passthrough.close()
    }
  })

  it('proves itself by its own certificate', async () => {
    await using hub = await aHub({ tls: files })
    hub.credentials.grant('west-agent', 'west', 'certificate')
    const pair = await authority.sign('west-agent', 'client')
    const own = { certFile: join(directory, 'own.crt'), keyFile: join(directory, 'own.key') }
    await writeFile(own.certFile, pair.cert)
    await writeFile(own.keyFile, pair.key)
    await delivers(hub, { caFile: files.clientCaFile, ...own }, '')
  })

  it('says in a sentence why there is no stream', async () => {
    await using hub = await aHub({ tls: files })
    const address = addressOf(hub)
    const other = await TestAuthority.make('other')
    const otherFile = join(directory, 'other.crt')
    await writeFile(otherFile, other.pem)
    expect(await reasonOf(address, { caFile: otherFile })).toMatch(
      /authority we do not know; name it with INGESTER_TLS_CA/,
    )
    expect(await reasonOf(address, {})).toMatch(/authority we do not know/)
    expect(await reasonOf(address, { caFingerprint: fingerprintOf(other.pem) })).toMatch(
      /no certificate with the fingerprint/,
    )
    expect(await reasonOf(address, { caFile: files.clientCaFile, serverName: 'hub.svc' })).toMatch(
      /is for .*127\.0\.0\.1.*, not for hub\.svc; set INGESTER_TLS_SERVER_NAME/,
    )
    expect(await reasonOf(address, { caFile: files.clientCaFile }, 'wrong-token')).toMatch(
      /credential is not accepted: the token was revoked, has expired, or is of another hub; .*`clusterpulse connect west --bearer-token`/,
    )
    expect(await reasonOf(address, { caFile: join(directory, 'missing.crt') })).toMatch(
      /missing\.crt cannot be read \(ENOENT\)/,
    )
    await using plain = await aHub()
    expect(await reasonOf(addressOf(plain), { caFile: files.clientCaFile })).toMatch(/does not speak TLS/)
    const free = await freePort()
    expect(await reasonOf(`127.0.0.1:${free}`, undefined)).toMatch(/refuses the connection/)
    expect(await reasonOf('nowhere.invalid:9443', undefined)).toBe(
      'the name in nowhere.invalid:9443 is not found; check it, and the DNS of this machine',
    )
  })

  it('knows what cuts a connection off before a hub showed itself from a hub that does not take its certificate', async () => {
    const cuts = createServer((socket) => void socket.destroy()).listen(0, '127.0.0.1')
    await once(cuts, 'listening')
    const cutting = `127.0.0.1:${(cuts.address() as { port: number }).port}`
    const stranger = await (await TestAuthority.make('strangers')).sign('west', 'client')
    const picky = createTlsServer(
      { cert: leaf + authority.pem, key: await readFile(files.keyFile), ca: authority.pem, requestCert: true },
      (socket) => void socket.destroy(),
    ).listen(0, '127.0.0.1')
    await once(picky, 'listening')
    const known: GrpcTlsOptions = { caFile: files.clientCaFile }
    const isCut = async (address: string, tls?: GrpcTlsOptions) => {
      const way = grpcTransport({ address, connectTimeoutMs: 3_000, ...(tls && { tls }) })
      const error = await way.open(new AbortController().signal).catch((one: unknown) => one)
      expect(error).toMatchObject({ fault: 'ended' })
      return (error as LinkError).isCut
    }
    try {
      expect(await isCut(cutting)).toBe(true)
      expect(await isCut(cutting, known)).toBe(true)
      expect(await isCut(cutting, { caFingerprint: fingerprintOf(authority.pem) })).toBe(true)
      const identity = { certificate: stranger.cert, key: stranger.key }
      expect(await isCut(`127.0.0.1:${(picky.address() as { port: number }).port}`, { ...known, identity })).toBe(false)
    } finally {
      cuts.close()
      picky.close()
    }
  })
})
