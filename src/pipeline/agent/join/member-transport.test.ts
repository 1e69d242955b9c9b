import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createSecureServer } from 'node:http2'
import { createServer as createPlainServer, type Server as PlainServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decodeResponse } from '#wire'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { aHub } from '../../ingest/stream/test/hub.ts'
import { LinkError } from '../errors.ts'
import { memberTransport } from './member-transport.ts'

let authority: TestAuthority
/** Ends each connection as soon as its handshake is done, as the listener of a hub does with a certificate that is revoked. */
let hub: Server
let address = ''

beforeAll(async () => {
  authority = await TestAuthority.make('agents')
  const { cert, key } = await authority.sign('hub', 'server')
  hub = createServer({ cert, key, ALPNProtocols: ['h2'] }, (socket) => socket.destroy())
  address = await listening(hub)
})
afterAll(() => void hub?.close())

function listening(server: PlainServer): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const at = server.address()
      resolve(`127.0.0.1:${typeof at === 'object' && at ? at.port : 0}`)
    })
  })
}

async function free(): Promise<string> {
  const server = createPlainServer()
  const at = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return at
}

const ends = (...addresses: string[]) => {
  const hubEnds = { addresses }
  return () => ({ hub: hubEnds, roots: authority.pem, key: '', cluster: 'west' })
}
const said = async (transport: ReturnType<typeof memberTransport>): Promise<string> => {
  const error = await transport.open(new AbortController().signal).then(
    () => 'it is open',
    (one: unknown) => one,
  )
  expect(error).toBeInstanceOf(LinkError)
  return (error as LinkError).message
}
const INTERNALS = /Resolution|No connection established|Failed to connect|Last error|UNAVAILABLE|RST_STREAM/

describe('a member that its hub does not serve', () => {
  it('hears why with every attempt, once the hub said it, and in words of its own before', async () => {
    let why: string | undefined
    let refused = 0
    const transport = memberTransport(ends(address), { why: () => why, onRefused: () => refused++ })
    const first = await said(transport)
    expect(first).toMatch(/^127\.0\.0\.1:\d+ ends the connection as soon as it is made: /)
    expect(first).not.toMatch(INTERNALS)
    why = 'the certificate of this agent is revoked; the cluster must join anew'
    for (let attempt = 0; attempt < 3; attempt++) expect(await said(transport)).toBe(why)
    expect(refused).toBe(4)
  })

  it('comes back to a hub that makes its connection, and asks nothing', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'member-transport-'))
    const [certFile, keyFile, clientCaFile] = ['tls.crt', 'tls.key', 'ca.crt'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ]
    const [server, client] = [await authority.sign('hub', 'server'), await authority.sign('west', 'client')]
    await Promise.all([
      writeFile(certFile, server.cert),
      writeFile(keyFile, server.key),
      writeFile(clientCaFile, authority.pem),
    ])
    await using served = await aHub({ tls: { certFile, keyFile, clientCaFile } })
    const { host, port } = served.server.address
    const of = ends(`${host}:${port}`)
    let asked = 0
    const transport = memberTransport(() => ({ ...of(), key: client.key, certificate: client.cert }), {
      onRefused: () => asked++,
    })
    const goodbyes = async () => {
      await using link = await transport.open(new AbortController().signal)
      const said: string[] = []
      try {
        for await (const bytes of link.messages) {
          const { payload } = decodeResponse(bytes)
          said.push(payload.case === 'goodbye' ? payload.value.code : `${payload.case}`)
        }
      } catch (error) {
        expect(error).toBeInstanceOf(LinkError)
      }
      return said
    }
    served.credentials.refuse('west', 'not_yet')
    expect(await goodbyes()).toEqual(['not_yet'])
    expect(asked).toBe(0)
    served.credentials.refuse('west', 'expired')
    expect(await goodbyes()).toEqual(['unauthenticated'])
    expect(asked).toBe(1)
    await rm(directory, { recursive: true })
  })

  it('is not told an old answer where nothing answers', async () => {
    const transport = memberTransport(ends(await free()), { why: () => 'revoked' })
    expect(await said(transport)).toMatch(/refuses the connection/)
  })

  it('finds its hub at any of its addresses with one attempt, and begins with that one from then on', async () => {
    const { cert, key } = await authority.sign('hub', 'server')
    const served = createSecureServer({ cert, key })
    const [moved, former] = [await listening(served), await free()]
    try {
      const transport = memberTransport(ends(former, 'nowhere.invalid:9443', moved))
      for (let attempt = 0; attempt < 2; attempt++) {
        await using _link = await transport.open(new AbortController().signal)
        expect(transport.address).toBe(moved)
      }
    } finally {
      served.close()
    }
  })

  it('is told after a while at no address that the hub may have moved, and what helps', async () => {
    let now = 0
    const transport = memberTransport(ends(await free(), 'nowhere.invalid:9443'), { now: () => now })
    for (let attempt = 0; attempt < 2; attempt++) {
      const told = await said(transport)
      expect(told).toMatch(
        /^127\.0\.0\.1:\d+ refuses the connection: nothing listens there.*; the name in nowhere\.invalid:9443 is not found/,
      )
      expect(told).not.toMatch(/moved/)
      expect(told).not.toMatch(INTERNALS)
    }
    now = 6 * 60_000
    expect(await said(transport)).toMatch(
      /127\.0\.0\.1:\d+ and nowhere\.invalid:9443 is all that this member knows .*if it moved .*`clusterpulse connect west`/,
    )
  })
})
