/** Hubs that look after members, as people start them: the embedded one, and one on a real kube-apiserver. */
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { parseAllDocuments, stringify } from 'yaml'
import { generateServingCertificate } from '#apiserver'
import type { AuditEntry } from '#audit'
import { redisMissing, startRedis, type TestRedis } from '../src/pipeline/state/test/redis-server.ts'
import { signerOf } from '../src/platform/authority/test/requests.ts'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'
import { clusterpulse, eventually, nobodysKubeconfig, program, type Running } from './process.ts'
import { type Assets, noRealApiServer, type RealApiServer, startRealApiServer } from './real-apiserver.ts'

export interface MemberHub extends AsyncDisposable {
  /** file of its administrator's kubeconfig */
  readonly kubeconfig: string
  readonly pid: number
  /** the audit trail so far */
  trail(): Promise<readonly AuditEntry[]>
}

/** Where an embedded hub writes its audit trail, in its folder. */
const AUDIT_FILE = 'audit.jsonl'

/** `clusterpulse up` with these arguments, on ports of its own. @param folder for what it keeps @param args default: nobody is its member */
export async function embeddedHub(folder: string, args?: readonly string[]): Promise<MemberHub> {
  const data = join(folder, 'data')
  const members = args ?? ['--kubeconfig', await nobodysKubeconfig(folder)]
  const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
  const env = { AUDIT_FILE: join(folder, AUDIT_FILE) }
  const hub = clusterpulse(['up', ...members, '--data-dir', data, ...ports], { env })
  await hub.says(/on http:\/\/127\.0\.0\.1:\d+/)
  return {
    kubeconfig: join(data, 'kubeconfig'),
    pid: hub.pid,
    trail: async () =>
      (await readFile(env.AUDIT_FILE, 'utf8'))
        .split('\n')
        .flatMap((line) => (line ? [(JSON.parse(line) as { entry: AuditEntry }).entry] : [])),
    // Asked, not killed: the agent it started ends with it and writes no more.
    [Symbol.asyncDispose]: async () => void (await hub.kill('SIGTERM')),
  }
}

export interface KubernetesHub extends MemberHub {
  /** of the role `api`, without a slash at its end; '' where there is none */
  readonly page: string
  /** where its webhooks are answered, without a slash at its end */
  readonly webhooks: string
  /** of a command that reads the audit trail */
  readonly auditEnv: Readonly<Record<string, string>>
  /** Ends the manager as a machine does that loses its power. */
  killManager(): Promise<void>
  /** Starts it again, as its pod is when it ended. */
  startManager(): void
}

export interface KubernetesHubOptions {
  /** agents come in over TLS, and the role `api` shows them; default: members speak to the API server alone */
  readonly receivesAgents?: boolean
  /** of which version its API server is; default: the usual one */
  readonly assets?: Assets
  /** its API server asks the Service of the manifests as they are; default: a URL on the loopback */
  readonly asksService?: boolean
  /** of both roles */
  readonly env?: Readonly<Record<string, string>>
}

/** Where the audit trail of such a hub is, in its Redis. */
const AUDIT_STREAM = 'audit'

/**
 * A real kube-apiserver with the controllers that members need: it signs certificates, fills roles that collect others, and ends
 * namespaces. Beside it the manager, as a service account with what `deploy/` grants and no more.
 */
