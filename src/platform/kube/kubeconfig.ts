import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { FleetError } from '#model'
import type { ClusterAccess, Impersonation } from './types.ts'

/** A kubeconfig cannot be used. The sentence names the file or entry and what to correct. */
export class KubeconfigError extends FleetError {
  override readonly name = 'KubeconfigError'
  readonly code = 'kubeconfig_invalid'
  readonly retryable = false
}

/** An entry with the folder of its file: relative paths in it are relative to that. */
interface Entry {
  readonly name: string
  readonly value: Fields
  readonly folder: string
}

/** A context of a kubeconfig. */
export interface KubeContext {
  readonly name: string
  readonly cluster: string
  /** '' for none */
  readonly user: string
  /** '' for none */
  readonly namespace: string
}

/** Kubeconfig files merged as kubectl merges them: the first file that names an entry wins. */
export interface Kubeconfig {
  readonly paths: readonly string[]
  /** in the order of the files */
  readonly contexts: readonly KubeContext[]
  /** '' for none */
  readonly currentContext: string
  readonly clusters: ReadonlyMap<string, Entry>
  readonly users: ReadonlyMap<string, Entry>
}

type Fields = Readonly<Record<string, unknown>>

/** The kubeconfig files to read: the one named, else `KUBECONFIG`, else the usual place; none where nothing is there. */
export function kubeconfigPaths(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (named !== undefined) return [resolve(named)]
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '')
  if (listed.length > 0) return listed.map((path) => resolve(path))
  const usual = join(homedir(), '.kube', 'config')
  return existsSync(usual) ? [usual] : []
}

/**
 * Reads and merges kubeconfig files. As in kubectl, a missing one of several is passed over.
 * @throws KubeconfigError for a missing single file, broken YAML (with its line), and a file that is no kubeconfig.
 */
export async function loadKubeconfig(paths: readonly string[]): Promise<Kubeconfig> {
  if (paths.length === 0) throw new KubeconfigError('no kubeconfig file is named; give one with --kubeconfig')
  const files: { path: string; text: string }[] = []
  let missing: unknown
  for (const path of paths) {
    try {
      files.push({ path, text: await readFile(path, 'utf8') })
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw unreadable('kubeconfig', path, cause)
      missing = cause
    }
  }
  if (files.length === 0) throw unreadable('kubeconfig', paths.join(', '), missing)
  return mergeKubeconfigs(files)
}

/** Merges kubeconfigs already read; `path` is for messages and relative paths. */
export function mergeKubeconfigs(files: readonly { readonly path: string; readonly text: string }[]): Kubeconfig {
  const contexts = new Map<string, Entry>()
  const clusters = new Map<string, Entry>()
  const users = new Map<string, Entry>()
  let currentContext = ''
  for (const { path, text } of files) {
    const file = parseFile(path, text)
    const folder = dirname(resolve(path))
    addEntries(contexts, file.contexts, 'context', path, folder)
    addEntries(clusters, file.clusters, 'cluster', path, folder)
    addEntries(users, file.users, 'user', path, folder)
    currentContext ||= textOf(file['current-context'])
  }
  return {
    paths: files.map((file) => file.path),
    contexts: [...contexts.values()].map(({ name, value }) => ({
      name,
      cluster: textOf(value.cluster),
      user: textOf(value.user),
      namespace: textOf(value.namespace),
    })),
    currentContext,
    clusters,
    users,
  }
}

