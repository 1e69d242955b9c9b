import { mkdir, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { AddressRefusedError, type OutboundGuard } from '#outbound'
import { SinkError, type SnapshotDeclaration } from '../sink.ts'
import type { GitRemote } from './remote.ts'

/** How git reaches a remote: for one address of it, or all, what the child gets as its environment. */
export interface GitAccess extends AsyncDisposable {
  /** one for each way to try, in turn */
  readonly environments: readonly Readonly<Record<string, string>>[]
  /** addresses that are connected to; none for a file */
  readonly addresses: readonly string[]
}

export interface AccessOptions {
  readonly remote: GitRemote
  readonly declaration: SnapshotDeclaration
  readonly guard: OutboundGuard
  /** made, and removed at the end */
  readonly directory: string
}

/** What the Secret of a sink holds. */
interface Credentials {
  readonly user: string | undefined
  readonly password: string | undefined
  readonly key: string | undefined
  readonly knownHosts: string | undefined
}

/** Texts that no message may hold. */
export const secretsOf = ({ credentials }: SnapshotDeclaration): readonly string[] => {
  const { password } = credentialsOf(credentials)
  return password === undefined ? [] : [password, basic('', password), encodeURIComponent(password)]
}

/**
 * Judges where the remote is, and prepares what git needs to get there: nothing of it stands in arguments, nor in the configuration of a
 * repository. Keys of ssh are files for as long as this is open.
 * @throws SinkError
 */
export async function openAccess(options: AccessOptions, signal: AbortSignal): Promise<GitAccess> {
  const { remote, directory } = options
  const addresses = await addressesOf(options, signal)
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const close = () => rm(directory, { recursive: true, force: true })
  try {
    const environments =
      remote.scheme === 'ssh' ? await sshEnvironments(options, addresses) : [await httpEnvironment(options, addresses)]
    return { environments, addresses, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}

async function addressesOf({ remote, guard }: AccessOptions, signal: AbortSignal): Promise<readonly string[]> {
  try {
    if (remote.scheme !== 'file') return await guard.addresses(remote.host, signal)
    // What opens the machine itself opens its files.
    guard.check('127.0.0.1')
    return []
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof AddressRefusedError) throw new SinkError('terminal', error.message, { cause: error })
    throw new SinkError('transient', `the name ${remote.host} is not known`, { cause: error })
  }
}

function credentialsOf(values: SnapshotDeclaration['credentials']): Credentials {
  const text = (...names: readonly string[]) => {
    const found = names.map((name) => values[name]).find((value) => value !== undefined && value.length > 0)
    return found && Buffer.from(found).toString('utf8')
  }
  const token = text('token')?.trim()
  const password = text('password')?.replace(/\r?\n$/, '')
  const user = text('username')?.trim()
  return {
    user: user ?? (token === undefined ? (password === undefined ? undefined : 'git') : 'x-access-token'),
    password: token ?? password,
    key: text('ssh-privatekey', 'identity', 'id_rsa'),
    knownHosts: text('known_hosts'),
  }
}

/** For every scheme: nothing of the machine's configuration, no prompt, no other transport. */
const common = (remote: GitRemote): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_ALLOW_PROTOCOL: remote.scheme,
})

/** Settings that are handed over in the environment: arguments can be seen by everybody on the machine. */
function configured(settings: readonly (readonly [string, string])[]): Record<string, string> {
  const entries = settings.flatMap(([key, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, key] as const,
    [`GIT_CONFIG_VALUE_${i}`, value] as const,
  ])
  return { GIT_CONFIG_COUNT: String(settings.length), ...Object.fromEntries(entries) }
}

/** What is true of every repository that is kept here. */
const LOCAL = [
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['core.hooksPath', '/dev/null'],
  // Within the memory that git may take (process.ts), on a machine of any number of cores.
  ['pack.threads', '1'],
  ['pack.windowMemory', '64m'],
  ['core.packedGitWindowSize', '32m'],
  ['core.packedGitLimit', '128m'],
  ['core.deltaBaseCacheLimit', '64m'],
  ['core.bigFileThreshold', '16m'],
] as const

/** For commands that connect to nobody. */
export const localEnvironment = (remote: GitRemote): Record<string, string> => ({
  ...common(remote),
  ...configured(LOCAL),
})

/** Answers git's question for credentials from its own environment. `printf` is one of the shell's own words: nobody sees its arguments. */
const HELPER = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$SINK_GIT_USER" "$SINK_GIT_PASSWORD"; }; f`

