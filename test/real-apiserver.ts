/**
 * A real kube-apiserver with its own etcd on free ports of the loopback, for suites that must hold against the original.
 * The folder that holds both programs is named by KUBEBUILDER_ASSETS (the envtest convention); without it there is none.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterAccess } from '#kube'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'

export interface RealApiServer {
  /** a complete kubeconfig with one context, "real", of a cluster administrator */
  readonly kubeconfig: string
  readonly access: ClusterAccess
  /** the last lines of its log, for the message of a failed test */
  readonly log: () => string
  /** of its store: also answers JSON, at /v3/kv/range and /v3/kv/put */
  readonly etcdUrl: string
  /**
   * Lets the original's controller fill ClusterRoles that collect the rules of others.
   * @returns false where KUBEBUILDER_ASSETS holds no kube-controller-manager
   */
  aggregateRoles(): Promise<boolean>
  /**
   * Runs some of the original's controllers.
   * @param files put beside it, by name; arguments name them with `{dir}` before it
   * @returns false where KUBEBUILDER_ASSETS holds no kube-controller-manager
   */
  runControllers(
    names: readonly string[],
    args?: readonly string[],
    files?: Readonly<Record<string, string>>,
  ): Promise<boolean>
  stop(): Promise<void>
}

/** What names the folder of the programs: of the usual version, or of the minor version before. */
export type Assets = 'KUBEBUILDER_ASSETS' | 'KUBEBUILDER_ASSETS_FORMER'

/** Why there is no real server here; undefined where there is one. For `describe.skipIf` and its title. */
export function noRealApiServer(
  assets: Assets = 'KUBEBUILDER_ASSETS',
  programs: readonly string[] = ['etcd', 'kube-apiserver'],
): string | undefined {
  const folder = process.env[assets]
  if (!folder) return `${assets} is not set`
  const missing = programs.filter((name) => !existsSync(join(folder, name)))
  return missing.length > 0 ? `no ${missing.join(' and ')} in ${assets}` : undefined
}

/**
 * @param services the network of Services; its certificate is for the first address there, too
 * @param options clientCa: PEM of the CA whose client certificates it takes. assets: of which version; default the usual one.
 * asksServices: it asks the addresses behind Services (default), as no proxy of a node is here; else the name of an ExternalName
 * @returns undefined where no server is named; with CI_REQUIRE_ALL=1 that is an error.
 */
export async function startRealApiServer(
  services = '10.0.0.0/24',
  {
    clientCa,
    assets = 'KUBEBUILDER_ASSETS',
    asksServices = true,
  }: { readonly clientCa?: string; readonly assets?: Assets; readonly asksServices?: boolean } = {},
): Promise<RealApiServer | undefined> {
  const missing = noRealApiServer(assets)
  if (missing !== undefined) {
    if (process.env.CI_REQUIRE_ALL === '1') throw new Error(`a real kube-apiserver is required: ${missing}`)
    return undefined
  }
  for (let attempt = 1; ; attempt++)
    try {
      return await startOnce(process.env[assets] ?? '', { services, clientCa, asksServices })
    } catch (error) {
      // A port that was free when it was chosen may be taken by the time a program binds it.
      if (attempt === 3 || !String(error).includes('address already in use')) throw error
    }
}

interface How {
  readonly services: string
  readonly clientCa: string | undefined
  readonly asksServices: boolean
}

async function startOnce(folder: string, how: How): Promise<RealApiServer> {
  const dir = await mkdtemp(join(tmpdir(), 'real-apiserver-'))
  const children: Child[] = []
  const stop = async () => {
    for (const child of children.reverse()) await child.stop()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    return await start(folder, dir, { ...how, children, stop })
  } catch (error) {
    const log = children.map((child) => child.log()).join('\n')
    await stop()
    throw new Error(`the real kube-apiserver did not start: ${String(error)}\n${log}`, { cause: error })
  }
}