function parseFile(path: string, text: string): Fields {
  const document = parseDocument(text, { prettyErrors: true })
  const [fault] = document.errors
  if (fault) {
    const line = fault.linePos?.[0].line
    const what = fault.message.split('\n', 1)[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? ''
    throw new KubeconfigError(`${path}${line === undefined ? '' : `, line ${line}`}: broken YAML: ${what}`)
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 100 })
  } catch (cause) {
    throw new KubeconfigError(`${path}: broken YAML: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
  if (value === null || value === undefined) return {} // kubectl too takes an empty file for an empty configuration.
  if (!isFields(value))
    throw new KubeconfigError(`${path} is no kubeconfig: it does not hold clusters, users and contexts`)
  if (value.kind !== undefined && value.kind !== 'Config') {
    throw new KubeconfigError(`${path} is no kubeconfig: it is of kind ${JSON.stringify(value.kind)}`)
  }
  return value
}

function addEntries(into: Map<string, Entry>, list: unknown, what: string, path: string, folder: string): void {
  if (list === null || list === undefined) return
  if (!Array.isArray(list)) throw new KubeconfigError(`${path}: ${what}s must be a list`)
  for (const item of list) {
    const name = isFields(item) ? textOf(item.name) : ''
    if (!isFields(item) || name === '') throw new KubeconfigError(`${path}: a ${what} has no name`)
    const value = item[what]
    if (!into.has(name)) into.set(name, { name, value: isFields(value) ? value : {}, folder })
  }
}

/**
 * How to reach and enter the cluster of a context; the current one where none is named. Reads the files it refers to.
 * @throws KubeconfigError for an unknown context (with those there are), a missing cluster or user, unusable files.
 */
export async function accessForContext(
  config: Kubeconfig,
  name: string = config.currentContext,
): Promise<ClusterAccess> {
  const context = config.contexts.find((candidate) => candidate.name === name)
  if (!context) throw unknownContext(config, name)
  const cluster = config.clusters.get(context.cluster)
  if (!cluster) {
    throw new KubeconfigError(
      `context ${quote(name)} names the cluster ${quote(context.cluster)}, which is not in the file`,
    )
  }
  const user = context.user === '' ? undefined : config.users.get(context.user)
  if (!user && context.user !== '') {
    throw new KubeconfigError(`context ${quote(name)} names the user ${quote(context.user)}, which is not in the file`)
  }
  const server = textOf(cluster.value.server)
  if (!/^https?:\/\//i.test(server)) {
    throw new KubeconfigError(`cluster ${quote(cluster.name)} has no server address; write it as https://host:port`)
  }
  const skipsTls = cluster.value['insecure-skip-tls-verify'] === true
  const ca = skipsTls ? undefined : await pem(cluster, 'certificate-authority')
  const tlsServerName = textOf(cluster.value['tls-server-name'])
  const proxyUrl = textOf(cluster.value['proxy-url'])
  const as = user && impersonationOf(user)
  return {
    server: server.replace(/\/+$/, ''),
    verifyTls: !skipsTls,
    ...(ca === undefined ? {} : { ca }),
    ...(tlsServerName ? { tlsServerName } : {}),
    ...(proxyUrl ? { proxyUrl } : {}),
    ...(as && { as }),
    credentials: user ? await credentialsOf(user) : { kind: 'none' },
  }
}

/** As whom the user of a kubeconfig acts: `as`, `as-uid`, `as-groups` and `as-user-extra`, as kubectl reads them. */
function impersonationOf({ name, value }: Entry): Impersonation | undefined {
  const user = textOf(value.as)
  const uid = textOf(value['as-uid'])
  const groups = textsOf(value['as-groups'])
  const extra = Object.entries(isFields(value['as-user-extra']) ? value['as-user-extra'] : {})
  if (user === '') {
    if (uid === '' && groups.length === 0 && extra.length === 0) return undefined
    throw new KubeconfigError(
      `user ${quote(name)} has groups, a uid or more of somebody to act as, and no \`as\` that names the user`,
    )
  }
  return {
    user,
    ...(groups.length > 0 && { groups }),
    ...(uid && { uid }),
    ...(extra.length > 0 && { extra: Object.fromEntries(extra.map(([key, values]) => [key, textsOf(values)])) }),
  }
}

function unknownContext(config: Kubeconfig, name: string): KubeconfigError {
  const where = config.paths.join(', ')
  const known = config.contexts.map((context) => context.name)
  const list = known.length > 20 ? `${known.slice(0, 20).join(', ')} and ${known.length - 20} more` : known.join(', ')
  if (known.length === 0) return new KubeconfigError(`${where} has no context`)
  if (name === '') return new KubeconfigError(`${where} has no current context; name one of: ${list}`)
  return new KubeconfigError(`${where} has no context ${quote(name)}; there are: ${list}`)
}

