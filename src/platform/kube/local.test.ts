import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type OwnedKubeClient } from './client.ts'
import type { Resource } from './types.ts'

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const NAMESPACE = 'default'
const named = (name: string) => ({ metadata: { name, namespace: NAMESPACE }, data: { a: '1' } })

describe('a client of an API server in its own process', () => {
  let server: ApiServer
  let listener: ApiListener
  const clientWith = (token: string): OwnedKubeClient =>
    // Nobody answers at the address: it is never dialed.
    createKubeClient(
      { server: 'https://127.0.0.1:1', verifyTls: true, credentials: { kind: 'token', token } },
      { local: listener.answer },
    )
  let kube: OwnedKubeClient
  beforeAll(async () => {
    server = await ApiServer.open({ storage: { kind: 'memory' }, defaultRoles: true })
    listener = await listenApi({
      mounts: new Map([['', server]]),
      tokens: [
        { token: 'hub-token', user: 'hub', groups: ['system:masters'] },
        { token: 'other-token', user: 'other' },
      ],
    })
    kube = clientWith('hub-token')
  })
  afterAll(async () => {
    await kube[Symbol.asyncDispose]()
    await listener[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  it('writes, reads and lists, and is told apart absent, forbidden, and changed meanwhile', async () => {
    const made = await kube.create(configMaps, named('one'))
    const key = { name: 'one', namespace: NAMESPACE }
    expect(await kube.get(configMaps, key)).toMatchObject({ data: { a: '1' } })
    expect(await kube.get(configMaps, { ...key, name: 'none' })).toBeUndefined()
    await kube.patch(configMaps, key, { data: { b: '2' } }, { kind: 'merge' })
    await expect(kube.replace(configMaps, made)).rejects.toMatchObject({ reason: 'conflict' })
    expect((await kube.listAll(configMaps, { namespace: NAMESPACE })).map(({ metadata }) => metadata.name)).toContain(
      'one',
    )
    await using other = clientWith('other-token')
    await expect(other.get(configMaps, key)).rejects.toMatchObject({ reason: 'forbidden' })
    await using nobody = clientWith('no-token')
    await expect(nobody.get(configMaps, key)).rejects.toMatchObject({ reason: 'unauthorized' })
    const as = { user: 'other', groups: ['system:masters'] }
    await expect(other.patch(configMaps, key, { data: {} }, { kind: 'merge', as })).rejects.toMatchObject({
      reason: 'forbidden',
    })
    expect(await kube.patch(configMaps, key, { data: { c: '3' } }, { kind: 'merge', as })).toMatchObject({
      data: { a: '1', b: '2', c: '3' },
    })
  })

  it('follows what happens, in order, until it is ended', async () => {
    const stop = new AbortController()
    const events = kube.watch(configMaps, { namespace: NAMESPACE, signal: stop.signal })[Symbol.asyncIterator]()
    expect((await events.next()).value).toMatchObject({ type: 'reset' })
    const names = Array.from({ length: 50 }, (_, n) => `followed-${n}`)
    await Promise.all(names.map((name) => kube.create(configMaps, named(name))))
    const seen: string[] = []
    while (seen.length < names.length) {
      const { value } = await events.next()
      if (value?.type === 'added') seen.push(value.object.metadata.name)
    }
    expect(new Set(seen)).toEqual(new Set(names))
    const last = events.next()
    stop.abort()
    expect((await last).done).toBe(true)
  })

  it('ends a call that its caller gives up, with the reason', async () => {
    const stop = new AbortController()
    const call = kube.get(configMaps, { name: 'one', namespace: NAMESPACE }, stop.signal)
    stop.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')
  })
})
