import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Fault, KOLLECT_API_VERSION, type KollectKnown, kollectFaults } from '#kinds'
import {
  accessForContext,
  createKubeClient,
  isKubeError,
  type KubeClient,
  type Kubeconfig,
  loadKubeconfig,
} from '#kube'
import { seconds } from '#model'
import { configReader } from '#runtime'
import { inventoryKnown } from '../inventory-config.ts'
import { endpoints, openKeys, PLACEHOLDER, type StartFile, type StartObject, startFiles } from './init-manifests.ts'
import { attributesOf, KIND_WORDS, kindOf, sampleOf } from './init-sample.ts'
import { makeFolder } from './make-folder.ts'
import { ManifestError } from './manifest-files.ts'
import { type SinkWord, sinkWords } from './sink-words.ts'

/** Asks a question on the terminal; the answer, or what stands in brackets. */
export type Ask = (question: string, usual: string) => Promise<string>

export interface InitOptions {
  readonly folder: string
  /** absent: $KUBECONFIG, then ~/.kube/config, as far as there is one */
  readonly kubeconfig?: string
  readonly context?: string
  readonly kind?: string
  readonly namespace?: string
  /** absent: the manifests are the same for every cluster, and each agent writes under its own name */
  readonly cluster?: string
  readonly sink?: SinkWord
  /** of the sink; absent: its type */
  readonly name?: string
  readonly endpoint?: string
  /** absent: nobody is there to ask, what is usual is taken */
  readonly ask?: Ask
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/**
 * Writes a starting set of manifests into a folder: a profile, a target, an inventory, a sink and its Secret. Values are proposed by
 * what the cluster has of the kind.
 * @throws ManifestError where the folder holds something, or an answer cannot be used; KubeError where a cluster that was named
 *   cannot be read
 */
export async function init(
  options: InitOptions,
): Promise<{ readonly text: string; readonly notes: readonly string[] }> {
  const { folder, ask = async (_: string, usual: string) => usual, signal } = options
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new ManifestError(`${folder} holds something already: name a folder that is empty or not there`)
  const notes: string[] = []
  const cluster = await clusterOf(options)
  const kind = kindOf(options.kind ?? (await ask(`Which kind shall be collected (${KIND_WORDS})?`, 'Deployment')))
  const namespace = options.namespace ?? (await ask('Of which namespace?', cluster?.namespace ?? 'default'))
  const sink = options.sink ?? sinkOf(await ask(`Where shall the rows go (${sinkWords.join(', ')})?`, 'postgres'))
  const endpoint = options.endpoint ?? (sink === 'none' ? '' : await ask('At which address?', endpoints[sink]))
  const start = { kind, namespace, sink, endpoint, name: options.name ?? (sink === 'none' ? 'inventory' : sink) }
  const named = options.cluster === undefined ? {} : { cluster: options.cluster }
  const filesOf = (sample: unknown) => startFiles({ ...start, ...named, attributes: attributesOf(kind, sample) })
  let files = filesOf(undefined)
  let isReplacing = false
  if (cluster) {
    await using kube = createKubeClient(await accessForContext(cluster.config, cluster.context), {
      timeoutMs: seconds(15),
    })
    const sample = await sampleOf(kube, kind, namespace, signal)
    files = filesOf(sample)
    if (sample === undefined)
      notes.push(
        `there is no ${kind.kind} in the namespace ${namespace} yet: the values are what such objects usually have`,
      )
    const there = await replaced(kube, files, signal)
    isReplacing = there.length > 0
    notes.push(...there)
  } else notes.push('no kubeconfig was found: the values are what such objects usually have')
  checkAnswers(files, options)
  try {
    makeFolder(folder)
    // Credentials are written into one of them.
    for (const { name, text } of files) writeFileSync(join(folder, name), text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new ManifestError(`${folder} cannot be written: ${(error as Error).message}`)
  }
  const written = files.map(({ name }) => join(folder, name)).join('\n')
  const whose =
    options.cluster === undefined
      ? 'for every cluster: each writes under the CLUSTER_NAME of its agent'
      : `for ${options.cluster} alone`
  const steps = stepsOf(files, folder, isReplacing)
  return { text: `${written}\n\nThis set is ${whose}.\n${steps}\n`, notes }
}

/** What of the set is still to be filled in, and what to do with it. What replaces something is not to be applied as a whole. */
function stepsOf(files: readonly StartFile[], folder: string, isReplacing: boolean): string {
  const secret = files.find(({ name }) => name === 'secret.yaml')
  const open = secret ? openKeys(secret.object) : []
  const place = join(folder, 'secret.yaml')
  const filled = `${place} holds the credentials that were given: keep it out of git.\n`
  const fill = `in ${place} put your own credentials in place of ${PLACEHOLDER} (${open.join(', ')}), then `
  const apply = isReplacing ? '' : ` && kubectl apply -f ${folder}`
  return `${secret && open.length === 0 ? filled : ''}Next: ${open.length > 0 ? fill : ''}clusterpulse validate ${folder}${apply}`
}

/** What the cluster has under these names already: to apply the set replaces it. */
async function replaced(
  kube: KubeClient,
  files: readonly StartFile[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = []
  const fresh: string[] = []
  try {
    for (const { object, name } of files) {
      const { kind, metadata } = object
      const [group = '', version = ''] = KOLLECT_API_VERSION.split('/')
      const served = object.apiVersion === KOLLECT_API_VERSION && (await kube.find(group, version, kind, signal))
      if (!served) {
        fresh.push(name)
        continue
      }
      const resource = { group, version, plural: served.plural, kind, namespaced: true }
      if (await kube.get(resource, metadata, signal)) found.push(`${kind} ${metadata.namespace}/${metadata.name}`)
      else fresh.push(name)
    }
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    return ['whether the cluster has objects of these names already may not be read']
  }
  if (found.length === 0) return []
  // Secrets are not read: one is as new as its sink.
  const others = fresh.filter((name) => name !== 'secret.yaml' || fresh.includes('sink.yaml'))
  const only = others.length === 0 ? '' : `. To leave them as they are apply only ${others.join(', ')}`
  return [
    `the cluster has ${found.join(', ')} already: to apply these replaces them${only}; --name calls the sink, its Secret and the inventory otherwise`,
  ]
}

/** @throws ManifestError where what was answered makes an object that admission would refuse, or an address that no sink may be at */
function checkAnswers(files: readonly StartFile[], { environment }: InitOptions): void {
  const known = inventoryKnown(configReader(environment))
  const faults = files.flatMap(({ name, object }) =>
    (object.apiVersion === KOLLECT_API_VERSION
      ? kollectFaults(object.kind, object, known)
      : addressFaults(object, known)
    ).map(({ path, message }) => `${name}: ${path} ${message}`),
  )
  if (faults.length > 0) throw new ManifestError(`nothing was written, as it could not be used: ${faults.join('; ')}`)
}

/** Of a Secret with a connection string: its host is judged as that of any other sink. */
function addressFaults({ stringData }: StartObject, { hostProblem }: KollectKnown): readonly Fault[] {
  const { dsn = '' } = (stringData ?? {}) as Readonly<Record<string, string>> // of our own making
  const message = URL.canParse(dsn) ? hostProblem?.(new URL(dsn).hostname) : undefined
  return message === undefined ? [] : [{ path: 'stringData.dsn', message }]
}

function sinkOf(text: string): SinkWord {
  const word = sinkWords.find((one) => one === text.trim())
  if (!word) throw new ManifestError(`${JSON.stringify(text)} is no sink: write one of ${sinkWords.join(', ')}`)
  return word
}

interface Sampled {
  readonly config: Kubeconfig
  readonly context: string
  readonly namespace: string | undefined
}

/** The cluster that is looked at; undefined where no kubeconfig is there and none was named. */
async function clusterOf({ kubeconfig, context, environment }: InitOptions): Promise<Sampled | undefined> {
  const given = kubeconfig ?? environment.KUBECONFIG
  const usual = join(environment.HOME || homedir(), '.kube', 'config')
  if (!given && context === undefined && !existsSync(usual)) return undefined
  const config = await loadKubeconfig(given ? given.split(delimiter).filter(Boolean) : [usual])
  const name = context ?? config.currentContext
  if (name === undefined)
    throw new ManifestError(`${config.paths.join(', ')}: no current context is named; say which with --context`)
  const found = config.contexts.find((one) => one.name === name)
  return { config, context: name, namespace: found?.namespace || undefined }
}