async function httpEnvironment(
  { remote, declaration, directory }: AccessOptions,
  addresses: readonly string[],
): Promise<Record<string, string>> {
  const { spec, credentials, caBundle } = declaration
  const { user = '', password, key } = credentialsOf(credentials)
  if (password === undefined && key !== undefined)
    throw new SinkError(
      'terminal',
      `the Secret holds an ssh key, and the endpoint is reached by ${remote.scheme}: give a token, or an ssh address`,
    )
  if (/[\r\n\0]/.test(`${user}${password ?? ''}`))
    throw new SinkError('terminal', 'the user or the password of the Secret has a line break in it')
  const settings: (readonly [string, string])[] = [
    ...LOCAL,
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '30'],
    ['credential.helper', ''],
  ]
  if (addresses.length > 0 && isIP(bare(remote.host)) === 0)
    settings.push(['http.curloptResolve', `${remote.host}:${remote.port}:${addresses.map(bracketed).join(',')}`])
  if (spec.tls?.insecureSkipVerify === true) settings.push(['http.sslVerify', 'false'])
  if (caBundle !== undefined) {
    const file = join(directory, 'ca.pem')
    await writeFile(file, caBundle, { mode: 0o600 })
    settings.push(['http.sslCAInfo', file])
  }
  const secret: Record<string, string> = {}
  if (password !== undefined && remote.scheme !== 'file') {
    settings.push(['credential.helper', HELPER])
    if (spec.git?.forceBasicAuth === true)
      settings.push(['http.extraHeader', `Authorization: Basic ${basic(user, password)}`])
    secret.SINK_GIT_USER = user
    secret.SINK_GIT_PASSWORD = password
  }
  return { ...common(remote), HOME: directory, ...configured(settings), ...secret }
}

const basic = (user: string, password: string): string => Buffer.from(`${user}:${password}`).toString('base64')
const bare = (host: string): string => host.replace(/^\[|\]$/g, '')
const bracketed = (address: string): string => (isIP(address) === 6 ? `[${address}]` : address)

/** Each address has a command of its own: ssh takes one. */
async function sshEnvironments(
  { remote, declaration, directory }: AccessOptions,
  addresses: readonly string[],
): Promise<readonly Record<string, string>[]> {
  const { key, knownHosts, password } = credentialsOf(declaration.credentials)
  const skipsCheck = declaration.spec.tls?.insecureSkipVerify === true
  if (key === undefined)
    throw new SinkError(
      'terminal',
      password === undefined
        ? 'the Secret has no ssh key: give one as ssh-privatekey'
        : 'the Secret holds a token, and the endpoint is reached by ssh: give a key as ssh-privatekey, or an https address',
    )
  if (hasPassphrase(key))
    throw new SinkError(
      'terminal',
      'the ssh key of the Secret has a passphrase, and nobody is there to type it: give a private key without one',
    )
  if (knownHosts === undefined && !skipsCheck)
    throw new SinkError(
      'terminal',
      'the Secret has no known_hosts: give the host key there, as `ssh-keyscan` prints it',
    )
  const file = async (name: string, text: string) => {
    const path = join(directory, name)
    await writeFile(path, text.endsWith('\n') ? text : `${text}\n`, { mode: 0o600 })
    return path
  }
  const options = {
    IdentityFile: await file('key', key),
    UserKnownHostsFile: skipsCheck ? '/dev/null' : await file('known_hosts', knownHosts ?? ''),
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: skipsCheck ? 'no' : 'yes',
    // The name that known_hosts has, whatever address is connected to.
    HostKeyAlias: remote.port === 22 ? bare(remote.host) : `[${bare(remote.host)}]:${remote.port}`,
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    BatchMode: 'yes',
    PreferredAuthentications: 'publickey',
    ClearAllForwardings: 'yes',
    ConnectTimeout: '20',
    ServerAliveInterval: '15',
    ServerAliveCountMax: '2',
  }
  return addresses.map((address) => ({
    ...common(remote),
    HOME: directory,
    ...configured(LOCAL),
    GIT_SSH_VARIANT: 'ssh',
    GIT_SSH_COMMAND: ['ssh', '-F', '/dev/null', ...sshOptions({ ...options, HostName: address })].map(quoted).join(' '),
  }))
}

/** Of a private key in the formats that ssh reads. @see PROTOCOL.key of OpenSSH: the name of the cipher follows the magic */
function hasPassphrase(key: string): boolean {
  if (/ENCRYPTED/.test(key)) return true
  const [, base64 = ''] = /BEGIN OPENSSH PRIVATE KEY-+([^-]*)/.exec(key) ?? []
  const bytes = Buffer.from(base64, 'base64')
  const head = 'openssh-key-v1\0'.length
  return bytes.length > head + 8 && bytes.toString('latin1', head + 4, head + 8) !== 'none'
}

const sshOptions = (options: Readonly<Record<string, string>>): string[] =>
  Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])

/** For a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