export async function kubernetesHub(folder: string, options: KubernetesHubOptions = {}): Promise<KubernetesHub> {
  const { receivesAgents = false, asksService = false, env = {}, assets = 'KUBEBUILDER_ASSETS' } = options
  let real: RealApiServer | undefined
  let redis: TestRedis | undefined
  let manager: Running | undefined
  let api: Running | undefined
  let reader: Redis | undefined
  const stop = async () => {
    reader?.disconnect()
    await api?.kill('SIGTERM')
    await manager?.kill('SIGTERM')
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
  }
  try {
    const signer = signerOf('clients')
    real = await startRealApiServer(undefined, { clientCa: signer.certificate, assets })
    const controllers = ['certificatesigningrequest-signing', 'clusterrole-aggregation', 'namespace']
    const isControlled = await real?.runControllers(
      controllers.map((name) => `${name}-controller`),
      ['--cluster-signing-cert-file={dir}/signer.crt', '--cluster-signing-key-file={dir}/signer.key'],
      { 'signer.crt': signer.certificate, 'signer.key': signer.key },
    )
    if (!real || !isControlled) throw new Error('no real kube-apiserver with its controllers')
    redis = await startRedis()
    const kubeconfig = join(folder, 'admin.yaml')
    await writeFile(kubeconfig, real.kubeconfig)
    const kubectl = kubectlOf(kubeconfig)
    // What kubectl has against manifests is asked by the journey of deploying: it takes a third of a second to ask.
    const apply = (from: readonly string[], input?: string) =>
      kubectl(['apply', '--server-side', '--validate=false', ...from], input)
    for (const from of [
      ['-k', 'deploy/crds'],
      ['-k', 'deploy/crds/ocm'],
      ['-f', 'deploy/base/namespace.yaml'],
    ])
      await apply(from)
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    const component = ['shared-roles', 'role', 'deciders', 'connectors', 'webhooks-service'].flatMap((name) => [
      '-f',
      `deploy/components/members/${name}.yaml`,
    ])
    const webhooks = { host: asksService ? ownAddress() : '127.0.0.1', port: await freePort() }
    const origin = `https://${webhooks.host}:${webhooks.port}`
    if (asksService) await apply(['-f', 'deploy/components/members/webhooks.yaml'])
    else await apply(['-f', '-'], webhooksAt(origin))
    const parts = receivesAgents ? ['base/api.yaml', 'components/push/ingester.yaml'] : []
    const files = ['base/manager.yaml', ...parts].flatMap((file) => ['-f', `deploy/${file}`])
    await apply(['-n', 'clusterpulse', ...files, ...component])
    if (asksService) await apply(['-f', '-'], behindService(webhooks))
    const accountOf = async (name: string): Promise<string> => {
      const token = (await kubectl(['-n', 'clusterpulse', 'create', 'token', name])).trim()
      const own = join(folder, `${name}.yaml`)
      await writeFile(own, real?.kubeconfig.replace(/token: .*/, `token: ${token}`) ?? '')
      return own
    }
    const auditEnv = {
      ...{ AUDIT_REDIS_STREAM: AUDIT_STREAM, REDIS_HOST: redis.host, REDIS_PORT: String(redis.port) },
    }
    const shared = { MEMBERS: 'true', ...auditEnv, ...env }
    const managerEnv = {
      ...{ ...shared, KUBECONFIG: await accountOf('clusterpulse-manager'), DATA_DIR: join(folder, 'manager') },
      ...{ WEBHOOKS_ENABLED: 'true', WEBHOOKS_HOST: webhooks.host, WEBHOOKS_PORT: String(webhooks.port) },
      ...(!asksService && { WEBHOOKS_NAMES: webhooks.host }),
      ...(receivesAgents ? await agentsListener(folder) : { INGESTER_ENABLED: 'false' }),
    }
    const startManager = () => clusterpulse(['manager', '--leader-elect'], { env: managerEnv })
    const eyes = new Redis(redis.port, redis.host)
    reader = eyes
    let started = startManager()
    manager = started
    // Until the manager has written its CA there, nobody may make a cluster.
    await eventually(
      () => kubectl(['create', '--dry-run=server', '-f', '-'], TRIAL).catch(String),
      (said) => said.includes('created'),
      60_000,
    )
    let page = ''
    if (receivesAgents) {
      const apiEnv = { ...shared, KUBECONFIG: await accountOf('clusterpulse-api') }
      api = clusterpulse(['api', '--host', '127.0.0.1', '--port', '0'], { env: apiEnv })
      const [, address = ''] = await api.says(/on (http:\/\/127\.0\.0\.1:\d+)/)
      page = address
    }
    return {
      ...{ kubeconfig, page, webhooks: origin, auditEnv },
      get pid() {
        return started.pid
      },
      killManager: async () => void (await started.kill('SIGKILL')),
      startManager() {
        started = startManager()
        manager = started
      },
      trail: async () =>
        (await eyes.xrange(AUDIT_STREAM, '-', '+')).map(([, [, entry = '{}']]) => JSON.parse(entry) as AuditEntry),
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const TRIAL = JSON.stringify({
  ...{ apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster', metadata: { name: 'trial' } },
})

/** An address of this machine that others could reach: no Service has one of the loopback behind it. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const own = all.find(
    ({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'),
  )
  if (!own) throw new Error('this machine has no address beyond the loopback')
  return own.address
}

/** Why no Service can have anything behind it here; undefined where it can. */
export function noOwnAddress(): string | undefined {
  try {
    ownAddress()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** What the cluster's own controller makes of the Service and the pods of the manager. */
export function behindService({ host, port }: { readonly host: string; readonly port: number }): string {
  const metadata = { namespace: 'clusterpulse', labels: { 'kubernetes.io/service-name': 'clusterpulse-webhooks' } }
  const ports = [{ name: 'https', port, protocol: 'TCP' }]
  return [
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports },
      metadata: { ...metadata, name: 'clusterpulse-webhooks-1' },
      endpoints: [{ addresses: [host], conditions: { ready: true } }],
    },
    // Of API servers of before.
    {
      ...{ apiVersion: 'v1', kind: 'Endpoints', metadata: { ...metadata, name: 'clusterpulse-webhooks' } },
      subsets: [{ addresses: [{ ip: host }], ports }],
    },
  ]
    .map((object) => stringify(object))
    .join('---\n')
}

/** The manifest of the webhooks, for an API server that reaches no Service: only loopback. */
export function webhooksAt(origin: string): string {
  const documents = parseAllDocuments(readFileSync('deploy/components/members/webhooks.yaml', 'utf8'))
  return documents
    .map((document) => {
      const configuration = document.toJS() as {
        readonly webhooks: readonly { clientConfig: object }[]
      }
      for (const webhook of configuration.webhooks) webhook.clientConfig = { url: origin }
      return stringify(configuration)
    })
    .join('---\n')
}

/** A listener for agents with a certificate made by hand, as docs/guide/kubernetes-hub.md has it. */
async function agentsListener(folder: string): Promise<Readonly<Record<string, string>>> {
  const made = await generateServingCertificate({ hosts: ['clusterpulse-ingester.clusterpulse.svc'] })
  const at = (name: string) => join(folder, name)
  await writeFile(at('tls.crt'), made.cert)
  await writeFile(at('tls.key'), made.key, { mode: 0o600 })
  await writeFile(at('ca.crt'), made.ca)
  const port = await freePort()
  return {
    ...{ INGESTER_TLS_ENABLED: 'true', INGESTER_TLS_CERT: at('tls.crt'), INGESTER_TLS_KEY: at('tls.key') },
    ...{ INGESTER_HOST: '127.0.0.1', INGESTER_PORT: String(port), INGESTER_ADVERTISE: `127.0.0.1:${port}` },
    COLLECTOR_CA_FILE: at('ca.crt'),
  }
}

const PROGRAMS = ['etcd', 'kube-apiserver', 'kube-controller-manager']
const unlessRequired = (why: string | undefined) => (process.env.CI_REQUIRE_ALL === '1' ? undefined : why)

/** Why there can be no hub on Kubernetes here; undefined where there can, and with CI_REQUIRE_ALL=1. */
export const noKubernetesHub = (assets?: Assets): string | undefined =>
  unlessRequired(noRealApiServer(assets, PROGRAMS) ?? redisMissing)

const kubernetesHubOf = (title: string, assets: Assets) => ({
  title,
  open: (folder: string): Promise<MemberHub> => kubernetesHub(folder, { assets }),
  skip: noKubernetesHub(assets),
})

/** For `describe.each`. `skip` says why there can be no such hub here; with CI_REQUIRE_ALL=1 nothing is skipped. */
export const memberHubs: readonly {
  readonly title: string
  readonly skip: string | undefined
  /** @param args of `up`, where that is the hub */
  open(folder: string, args?: readonly string[]): Promise<MemberHub>
}[] = [
  // kubectl is where the real server is.
  { title: 'the embedded hub', open: embeddedHub, skip: unlessRequired(noRealApiServer()) },
  kubernetesHubOf('a hub on Kubernetes', 'KUBEBUILDER_ASSETS'),
]

/** The same, and a hub on the minor version of Kubernetes before. */
export const memberHubsOfAllVersions = [
  ...memberHubs.map((one) => ({ ...one, isOfFormer: false })),
  { ...kubernetesHubOf('a hub on the Kubernetes of before', 'KUBEBUILDER_ASSETS_FORMER'), isOfFormer: true },
]

/** `kubectl` with a kubeconfig. @returns what it says; throws what it complains of */
export function kubectlOf(kubeconfig: string) {
  return async (args: readonly string[], input?: string): Promise<string> => {
    const run = program('kubectl', ['--kubeconfig', kubeconfig, ...args], input === undefined ? {} : { input })
    const code = await run.ended()
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${run.stderr()}${run.stdout()}`)
    return run.stdout()
  }
}
