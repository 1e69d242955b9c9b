import { afterEach, describe, expect, it } from 'vitest'
import { kubeletSummaries, kubeletUrl } from './kubelet.ts'
import { identity, json, type Script, type ScriptedServer, scriptedServer, status } from './testing/scripted-server.ts'
import type { KubeObject } from './types.ts'

const servers: ScriptedServer[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]()
})

const nodeAt = (address: string, port?: number): KubeObject => ({
  metadata: { name: 'n1' },
  status: {
    addresses: [
      { type: 'Hostname', address: 'n1' },
      { type: 'InternalIP', address },
    ],
    ...(port !== undefined && { daemonEndpoints: { kubeletEndpoint: { Port: port } } }),
  },
})

async function aKubelet(script: Script) {
  const tls = await identity()
  const server = await scriptedServer(script, tls)
  servers.push(server)
  const node = nodeAt('127.0.0.1', Number(new URL(server.url).port))
  const token = { kind: 'token', token: 'of-the-agent' } as const
  const read = (ca: string, verifyTls = true) =>
    kubeletSummaries({ ca, credentials: token }, verifyTls)(node, 3_000, new AbortController().signal)
  return { server, ca: tls.ca, read }
}

describe('where a kubelet listens', () => {
  it.each([
    [nodeAt('10.0.0.7', 10_999), 'https://10.0.0.7:10999'],
    [nodeAt('10.0.0.7'), 'https://10.0.0.7:10250'],
    [nodeAt('fd00::7'), 'https://[fd00::7]:10250'],
    [{ metadata: { name: 'n1' } }, undefined],
    [{ metadata: { name: 'n1' }, status: { addresses: 'none' } }, undefined],
  ])('is said by its node %#', (node, url) => expect(kubeletUrl(node)).toBe(url))
})

describe('the summary of a kubelet at its own port', () => {
  it('is read with the credentials of the cluster, over a connection that is not kept', async () => {
    const seen: unknown[] = []
    const { server, ca, read } = await aKubelet((request, response) => {
      seen.push(request.headers.authorization)
      json(response, 200, { node: { nodeName: 'n1' } })
    })
    expect(await read(ca)).toEqual({ node: { nodeName: 'n1' } })
    expect([server.requests, seen]).toEqual([['GET /stats/summary'], ['Bearer of-the-agent']])
    await expect.poll(() => server.open()).toBe(0)
  })

  it('gives nobody the token whose certificate is of another authority, unless that was chosen', async () => {
    const { server, read } = await aKubelet((_, response) => json(response, 200, {}))
    const { ca: other } = await identity()
    await expect(read(other)).rejects.toMatchObject({ reason: 'tls' })
    expect(server.requests).toEqual([])
    expect(await read(other, false)).toEqual({})
  })

  it('is refused with the right that is missing', async () => {
    const { ca, read } = await aKubelet((_, response) =>
      status(response, 403, 'Forbidden', 'User "agent" cannot get resource "nodes/stats"'),
    )
    await expect(read(ca)).rejects.toMatchObject({ reason: 'forbidden' })
  })

  it('is none where the node has no address', async () => {
    const read = kubeletSummaries({ credentials: { kind: 'none' } }, true)
    await expect(read({ metadata: { name: 'n1' } }, 3_000, new AbortController().signal)).rejects.toThrow(
      'no InternalIP',
    )
  })
})
