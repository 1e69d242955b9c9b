import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { KOLLECT_API_VERSION, kollectFaults } from '#kinds'
import { accessForContext, createKubeClient, type Kubeconfig, loadKubeconfig } from '#kube'
import { clusterNameFrom, seconds } from '#model'
import { configReader } from '#runtime'
import { inventoryKnown } from '../inventory-config.ts'
import { endpoints, type StartFile, startFiles } from './init-manifests.ts'
import { attributesOf, KIND_WORDS, kindOf, sampleOf } from './init-sample.ts'
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
  readonly cluster?: string
  readonly sink?: SinkWord
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
  const identity =
    options.cluster ?? (await ask('What is this cluster called in the sink?', cluster?.identity ?? 'cluster'))
  const sink = options.sink ?? sinkOf(await ask(`Where shall the rows go (${sinkWords.join(', ')})?`, 'postgres'))
  const endpoint = options.endpoint ?? (sink === 'none' ? '' : await ask('At which address?', endpoints[sink]))
  let sample: unknown
  if (cluster) {
    await using kube = createKubeClient(await accessForContext(cluster.config, cluster.context), {
      timeoutMs: seconds(15),
    })
    sample = await sampleOf(kube, kind, namespace, signal)
    if (sample === undefined)
      notes.push(
        `there is no ${kind.kind} in the namespace ${namespace} yet: the values are what such objects usually have`,
      )
  } else notes.push('no kubeconfig was found: the values are what such objects usually have')
  const attributes = attributesOf(kind, sample)
  const files = startFiles({ kind, attributes, namespace, cluster: identity, sink, endpoint })
  checkAnswers(files, options)
  mkdirSync(folder, { recursive: true })
  // Credentials are written into one of them.
  for (const { name, text } of files) writeFileSync(join(folder, name), text, { flag: 'wx', mode: 0o600 })
  const written = files.map(({ name }) => join(folder, name)).join('\n')
  return { text: `${written}\n\nNext: clusterpulse validate ${folder}\n`, notes }
}

/** @throws ManifestError where what was answered makes an object that admission would refuse */
function checkAnswers(files: readonly StartFile[], { environment }: InitOptions): void {
  const known = inventoryKnown(configReader(environment))
  const faults = files
    .filter(({ object }) => object.apiVersion === KOLLECT_API_VERSION)
    .flatMap(({ name, object }) =>
      kollectFaults(object.kind, object, known).map(({ path, message }) => `${name}: ${path} ${message}`),
    )
  if (faults.length > 0) throw new ManifestError(`nothing was written, as it could not be used: ${faults.join('; ')}`)
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
  readonly identity: string
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
  const identity = clusterNameFrom(name)
    .slice(0, 63)
    .replace(/[-.]+$/, '')
  return { config, context: name, namespace: found?.namespace || undefined, identity }
}
