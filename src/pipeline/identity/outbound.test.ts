import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { boundedFetch, isSafeUrl } from './outbound.ts'

const servers: { close(): unknown; closeAllConnections(): void }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function listening(server: ReturnType<typeof createServer>, scheme = 'http'): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}
const serving = (handler: RequestListener): Promise<string> => listening(createServer(handler))

describe('a question to a provider', () => {
  it('is sent as it is, and answered as it is', async () => {
    const url = await serving(async (request, response) => {
      let body = ''
      for await (const part of request) body += String(part)
      response.writeHead(201, { 'x-seen': `${request.method} ${request.headers['x-mine']}` }).end(body)
    })
    const form = new URLSearchParams({ code: 'a b' })
    const answer = await boundedFetch()(`${url}/token`, { method: 'POST', headers: { 'x-mine': '1' }, body: form })
    expect([answer.status, answer.headers.get('x-seen'), await answer.text()]).toEqual([201, 'POST 1', 'code=a+b'])
  })

  it.each(['https://169.254.169.254/keys', 'https://[::ffff:a9fe:a9fe]/keys', 'https://[fd00:ec2::254]/'])(
    'is never asked of a metadata service: %s',
    (url) => expect(boundedFetch()(url)).rejects.toMatchObject({ code: 'address_refused' }),
  )

  it('ends in time, whether nothing comes or not all of it', async () => {
    const silent = await serving(() => undefined)
    const slow = await serving((_, response) => void response.writeHead(200).write('{'))
    for (const url of [silent, slow]) await expect(boundedFetch({ timeoutMs: 50 })(url)).rejects.toThrow()
  })

  it('takes no more than its bound', async () => {
    const url = await serving((_, response) => response.end('x'.repeat(1000)))
    expect(await (await boundedFetch({ maxBytes: 1000 })(url)).text()).toHaveLength(1000)
    await expect(boundedFetch({ maxBytes: 999 })(url)).rejects.toThrow(/larger/)
  })

  it('follows nobody elsewhere', async () => {
    const seen: string[] = []
    const url = await serving((request, response) => {
      seen.push(request.url ?? '')
      response.writeHead(302, { location: '/elsewhere' }).end()
    })
    expect((await boundedFetch()(`${url}/keys`)).status).toBe(302)
    expect(seen).toEqual(['/keys'])
  })

  it('believes the CA it was given, and no unknown one', async () => {
    const { cert, key, ca } = await certificate()
    const url = await listening(
      createTlsServer({ cert, key }, (_, response) => response.end('yes')),
      'https',
    )
    expect(await (await boundedFetch({ ca })(url)).text()).toBe('yes')
    await expect(boundedFetch()(url)).rejects.toThrow(/certificate/)
    const other = await certificate()
    await expect(boundedFetch({ ca: other.ca })(url)).rejects.toThrow()
  })

  it.each([
    ['https://issuer.example/path', true],
    ['http://127.0.0.1:5556', true],
    ['http://[::1]:5556', true],
    ['http://localhost', true],
    ['http://issuer.example', false],
    ['http://127.0.0.1.evil.example', false],
    ['http://localhost.evil.example', false],
    ['https://user:secret@issuer.example', false],
    ['file:///etc/passwd', false],
    ['', false],
  ])('may go to %j: %s', async (url, may) => {
    expect(isSafeUrl(url)).toBe(may)
    if (!may) await expect(boundedFetch()(url)).rejects.toThrow(/neither https nor loopback/)
  })
})

const certificate = () => generateServingCertificate({ hosts: ['127.0.0.1'] })
