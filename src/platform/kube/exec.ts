import { execFile } from 'node:child_process'
import { KubeError } from './errors.ts'
import type { ClusterAccess } from './types.ts'

type ExecCredentials = Extract<ClusterAccess['credentials'], { kind: 'exec' }>

interface ExecResult {
  readonly authorization?: string
  readonly certificate?: { readonly cert: string; readonly key: string }
  /** ms since the Unix epoch; absent: as long as the server takes it */
  readonly expiresAt?: number
}

const GROUP = 'client.authentication.k8s.io'
const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 1024 * 1024

/**
 * Asks a credential plug-in (kubectl's exec protocol, never interactive, no shell) for a token or a client certificate.
 * @throws KubeError `unauthorized` with the end of what the command printed as error.
 */
export async function runExecPlugin(plugin: ExecCredentials, access: ClusterAccess): Promise<ExecResult> {
  const apiVersion = plugin.apiVersion ?? `${GROUP}/v1`
  const info = {
    kind: 'ExecCredential',
    apiVersion,
    spec: { interactive: false, ...(plugin.provideClusterInfo ? { cluster: clusterInfo(access) } : {}) },
  }
  // The command lives in our environment (PATH, HOME, cloud profiles) as under kubectl; nothing here reads from it.
  const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }
  const text = await output(plugin, env)
  return readCredential(plugin, apiVersion, text)
}

function clusterInfo(access: ClusterAccess): Record<string, unknown> {
  return {
    server: access.server,
    ...(access.ca ? { 'certificate-authority-data': Buffer.from(access.ca).toString('base64') } : {}),
    ...(access.verifyTls ? {} : { 'insecure-skip-tls-verify': true }),
    ...(access.tlsServerName ? { 'tls-server-name': access.tlsServerName } : {}),
    ...(access.proxyUrl ? { 'proxy-url': access.proxyUrl } : {}),
  }
}

function output(plugin: ExecCredentials, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      env,
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT_BYTES,
      killSignal: 'SIGKILL',
      windowsHide: true,
    } as const
    const child = execFile(plugin.command, [...plugin.args], options, (error, stdout, stderr) => {
      if (error) reject(failure(plugin, error, stderr))
      else resolve(stdout)
    })
    // A plug-in that asks a question gets an end of input, not a hang.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end()
  })
}

function failure(
  plugin: ExecCredentials,
  error: Error & { code?: unknown; killed?: boolean },
  stderr: string,
): KubeError {
  const what = `the credential command ${JSON.stringify(plugin.command)}`
  if (error.code === 'ENOENT' || error.code === 'EACCES') {
    const hint = plugin.installHint
      ? `. ${plugin.installHint.trim().slice(0, 500)}`
      : '; install it or correct the kubeconfig'
    return new KubeError('unauthorized', `${what} was not found or may not be run${hint}`, { cause: error })
  }
  const tail = stderr.trim().slice(-500)
  const how = error.killed ? `did not end within ${TIMEOUT_MS / 1000} s` : `failed (${String(error.code)})`
  // Not the cause: its message repeats the arguments, which may hold a secret.
  return new KubeError('unauthorized', `${what} ${how}${tail ? `: ${tail}` : ''}`)
}

function readCredential(plugin: ExecCredentials, apiVersion: string, text: string): ExecResult {
  const bad = (why: string) =>
    new KubeError(
      'unauthorized',
      `the credential command ${JSON.stringify(plugin.command)} ${why}; update it or the kubeconfig`,
    )
  let answer: { kind?: unknown; apiVersion?: unknown; status?: Record<string, unknown> }
  try {
    answer = JSON.parse(text)
  } catch {
    throw bad('did not print JSON')
  }
  if (answer?.kind !== 'ExecCredential') throw bad('did not print an ExecCredential')
  if (answer.apiVersion !== apiVersion) throw bad(`answers in ${String(answer.apiVersion)}, not in ${apiVersion}`)
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = answer.status ?? {}
  const expiresAt = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Number.NaN
  const hasPair = typeof cert === 'string' && cert !== '' && typeof key === 'string' && key !== ''
  const hasToken = typeof token === 'string' && token !== ''
  if (!hasPair && !hasToken) throw bad('gave neither a token nor a certificate with its key')
  return {
    ...(hasToken ? { authorization: `Bearer ${token}` } : {}),
    ...(hasPair ? { certificate: { cert, key } } : {}),
    ...(Number.isNaN(expiresAt) ? {} : { expiresAt }),
  }
}
