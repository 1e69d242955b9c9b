import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  type ApiListener,
  type ApiObject,
  ApiServer,
  type ClientAuthorities,
  type ListenOptions,
  listenApi,
  MASTERS,
  ObjectsLostError,
  type WriteObserver,
} from '#apiserver'
import {
  DEFAULT_MAX_EXPORT_BYTES,
  type KollectKnown,
  kinds,
  kollectAdmission,
  kollectKinds,
  ocmKinds,
  refusedKollectKinds,
} from '#kinds'
import { type ClusterAccess, createKubeClient, type KubeClient } from '#kube'
import { minutes } from '#model'
import { registrationAdmission } from '#registration'
import type { Logger, Metrics } from '#runtime'
import { createSealer, keptKeys, type Sealer } from '#sealing'
import { listenAtKept } from './kept-port.ts'
import { HUB_NAMESPACE } from './object-names.ts'

/** As whom the hub itself speaks to its API: what it writes is told from what people write. */
export const HUB_USER = 'clusterpulse'

/** The hub's own objects without a Kubernetes cluster: an embedded API that kubectl and our controllers speak to alike. */
export interface ControlPlane extends AsyncDisposable {
  readonly server: ApiServer
  readonly client: KubeClient
  /** seals what else is kept beside the objects */
  readonly sealer: Sealer
  /** for people: `kubectl --kubeconfig <path>` */
  readonly kubeconfigPath: string
  readonly url: string
  /** PEM of the CA that its API is known by */
  readonly ca: string
}

export interface ControlPlaneOptions {
  readonly dataDir: string
  readonly port: number
  /** PEM of CAs whose client certificates say who calls */
  readonly clientCa?: string
  /** keys that seal what is stored, the one in force first; none: that of the folder, made where there is none */
  readonly encryptionKeys?: readonly Buffer[]
  /** hears who writes what through the port, the hub itself left out */
  readonly observer?: WriteObserver
  /** opens the hub's CA, once nobody else has the folder: members that it signed are known by their certificates */
  readonly openAuthority?: (sealer: Sealer) => Promise<ClientAuthorities>
  /** by what objects of inventory are judged; default: strictly, with sinks anywhere */
  readonly inventory?: KollectKnown
  readonly version: string
  /** start with the objects that are left where some were lost */
  readonly acceptLoss?: boolean
  readonly logger: Logger
  readonly metrics?: Metrics
}

