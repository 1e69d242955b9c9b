import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ClientPool } from '#kube'
import { AddressRefusedError, type Lookup, OutboundGuard, type OutboundUse } from './index.ts'

const named =
  (...answers: readonly (readonly string[])[]): Lookup =>
  (_, callback) => {
    const addresses = answers.at(Math.min(asked++, answers.length - 1)) ?? []
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
let asked = 0

/** What counts connections that reach it. */
async function aServer(): Promise<{ readonly port: number; readonly hits: () => number }> {
  let hits = 0
  const server = createServer((_, response) => {
    hits++
    response.setHeader('content-type', 'application/json').end('{"major":"1","gitVersion":"v1","platform":"x"}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, hits: () => hits }
}

const uses: readonly Exclude<OutboundUse, 'sink'>[] = ['member', 'registry', 'sign-in', 'broker']

describe.each(uses)('a guard of a %s', (use) => {
  it.each([
    '169.254.169.254',
    '[fe80::1]',
    '100.100.100.200',
    '[fd00:ec2::254]',
    '[::ffff:a9fe:a9fe]',
    '0.0.0.0',
    '[::]',
    '224.0.0.1',
  ])('refuses %s, and takes it where it is allowed', (host) => {
    expect(() => new OutboundGuard({ use }).check(host)).toThrow(AddressRefusedError)
    const allow = ['0.0.0.0/0', '::/0']
    expect(() => new OutboundGuard({ use, allow }).check(host)).not.toThrow()
  })

  it.each(['127.0.0.1', '[::1]', '10.0.0.1', '8.8.8.8', 'west.example', '[2606:4700::1111]'])('takes %s', (host) =>
    expect(() => new OutboundGuard({ use }).check(host)).not.toThrow(),
  )
})

describe('a guard of sinks', () => {
  const closed = { use: 'sink', allowLoopback: false, allowPrivate: false } as const
  const signal = new AbortController().signal
  const askedFor: string[] = []
  const guard = (addresses: readonly string[], more: object = {}) => {
    const names: Lookup = (hostname, callback) => {
      askedFor.push(hostname)
      named(addresses)(hostname, callback)
    }
    asked = 0
    return new OutboundGuard({ ...closed, ...more, names })
  }

  it('gives every address of a name whose addresses all may be dialed', async () => {
    await expect(guard(['8.8.8.8', '2606:4700::1111']).addresses('git.test', signal)).resolves.toEqual([
      '8.8.8.8',
      '2606:4700::1111',
    ])
    await expect(guard([]).addresses('[2606:4700::1111]', signal)).resolves.toEqual(['2606:4700::1111'])
  })

  it.each(['169.254.169.254', '127.0.0.1', '10.0.0.1', '::ffff:10.0.0.1'])(
    'gives none where one of them is %s',
    async (address) => {
      const refused = guard(['8.8.8.8', address]).addresses('git.test', signal)
      await expect(refused).rejects.toThrow(AddressRefusedError)
      await expect(refused).rejects.toThrow(`git.test names ${address}, an address `)
    },
  )

  it.each([
    ['10.0.0.1', { allowPrivate: true }],
    ['127.0.0.1', { allowLoopback: true }],
  ] as const)('opens %s by a setting of the process, and metadata by none', async (address, more) => {
    await expect(guard([address], more).addresses('git.test', signal)).resolves.toEqual([address])
    await expect(guard([address, '169.254.169.254'], more).addresses('git.test', signal)).rejects.toThrow('no setting')
  })

  it.each(['localhost', 'a.LOCALHOST.', 'metadata.google.internal'])('refuses %s without a look-up', async (name) => {
    askedFor.length = 0
    await expect(guard(['8.8.8.8']).addresses(name, signal)).rejects.toThrow(AddressRefusedError)
    guard(['8.8.8.8']).lookup(name, { all: true }, (error) => expect(error).toBeInstanceOf(AddressRefusedError))
    expect(askedFor).toEqual([])
  })

  it('lets nobody wait for a name that is never answered', async () => {
    const never = new OutboundGuard({ ...closed, names: () => {} })
    const stop = new AbortController()
    const waiting = never.addresses('git.test', stop.signal)
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })
})

describe('a member whose name', () => {
  const access = (server: string, more: object = {}) =>
    ({ server, allowHttp: true, verifyTls: false, credentials: { kind: 'token', token: 'abc' }, ...more }) as const
  const poolWith = (names: Lookup, allow: readonly string[] = []) => {
    asked = 0
    const pool = new ClientPool({ outbound: new OutboundGuard({ use: 'member', names, allow }) })
    onTestFinished(() => pool[Symbol.asyncDispose]())
    return pool
  }
  const refused = {
    reason: 'unreachable',
    message: expect.stringMatching(/west\.test is at 169\.254\.169\.254.*OUTBOUND_ALLOW/),
  }

  it.each(['http', 'https'])('leads to a metadata service is not dialed: %s', async (scheme) => {
    const client = await poolWith(named(['169.254.169.254'])).get('west', access(`${scheme}://west.test`))
    await expect(client.version()).rejects.toMatchObject(refused)
  })

  it('leads to one of several addresses that are refused is not dialed', async () => {
    const client = await poolWith(named(['127.0.0.1', '169.254.169.254'])).get('west', access('http://west.test:1'))
    await expect(client.version()).rejects.toMatchObject(refused)
  })

  it('changes its answer after the first look is not dialed there', async () => {
    const server = await aServer()
    const pool = poolWith(named(['127.0.0.1'], ['169.254.169.254']))
    const at = access(`http://west.test:${server.port}`)
    const first = await pool.get('west', at)
    await expect(first.version()).resolves.toMatchObject({ gitVersion: 'v1' })
    expect(server.hits()).toBe(1)
    const second = await pool.get('east', at)
    await expect(second.version()).rejects.toMatchObject(refused)
    expect(server.hits()).toBe(1)
  })

  it('is that of a proxy is not dialed either', async () => {
    const proxyUrl = 'http://west.test:1'
    const client = await poolWith(named(['169.254.169.254'])).get('west', access('https://10.0.0.1', { proxyUrl }))
    await expect(client.version()).rejects.toMatchObject(refused)
  })

  it('is an address is checked without a look', async () => {
    for (const server of ['http://169.254.169.254', 'http://2852039166', 'https://[::ffff:169.254.169.254]:6443']) {
      const client = await poolWith(named([])).get('west', access(server))
      await expect(client.version(), server).rejects.toMatchObject({
        reason: 'unreachable',
        message: expect.stringMatching(/OUTBOUND_ALLOW/),
      })
    }
  })
})
