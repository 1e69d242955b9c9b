import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { type ApiObject, ApiServer, generateServingCertificate, listenApi } from '#apiserver'
import { MemoryCatalog } from '#catalog'
import type { Ingester } from '#ingest'
import { createKubeClient, type KubeClient, type Resource } from '#kube'
import { soleOwner } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { embeddedApi } from '../../../test/owned-fleet.ts'
import { AgentReceiver } from './agent-receiver.ts'
import { readManagerConfig } from './config.ts'
import { INGESTER_MAP } from './object-names.ts'
import type { HubLogger } from './run.ts'

/** Guards against hanging; `vi.waitFor` by itself waits for a second. */
const PATIENCE_MS = 20_000

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const NAMESPACE = 'clusterpulse'

let folder: string
let ca: string
let otherCa: string
let hub: KubeClient
const ended: AsyncDisposable[] = []
const errors: string[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'receiving-'))
  const made = async (name: string) =>
    (await generateServingCertificate({ hosts: ['localhost'], dir: join(folder, name) })).ca
  ;[ca, otherCa] = await Promise.all([made('one'), made('other')])
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'hub' })
  const listener = await listenApi({
    tokens: [{ token: 't', user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } } as ApiObject)
  hub = createKubeClient({
    ...{ server: listener.url, ca: listener.caPem, verifyTls: true },
    credentials: { kind: 'token', token: 't' },
  })
  ended.push(hub, listener, server)
})
afterAll(async () => {
  for (const one of ended) await one[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})
beforeEach(() => {
  errors.length = 0
})

/** With the settings of a manager; nothing is served. */
async function aReceiving(env: Readonly<Record<string, string>>, served?: KubeClient): Promise<AgentReceiver> {
  const { config } = readManagerConfig({ INGESTER_TLS_ENABLED: 'true', ...env })
  const heard = { ...silentLogger, error: (_: object, text: string) => void errors.push(text), child: () => heard }
  const logger = heard as unknown as HubLogger // of pino's logger no more is called
  return AgentReceiver.open({
    config: config.ingester,
    place: soleOwner,
    namespace: NAMESPACE,
    dataDir: folder,
    version: '1',
    hub: () => served ?? hub,
    ingester: () => {
      if (served) return {} as Ingester // nobody comes
      throw new Error('nothing is received here')
    },
    defaults: config.collection as never,
    catalog: new MemoryCatalog(),
    metrics: new Metrics(),
    logger,
  })
}
const handed = (receiver: AgentReceiver) => receiver.install().caPem?.()

it('hands agents the CA of COLLECTOR_CA_FILE, not that of the ConfigMap, and the new one when the file changes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await hub.create(configMaps, {
      metadata: { name: 'ingester-ca', namespace: NAMESPACE },
      data: { 'service-ca.crt': otherCa },
    })
    const file = join(folder, 'ca.crt')
    await writeFile(file, ca)
    await using receiver = await aReceiving({ COLLECTOR_CA_FILE: file })
    expect(handed(receiver)).toBe('')
    await vi.waitFor(() => expect(handed(receiver)).toBe(ca), PATIENCE_MS)
    // As cert-manager renews it in the mounted Secret.
    await writeFile(`${file}.new`, `${otherCa}${ca}`)
    await rename(`${file}.new`, file)
    await vi.advanceTimersByTimeAsync(60_000)
    await vi.waitFor(() => expect(handed(receiver)).toBe(`${otherCa}${ca}`), PATIENCE_MS)
    await using byMap = await aReceiving({})
    await vi.waitFor(() => expect(handed(byMap)).toBe(otherCa), PATIENCE_MS)
    expect(errors).toEqual([])
  } finally {
    vi.useRealTimers()
  }
})

it('tells `connect` the CA that members know the hub by from now on, while it runs', async () => {
  await mkdir(join(folder, 'api'))
  const api = await embeddedApi(join(folder, 'api'))
  await using kube = createKubeClient(api.access)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { cert, key } = await generateServingCertificate({ hosts: ['localhost'], dir: join(folder, 'served') })
    const files = {
      crt: join(folder, 'served.crt'),
      key: join(folder, 'served.key'),
      ca: join(folder, 'served-ca.crt'),
    }
    await Promise.all([writeFile(files.crt, cert), writeFile(files.key, key), writeFile(files.ca, ca)])
    await using receiver = await aReceiving(
      {
        ...{ INGESTER_TLS_CERT: files.crt, INGESTER_TLS_KEY: files.key, COLLECTOR_CA_FILE: files.ca },
        ...{ INGESTER_HOST: '127.0.0.1', INGESTER_PORT: '0', INGESTER_ADVERTISE: 'hub.example:9443' },
      },
      kube,
    )
    const leading = new AbortController()
    const served = receiver.whileLeading(leading.signal)
    const told = async () => {
      const map = await kube.get(configMaps, { name: INGESTER_MAP, namespace: NAMESPACE })
      return (map?.data as Record<string, string> | undefined)?.['ca.crt']
    }
    await vi.waitFor(async () => expect(await told()).toBe(ca), PATIENCE_MS)
    await writeFile(files.ca, `${ca}${otherCa}`)
    await vi.advanceTimersByTimeAsync(70_000)
    await vi.waitFor(async () => expect(await told()).toBe(`${ca}${otherCa}`), PATIENCE_MS)
    await writeFile(files.ca, otherCa)
    await vi.advanceTimersByTimeAsync(70_000)
    await vi.waitFor(async () => expect(await told()).toBe(otherCa), PATIENCE_MS)
    leading.abort()
    await served
  } finally {
    vi.useRealTimers()
    await api.close()
  }
})

it.each([
  [
    'no certificate',
    (path: string) => writeFile(path, 'a key'),
    /holds no certificate in PEM; name it with COLLECTOR_CA_FILE/,
  ],
  ['no file', () => Promise.resolve(), /ENOENT.*name it with COLLECTOR_CA_FILE/],
])(
  'deploys no agent that would trust nobody where COLLECTOR_CA_FILE is %s, and says so',
  async (name, write, words) => {
    const file = join(folder, name.replace(' ', '-'))
    await write(file)
    await using receiver = await aReceiving({ COLLECTOR_CA_FILE: file })
    await vi.waitFor(() => expect(errors).toEqual([expect.stringMatching(words)]), PATIENCE_MS)
    expect(handed(receiver)).toBe('')
  },
)

it('deploys agents with the pull secret and the volume that the settings name, and without a volume where the size is 0', async () => {
  await using named = await aReceiving({
    AGENT_IMAGE_PULL_SECRET: 'registry-login',
    AGENT_BUFFER_SIZE: '5Gi',
    AGENT_BUFFER_STORAGE_CLASS: 'fast',
  })
  expect(named.install()).toMatchObject({
    imagePullSecret: 'registry-login',
    bufferVolume: { size: '5Gi', storageClass: 'fast' },
  })
  await using bare = await aReceiving({ AGENT_BUFFER_SIZE: '0' })
  expect(bare.install()).not.toHaveProperty('imagePullSecret')
  expect(bare.install()).not.toHaveProperty('bufferVolume')
})