async function start(
  folder: string,
  dir: string,
  { services, clientCa, asksServices, children, stop }: How & { children: Child[]; stop: () => Promise<void> },
): Promise<RealApiServer> {
  const [etcdPort, peerPort, port] = await Promise.all([freePort(), freePort(), freePort()])
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  children.push(
    run(join(folder, 'etcd'), [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
      '--unsafe-no-fsync',
    ]),
  )
  const token = randomBytes(16).toString('hex')
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyFile = join(dir, 'service-account.pem')
  const tokenFile = join(dir, 'tokens.csv')
  await writeFile(keyFile, keys.privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 })
  await writeFile(tokenFile, `${token},admin,admin,"system:masters"\n`, { mode: 0o600 })
  const clients = join(dir, 'client-ca.crt')
  if (clientCa) await writeFile(clients, clientCa)
  const server = run(join(folder, 'kube-apiserver'), [
    `--etcd-servers=${etcdUrl}`,
    `--cert-dir=${dir}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--token-auth-file=${tokenFile}`,
    '--authorization-mode=RBAC',
    '--enable-bootstrap-token-auth=true',
    ...(clientCa ? [`--client-ca-file=${clients}`] : []),
    `--service-cluster-ip-range=${services}`,
    `--enable-aggregator-routing=${asksServices}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${keyFile}`,
    `--service-account-signing-key-file=${keyFile}`,
    // No controller-manager runs here: nobody makes service accounts or initialises storage classes and node taints.
    '--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection',
    '--allow-privileged=true',
    '--profiling=false',
    // A quarter of the work of its start, and nobody here is one of too many.
    '--enable-priority-and-fairness=false',
    '--event-ttl=10m',
  ])
  children.push(server)
  const origin = `https://127.0.0.1:${port}`
  const ca = await until(async () => {
    for (const child of children) child.throwIfEnded()
    const text = await readFile(join(dir, 'apiserver.crt'), 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const ready = (await status(`${origin}/readyz`, text, token)) === 200
    const namespaced = ready && (await status(`${origin}/api/v1/namespaces/default`, text, token)) === 200
    return namespaced ? text : undefined
  })
  const runControllers: RealApiServer['runControllers'] = async (names, args = [], files = {}) => {
    const program = join(folder, 'kube-controller-manager')
    if (!existsSync(program)) {
      if (process.env.CI_REQUIRE_ALL === '1') throw new Error(`a real controller is required: no ${program}`)
      return false
    }
    const own = { kubeconfig: kubeconfigOf(origin, ca, token), ...files }
    for (const [name, text] of Object.entries(own)) await writeFile(join(dir, name), text, { mode: 0o600 })
    const secured = ['--secure-port=0', `--cert-dir=${dir}`, '--leader-elect=false']
    const asked = [`--controllers=${names.join(',')}`, ...args.map((arg) => arg.replace('{dir}', dir))]
    children.push(run(program, [`--kubeconfig=${join(dir, 'kubeconfig')}`, ...asked, ...secured]))
    return true
  }
  return {
    access: { server: origin, ca, verifyTls: true, credentials: { kind: 'token', token } },
    kubeconfig: kubeconfigOf(origin, ca, token),
    log: server.log,
    etcdUrl,
    aggregateRoles: () => runControllers(['clusterrole-aggregation-controller']),
    runControllers,
    stop,
  }
}

function kubeconfigOf(server: string, ca: string, token: string): string {
  return `apiVersion: v1
kind: Config
current-context: real
clusters:
- name: real
  cluster:
    server: ${server}
    certificate-authority-data: ${Buffer.from(ca).toString('base64')}
users:
- name: admin
  user:
    token: ${token}
contexts:
- name: real
  context:
    cluster: real
    user: admin
`
}

interface Child {
  log(): string
  throwIfEnded(): void
  stop(): Promise<void>
}

/** The end of what the program says is kept, for the message of a failed start. */
function run(program: string, args: readonly string[]): Child {
  // Memory is thrown away with the process, and threads wait for each other at work: this saves a third of the time of its start.
  const child: ChildProcess = spawn(program, args, {
    env: { ...process.env, GOGC: 'off', GOMEMLIMIT: '600MiB', GOMAXPROCS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let tail = ''
  const keep = (chunk: Buffer) => {
    tail = (tail + chunk.toString('utf8')).slice(-8000)
  }
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)
  const killWithUs = () => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', (error) => {
      tail += String(error)
      resolve()
    })
  })
  return {
    log: () => tail,
    throwIfEnded: () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${program} ended\n${tail}`)
    },
    stop: async () => {
      // Nothing here is worth a graceful end: the data directory is thrown away.
      child.kill('SIGKILL')
      await ended
      process.removeListener('exit', killWithUs)
    },
  }
}

async function until<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const value = await attempt()
    if (value !== undefined) return value
    if (Date.now() > deadline) throw new Error('not ready within 60 s')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** @returns 0 where nobody answers. */
function status(url: string, ca: string, token: string): Promise<number> {
  return new Promise((resolve) => {
    const call = request(url, { ca, headers: { authorization: `Bearer ${token}` }, timeout: 5000 }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    call.once('timeout', () => call.destroy())
    call.once('error', () => resolve(0))
    call.end()
  })
}