export async function openControlPlane({
  dataDir,
  port,
  clientCa,
  encryptionKeys = [],
  openAuthority,
  inventory = { semantics: 'strict', maxExportBytes: DEFAULT_MAX_EXPORT_BYTES },
  observer,
  version,
  acceptLoss = false,
  logger,
  metrics,
}: ControlPlaneOptions): Promise<ControlPlane> {
  const dir = join(dataDir, 'control-plane')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const objects = join(dir, 'objects')
  // A hub that was here before has objects: a folder that is gone or empty is a loss, not a beginning.
  const traces = [join(dir, 'admin.token'), join(dir, 'pki'), join(dataDir, 'log'), join(dataDir, 'state')]
  if (traces.some(existsSync) && isEmpty(objects) && !acceptLoss) throw new ObjectsLostError(objects, 'all', 0)
  const sealer = createSealer(await keysOf(dataDir, encryptionKeys, logger))
  const server = await ApiServer.open({
    storage: { kind: 'journal', dir: objects, acceptLoss, sealer },
    name: 'clusterpulse',
    defaultRoles: true,
    ...(openAuthority ? { clientCa: 'later' } : clientCa && { clientCa }),
    events: { lifeMs: minutes(60), perNamespace: 500, maxBytes: 16 * 1024 },
    admission: [...registrationAdmission, ...kollectAdmission(inventory)],
    ...(observer && { observer }),
    converters: ocmKinds.flatMap(({ converters }) => converters),
    version: {
      gitVersion: `v1.33.0+clusterpulse-${version.replace('+', '.')}`,
      platform: `${process.platform}/${process.arch}`,
    },
    logger,
  })
  try {
    for (const kind of [...kinds, ...ocmKinds, ...kollectKinds, ...refusedKollectKinds])
      await server.objects.put(kind.crd({ converts: true }) as unknown as ApiObject) // a CRD is an API object
    const namespaces = { group: '', version: 'v1', plural: 'namespaces' }
    if (!server.objects.get(namespaces, { name: HUB_NAMESPACE })) {
      await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HUB_NAMESPACE } })
    }
    const clientAuthorities = await openAuthority?.(sealer)
    if (clientAuthorities) await server.publishAuthorities(clientAuthorities, clientCa)
    const kubeconfigPath = kubeconfigOf(dataDir)
    const token = keptToken(join(dir, 'admin.token'), kubeconfigPath, logger)
    const own = randomBytes(32).toString('base64url')
    const tokens = [
      { token, user: 'admin', groups: [MASTERS] },
      { token: own, user: HUB_USER, groups: [MASTERS] },
    ]
    const listener = await listenWhereFree(server, dir, port, tokens, {
      sealer,
      logger,
      ...(metrics && { metrics }),
      ...(clientCa && { clientCa }),
      ...(clientAuthorities && { clientAuthorities }),
    })
    const text = listener.kubeconfig({ context: 'clusterpulse', token })
    writeFileSync(kubeconfigPath, text, { mode: 0o600 })
    const access: ClusterAccess = {
      server: listener.url,
      ca: listener.caPem,
      verifyTls: true,
      credentials: { kind: 'token', token: own },
    }
    // This very process answers, without a connection: a thousand members that join at once need not queue for it.
    const client = createKubeClient(access, { local: listener.answer, qps: 10_000, burst: 20_000 })
    return {
      server,
      client,
      sealer,
      kubeconfigPath,
      url: listener.url,
      ca: listener.caPem,
      async [Symbol.asyncDispose]() {
        await client[Symbol.asyncDispose]()
        await listener[Symbol.asyncDispose]()
        await server[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** Where `up` writes the kubeconfig for kubectl. */
export const kubeconfigOf = (dataDir: string): string => resolve(dataDir, 'kubeconfig')

/** Said of a file that is kept twice. */
export const harmedCopy =
  (logger: Pick<Logger, 'warn'>) =>
  (path: string): void =>
    logger.warn(
      { path },
      'one of two copies of a file was harmed or gone, and is made anew from the other: look at the disk',
    )

/** Where a key is kept that nobody gave. */
export const keyFile = (dataDir: string): string => join(dataDir, 'control-plane', 'encryption.key')

const keysOf = (dataDir: string, given: readonly Buffer[], logger: Logger) =>
  keptKeys({
    path: keyFile(dataDir),
    given,
    onHarmed: harmedCopy(logger),
    onMade: (key) =>
      logger.info(
        { key, path: keyFile(dataDir) },
        'what is stored is sealed with a key that is kept in the same folder: who has all of the folder can read it (docs/guide/encryption.md)',
      ),
  })

/**
 * What to tell once everything is open, and sealed anew where a former key had sealed it.
 * @returns undefined where every key at hand is needed
 */
export function unneededKeysWords({ sealer }: ControlPlane): string | undefined {
  const unneeded = sealer.unneededKeyIds()
  if (unneeded.length === 0) return undefined
  const [keys, they] = unneeded.length === 1 ? ['key', 'it'] : ['keys', 'they']
  return `Nothing of this folder is sealed with the former ${keys} ${unneeded.join(', ')} any more, but for backups and what was put aside: ${they} may go.`
}

/** The port of before, so that addresses stay; a free one where something else has it: the kubeconfig says which. */
async function listenWhereFree(
  server: ApiServer,
  dir: string,
  port: number,
  tokens: ListenOptions['tokens'],
  {
    sealer,
    ...own
  }: Pick<ListenOptions, 'metrics' | 'clientCa' | 'clientAuthorities'> & {
    readonly sealer: Sealer
    readonly logger: Logger
  },
): Promise<ApiListener> {
  const listen = (at: number) =>
    listenApi({
      host: '127.0.0.1',
      port: at,
      tls: { dir: join(dir, 'pki'), sealer },
      mounts: new Map([['', server]]),
      ...own,
      maxConnections: 2048,
      tokens,
    })
  if (port === 0) return listen(port)
  const file = join(dir, 'port')
  const onElsewhere = (at: number, since: 'now' | 'before') =>
    own.logger.warn(
      { wanted: port, port: at, file },
      since === 'now'
        ? "the port of the embedded Kubernetes API is taken; it has a free one from now on, see the kubeconfig: agents of Open Cluster Management need the new address, as do others' copies of it"
        : 'the embedded Kubernetes API is at another port than is set, which was taken before: to use that one, delete the file and start anew',
    )
  return listenAtKept(file, port, { listen, portOf: (listener) => listener.port, onElsewhere })
}

const isEmpty = (folder: string): boolean => !existsSync(folder) || readdirSync(folder).length === 0

/** 32 bytes in base64url: anything else is no token of ours, and an empty one must never open anything. */
const TOKEN = /^[\w-]{43}$/

function keptToken(path: string, kubeconfigPath: string, logger: Logger): string {
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined
  if (kept !== undefined && TOKEN.test(kept)) {
    const written = existsSync(kubeconfigPath) ? readFileSync(kubeconfigPath, 'utf8') : undefined
    if (written !== undefined && !written.includes(kept))
      logger.error(
        { path, kubeconfig: kubeconfigPath },
        'the administrator token is not that of the kubeconfig: one of both was altered; a new kubeconfig is written, and copies of the former one may be refused',
      )
    return kept
  }
  const token = randomBytes(32).toString('base64url')
  writeFileSync(`${path}.new`, token, { mode: 0o600 })
  renameSync(`${path}.new`, path)
  if (kept !== undefined)
    logger.error(
      { path },
      'the administrator token is damaged: a new one is made and written into the kubeconfig; copies of the former one are refused',
    )
  return token
}
