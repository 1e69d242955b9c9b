import { randomUUID } from 'node:crypto'
import { vi } from 'vitest'
import { type ApiObject, ApiServer, type ApiServerOptions, listenApi } from '#apiserver'
import type { Kind } from '#kinds'
import {
  type ClusterAccess,
  createKubeClient,
  customResourceDefinitions,
  type KubeClient,
  type KubeObject,
  namespaces as namespaceResource,
  whole,
} from '#kube'
import { noRealApiServer, startRealApiServer } from './real-apiserver.ts'

/** An API server as a hub's, with some of our kinds and namespaces, and an administrator's client of it. */
export interface HubApi extends AsyncDisposable {
  readonly kube: KubeClient
  readonly access: ClusterAccess
}

export interface HubApisOptions {
  readonly kinds: readonly Kind<unknown, unknown>[]
  readonly namespaces?: readonly string[]
  /** of the embedded one alone */
  readonly embedded?: Omit<ApiServerOptions, 'storage' | 'converters'>
}

/** The same promises on the embedded API and on a real kube-apiserver: title, whether it is not here, and how to open. */
export function hubApis({ kinds, namespaces = ['clusterpulse'], embedded }: HubApisOptions) {
  async function anEmbedded(): Promise<HubApi> {
    const converters = kinds.flatMap((kind) => kind.converters)
    const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub', converters, ...embedded })
    for (const kind of kinds) await server.objects.put(kind.crd({ converts: true }) as unknown as ApiObject)
    for (const name of namespaces)
      await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    const token = randomUUID()
    const listener = await listenApi({
      tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
      mounts: new Map([['', server]]),
    })
    const credentials = { kind: 'token' as const, token }
    const access = { server: listener.url, ca: listener.caPem, verifyTls: true, credentials }
    const kube = createKubeClient(access, { qps: 5_000, burst: 10_000 })
    return {
      kube,
      access,
      async [Symbol.asyncDispose]() {
        await kube[Symbol.asyncDispose]()
        await listener[Symbol.asyncDispose]()
        await server[Symbol.asyncDispose]()
      },
    }
  }

  async function aReal(): Promise<HubApi> {
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    const { access } = server
    const kube = createKubeClient(access)
    for (const kind of kinds) await kube.create(customResourceDefinitions, kind.crd() as unknown as KubeObject)
    for (const name of namespaces) await kube.create(whole(namespaceResource), { metadata: { name } })
    await vi.waitFor(
      async () => {
        for (const { group, version, plural, kind } of kinds)
          await kube.listAll({ group, version, plural, kind, namespaced: false })
      },
      { timeout: 80_000, interval: 50 },
    )
    return {
      kube,
      access,
      async [Symbol.asyncDispose]() {
        await kube[Symbol.asyncDispose]()
        await server.stop()
      },
    }
  }

  const missing = noRealApiServer()
  const real = {
    title: `a real kube-apiserver${missing === undefined ? '' : ` (skipped: ${missing})`}`,
    skip: missing !== undefined && process.env.CI_REQUIRE_ALL !== '1',
    isReal: true,
    open: aReal,
  }
  return { anEmbedded, both: [{ title: 'the embedded API', skip: false, isReal: false, open: anEmbedded }, real] }
}

/** Waits until it holds. */
export const until = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 80_000, interval: 20 })