async function credentialsOf(user: Entry): Promise<ClusterAccess['credentials']> {
  const { value } = user
  // kubectl's order: a certificate, a token, a password, a command.
  const cert = await pem(user, 'client-certificate')
  const key = await pem(user, 'client-key')
  if ((cert === undefined) !== (key === undefined)) {
    throw new KubeconfigError(`user ${quote(user.name)} has a client certificate or a client key, but not both`)
  }
  if (cert !== undefined && key !== undefined) return { kind: 'certificate', cert, key }
  const tokenFile = textOf(value.tokenFile)
  if (tokenFile) return { kind: 'tokenFile', path: inFolder(user, tokenFile) }
  const token = textOf(value.token)
  if (token) return { kind: 'token', token }
  const username = textOf(value.username)
  if (username) return { kind: 'basic', username, password: textOf(value.password) }
  if (isFields(value.exec)) return execOf(user, value.exec)
  if (isFields(value['auth-provider'])) {
    const provider = textOf(value['auth-provider'].name)
    const why = `the auth-provider ${quote(provider)}, which Kubernetes has removed; use an exec credential command instead`
    throw new KubeconfigError(`user ${quote(user.name)} signs in with ${why}`)
  }
  return { kind: 'none' }
}

function execOf(user: Entry, exec: Fields): ClusterAccess['credentials'] {
  const command = textOf(exec.command)
  const apiVersion = textOf(exec.apiVersion)
  if (!command) throw new KubeconfigError(`user ${quote(user.name)} has an exec entry without a command`)
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion)) {
    const why = `asks for ${quote(apiVersion)}; use client.authentication.k8s.io/v1 or v1beta1`
    throw new KubeconfigError(`the exec entry of user ${quote(user.name)} ${why}`)
  }
  if (exec.interactiveMode === 'Always') {
    throw new KubeconfigError(
      `the credential command of user ${quote(user.name)} needs a terminal, which we do not have`,
    )
  }
  const pairs = (Array.isArray(exec.env) ? exec.env : []).filter(isFields)
  const installHint = textOf(exec.installHint)
  return {
    kind: 'exec',
    // A path is relative to the file; a bare name is looked up in PATH.
    command: /[/\\]/.test(command) ? inFolder(user, command) : command,
    args: (Array.isArray(exec.args) ? exec.args : []).map(String),
    env: Object.fromEntries(pairs.map((pair) => [textOf(pair.name), textOf(pair.value)])),
    apiVersion,
    ...(exec.provideClusterInfo === true ? { provideClusterInfo: true } : {}),
    ...(installHint ? { installHint } : {}),
  }
}

/** The PEM text of `field-data` (base64), else of the file that `field` names. */
async function pem(entry: Entry, field: string): Promise<string | undefined> {
  const data = textOf(entry.value[`${field}-data`]).replace(/\s+/g, '')
  if (data) {
    const text = Buffer.from(data, 'base64').toString('utf8')
    if (text.includes('-----BEGIN')) return text
    throw new KubeconfigError(`${field}-data of ${quote(entry.name)} is no PEM in base64`)
  }
  const path = textOf(entry.value[field])
  if (!path) return undefined
  const file = inFolder(entry, path)
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (cause) {
    throw unreadable(`${field} of ${quote(entry.name)}`, file, cause)
  }
  if (text.includes('-----BEGIN')) return text
  throw new KubeconfigError(`${field} of ${quote(entry.name)}: ${file} is no PEM`)
}

function inFolder(entry: Entry, path: string): string {
  return isAbsolute(path) ? path : resolve(entry.folder, path)
}

function unreadable(what: string, path: string, cause: unknown): KubeconfigError {
  const { code } = cause as NodeJS.ErrnoException
  const why = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code ?? String(cause)})`
  return new KubeconfigError(`${what}: ${path} ${why}`, { cause })
}

function quote(text: string): string {
  return JSON.stringify(text)
}

function textsOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : []).map(textOf)
}

/** Names and tokens of digits only are numbers to YAML. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
