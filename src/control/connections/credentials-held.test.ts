import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { secrets } from '#kube'
import { connectionResource } from './connection-resource.ts'
import { apis } from './testing/hubs.ts'
import {
  aWorld,
  conditionOf,
  connect,
  NAMESPACE,
  statusOf,
  until,
  untilPhase,
  type World,
  writeSecret,
} from './testing/world.ts'

const key = (name: string) => ({ name, namespace: NAMESPACE })

/** A server of somebody else: it answers everything as a cluster without anything would, and keeps what it was sent. */
async function aStranger(answer: { status: number; location?: string } = { status: 200 }) {
  const seen: string[] = []
  const server: Server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`)
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      ...(answer.location && { location: answer.location }),
    })
    response.end('{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}')
  })
  server.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`)
    socket.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    seen,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const edit = (world: World, name: string, spec: object) =>
  world.hub.patch(connectionResource, key(name), { spec }, { kind: 'merge' })
const untilHeld = (world: World, name: string, reason: string) =>
  until(async () => expect(await conditionOf(world, name, 'CredentialsHeld')).toMatchObject({ status: 'True', reason }))

describe('a ClusterConnection whose editor may not read its Secret', () => {
  it.each([
    ['another endpoint', (stranger: string) => ({ endpoint: stranger, insecureSkipTLSVerify: true })],
    ['a proxy', (stranger: string) => ({ proxyURL: stranger, insecureSkipTLSVerify: true })],
  ])('is sent no token by way of %s, and says what to do; turned back it goes on', async (_, turned) => {
    await using world = await aWorld()
    await using stranger = await aStranger()
    const member = await world.member()
    await connect(world, 'west', member)
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    expect((await statusOf(world, 'west')).credentials).toMatchObject({
      secret: `${NAMESPACE}/west-credentials`,
      endpoint: member.url,
    })
    const rounds = world.batches.length
    await edit(world, 'west', turned(stranger.url))
    await untilHeld(world, 'west', 'EndpointNotAccepted')
    await until(() => expect(world.batches.length).toBeGreaterThan(rounds + 2))
    const status = await statusOf(world, 'west')
    expect(status).toMatchObject({ phase: 'Error', credentials: { endpoint: member.url } })
    expect(status.message).toContain(`${member.url} was the first to accept them (ClusterConnection west)`)
    expect(status.message).toContain(
      `kubectl annotate secret west-credentials -n ${NAMESPACE} --overwrite clusterpulse.io/endpoint=`,
    )
    expect(await conditionOf(world, 'west', 'CredentialsValid')).toMatchObject({ status: 'Unknown' })
    expect(stranger.seen).toEqual([])
    await edit(world, 'west', { endpoint: member.url, proxyURL: null, insecureSkipTLSVerify: null })
    await untilPhase(world, 'west', 'Connected')
    expect(await conditionOf(world, 'west', 'CredentialsHeld')).toBeUndefined()
  })

  it('is sent no token by a second connection of theirs, before or after the first is read, or once that is deleted', async () => {
    await using world = await aWorld()
    await using stranger = await aStranger()
    const member = await world.member()
    await connect(world, 'west', member)
    const steal = (name: string) =>
      world.hub.create(connectionResource, {
        metadata: key(name),
        spec: { endpoint: stranger.url, insecureSkipTLSVerify: true, credentialsRef: { name: 'west-credentials' } },
      })
    await steal('x-before')
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    await steal('x-after')
    for (const name of ['x-before', 'x-after']) await untilHeld(world, name, 'EndpointNotAccepted')
    await world.hub.delete(connectionResource, key('west'))
    await until(() => expect(world.cluster('west')).toBeUndefined())
    await steal('west')
    await untilHeld(world, 'west', 'EndpointNotAccepted')
    expect(stranger.seen).toEqual([])
  })

  it('is sent no token after a restart either, nor where its cluster belongs to another process', async () => {
    await using world = await aWorld()
    await using stranger = await aStranger()
    await connect(world, 'west', await world.member())
    const first = await world.start()
    await untilPhase(world, 'west', 'Connected')
    await first.stop()
    await world.hub.create(connectionResource, {
      metadata: key('evil'),
      spec: { endpoint: stranger.url, insecureSkipTLSVerify: true, credentialsRef: { name: 'west-credentials' } },
    })
    await edit(world, 'west', { endpoint: stranger.url, insecureSkipTLSVerify: true })
    for (const index of [1, 2, 3]) await world.start({ owner: { index, of: 3 } })
    for (const name of ['west', 'evil']) await untilHeld(world, name, 'EndpointNotAccepted')
    expect(stranger.seen).toEqual([])
  })

  it('is sent no token where its API server redirects', async () => {
    await using world = await aWorld()
    await using stranger = await aStranger()
    await using redirecting = await aStranger({ status: 307, location: `${stranger.url}/api/v1/nodes` })
    const member = await world.member()
    await connect(world, 'west', { ...member, url: redirecting.url }, { insecureSkipTLSVerify: true })
    await world.start()
    await untilPhase(world, 'west', 'Error')
    expect((await statusOf(world, 'west')).message).toMatch(/sends elsewhere \(307\), which is not followed/)
    expect(redirecting.seen.join()).toContain(member.token)
    expect(stranger.seen).toEqual([])
  })
})

describe('credentials that are held', () => {
  it('go to the endpoint that accepts them first once their Secret has changed, and the condition is gone', async () => {
    await using world = await aWorld()
    const [before, after] = [await world.member(), await world.member()]
    await connect(world, 'west', before)
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    await edit(world, 'west', { endpoint: after.url })
    await untilHeld(world, 'west', 'EndpointNotAccepted')
    await writeSecret(world.hub, 'west-credentials', { token: after.token, 'ca.crt': after.ca })
    await untilPhase(world, 'west', 'Connected')
    expect((await statusOf(world, 'west')).credentials?.endpoint).toBe(after.url)
    expect(await conditionOf(world, 'west', 'CredentialsHeld')).toBeUndefined()
    await edit(world, 'west', { endpoint: before.url })
    await untilHeld(world, 'west', 'EndpointNotAccepted')
  })
})

describe.each(apis)('credentials at $title', ({ skip, open }) => {
  it.skipIf(skip)('move with their cluster when who may write the Secret says so', async () => {
    await using api = await open()
    await using world = await aWorld({ hub: api.kube })
    const hubWorld: World = { ...world, hub: api.kube }
    const [before, after] = [await world.member(), await world.member()]
    await connect(hubWorld, 'west', before)
    await world.start()
    await untilPhase(hubWorld, 'west', 'Connected')
    await edit(hubWorld, 'west', { endpoint: after.url, insecureSkipTLSVerify: true })
    await untilHeld(hubWorld, 'west', 'EndpointNotAccepted')
    const annotations = { 'clusterpulse.io/endpoint': after.url }
    await api.kube.patch(secrets, key('west-credentials'), { metadata: { annotations } }, { kind: 'merge' })
    await untilPhase(hubWorld, 'west', 'Connected')
    expect((await statusOf(hubWorld, 'west')).credentials?.endpoint).toBe(after.url)
    expect(await conditionOf(hubWorld, 'west', 'CredentialsHeld')).toBeUndefined()
    await edit(hubWorld, 'west', { endpoint: before.url })
    await untilHeld(hubWorld, 'west', 'EndpointNotAnnotated')
  })
})
