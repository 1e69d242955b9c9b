import { request } from 'node:https'
import { describe, expect, it } from 'vitest'
import { TestAuthority, type TestPair } from '../ingest/stream/test/certificates.ts'
import { aWorld, proxy, type WorldConfig } from './test/world.ts'

interface Answer {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

const ask = (url: string, ca: string, client?: TestPair): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-user': 'admin' }
    const sent = request(url, { ca, headers, agent: false, ...client }, (response) => {
      response.resume().on('end', () => resolve({ status: response.statusCode, headers: response.headers }))
    })
    sent.on('error', reject).end()
  })

describe('over TLS', () => {
  it('answers, and tells browsers to stay with it', async () => {
    const authority = await TestAuthority.make('people')
    const tls = await authority.sign('hub', 'server')
    await using world = await aWorld({ identity: proxy, tls })
    const address = await world.server.start()
    expect(address).toMatch(/^https:/)
    const { status, headers } = await ask(`${address}/api/v2/clusters`, authority.pem)
    expect([status, headers['strict-transport-security']]).toEqual([200, expect.stringContaining('max-age')])
    await expect(fetch(address.replace('https:', 'http:'))).rejects.toThrow()
  })

  it('believes the proxy whose certificate is of the configured authority, and no other', async () => {
    const authority = await TestAuthority.make('people')
    const proxies = await TestAuthority.make('proxies')
    const strangers = await TestAuthority.make('strangers')
    const config: WorldConfig = {
      identity: { proxy: { trustedPeers: [], clientCa: { pem: proxies.pem } } },
      tls: { ...(await authority.sign('hub', 'server')), clientCa: proxies.pem },
    }
    // Certificates are of today, and the clock of a test is not.
    await using world = await aWorld(config)
    world.clock.at = Date.now()
    const url = `${await world.server.start()}/api/v2/clusters`
    expect((await ask(url, authority.pem, await proxies.sign('oauth-proxy', 'client'))).status).toBe(200)
    expect((await ask(url, authority.pem, await strangers.sign('oauth-proxy', 'client'))).status).toBe(401)
    expect((await ask(url, authority.pem)).status).toBe(401)
  })
})
