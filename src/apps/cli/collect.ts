import { statSync } from 'node:fs'
import { realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit from 'p-limit'
import { type Declarations, declarationsOf, type TargetResult } from '#inventory'
import { accessForContext, type Kubeconfig, type KubeObject, kubeconfigPaths, loadKubeconfig } from '#kube'
import { FleetError } from '#model'
import { writeWhole } from '#sinks'
import { type ClusterResult, collectCluster } from './collect-cluster.ts'
import { chooseContexts, isGlob } from './collect-contexts.ts'
import { collectedOf, fileOf, written } from './collect-output.ts'
import type { CollectFormat } from './collect-words.ts'
import { table } from './format.ts'
import { makeFolder } from './make-folder.ts'
import { printable } from './terminal.ts'
import { judged, printedFinding } from './validate.ts'

export interface CollectOptions {
  /** files and folders of manifests; absent: what each cluster declares itself */
  readonly config?: readonly string[]
  readonly kubeconfig?: string
  /** names and globs; absent: the current context */
  readonly context?: readonly string[]
  readonly namespace?: string
  /** a file, a folder (it is one, or ends with /), `-` for standard output */
  readonly output: string
  readonly format: CollectFormat
  readonly dryRun: boolean
}

export interface CollectWays {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly now: () => number
  /** long work goes on */
  readonly onProgress: (text: string) => void
  /** data, where standard output is asked for */
  readonly out: (text: string) => void
}

/** For standard error. Status 0: all was collected; 1: some targets or objects failed; 2: nothing, or not even asked. */
export interface CollectAnswer {
  readonly text: string
  readonly notes: readonly string[]
  readonly status: 0 | 1 | 2
}

/** Clusters that are read at the same time. */
const AT_ONCE = 4

/** Collects once, from every context that is named, and writes what it has. A cluster that fails stops no other. */
export async function collect(options: CollectOptions, ways: CollectWays): Promise<CollectAnswer> {
  try {
    return await collected(options, ways)
  } catch (error) {
    if (ways.signal.aborted) return { text: '', notes: ['stopped before the end: nothing was written'], status: 2 }
    if (!(error instanceof FleetError)) throw error
    return { text: '', notes: error.message.split('\n'), status: 2 }
  }
}

async function collected(options: CollectOptions, ways: CollectWays): Promise<CollectAnswer> {
  const declared = options.config && readConfig(options.config, options.namespace ?? 'default', ways.environment)
  if (typeof declared === 'string') return { text: '', notes: declared.split('\n'), status: 2 }
  const config = await loadKubeconfig(kubeconfigPaths(options.kubeconfig, ways.environment))
  const contexts = options.context ?? [config.currentContext]
  const names = chooseContexts(
    contexts,
    config.contexts.map(({ name }) => name),
  )
  const exportedAt = new Date(ways.now()).toISOString()
  const turn = pLimit(AT_ONCE)
  const results = await Promise.all(
    names.map((cluster) => turn(() => collectContext(config, cluster, declared, options, ways))),
  )
  ways.signal.throwIfAborted()
  const asList = contexts.length > 1 || contexts.some(isGlob)
  const told = { text: summary(results), notes: results.flatMap(notesOf) }
  try {
    const wrote = await write(results, options, asList, exportedAt, ways)
    return {
      ...told,
      notes: [...told.notes, ...wrote],
      status: Math.max(...results.map(statusOf)) as 0 | 1 | 2,
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    return { ...told, notes: [...told.notes, `nothing more is written to ${options.output}: ${message}`], status: 2 }
  }
}

async function collectContext(
  config: Kubeconfig,
  cluster: string,
  declared: Declarations | undefined,
  { namespace }: CollectOptions,
  { signal, onProgress }: CollectWays,
): Promise<ClusterResult> {
  try {
    const access = await accessForContext(config, cluster)
    onProgress(`${cluster}: connecting`)
    return await collectCluster({ cluster, access, declared, namespace, signal, onProgress })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof FleetError)) throw error
    return { cluster, targets: [], failure: error.message }
  }
}

/** @returns every fault of the files, a line each */
function readConfig(
  paths: readonly string[],
  namespace: string,
  environment: CollectWays['environment'],
): Declarations | string {
  const { faults, declarations } = judged(paths, namespace, environment)
  if (faults.length > 0) return faults.map(printedFinding).join('\n')
  return declarationsOf(
    declarations.map(({ object, kind, name, namespace: of }) => {
      const metadata = object.metadata as KubeObject['metadata'] // admission has looked at it
      return { ...object, kind, metadata: { ...metadata, name, ...(of !== undefined && { namespace: of }) } }
    }),
  )
}

/** Where nothing was collected nothing is written: what a file held before stays. @returns what was written, for people */
async function write(
  results: readonly ClusterResult[],
  { output, format, dryRun }: CollectOptions,
  asList: boolean,
  exportedAt: string,
  { out }: CollectWays,
): Promise<readonly string[]> {
  const clusters = results.map((result) => collectedOf(result, exportedAt))
  const read = clusters.filter((_, i) => statusOf(results[i] as ClusterResult) < 2)
  const count = read.reduce((sum, { rows }) => sum + rows.length, 0)
  if (read.length === 0) return ['nothing was collected, and nothing written']
  if (dryRun) return [`dry run: ${count} rows of ${read.length} clusters would be written to ${output}`]
  if (output === '-') {
    out(written(format, clusters, asList))
    return []
  }
  if (!isFolder(output)) {
    await writeOutput(output, written(format, clusters, asList))
    return [`${count} rows written to ${output}`]
  }
  makeFolder(output)
  for (const one of read) await writeOutput(join(output, fileOf(one.cluster, format)), written(format, [one], false))
  return [`${count} rows written to ${read.length} files in ${output}`]
}

/** What a link leads to is replaced, and no device or pipe is: it is written to. */
async function writeOutput(path: string, text: string): Promise<void> {
  const there = statSync(path, { throwIfNoEntry: false })
  if (there && !there.isFile()) return writeFile(path, text)
  await writeWhole(there ? await realpath(path) : path, text)
}

const isFolder = (path: string): boolean =>
  path.endsWith('/') || (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false)

/** @see collect: of one cluster */
function statusOf({ targets, failure }: ClusterResult): 0 | 1 | 2 {
  if (failure !== undefined) return 2
  const isRead = ({ state }: TargetResult) => state === 'collected' || state === 'partial' || state === 'suspended'
  if (!targets.some(isRead)) return 2
  return targets.every(({ state }) => state === 'collected' || state === 'suspended') ? 0 : 1
}

function notesOf({ cluster, targets, failure }: ClusterResult): readonly string[] {
  if (failure !== undefined) return [`${cluster}: ${printable(failure)}`]
  return targets.flatMap(({ title, failed, notes }) => [
    ...notes.map((one) => `${cluster}: ${title}: ${printable(one)}`),
    ...(failed > 1 ? [`${cluster}: ${title}: ${failed} objects have no row; the first is named above`] : []),
  ])
}

/** A line of the summary; without a target: the cluster was not read. */
interface Line {
  readonly cluster: string
  readonly target?: TargetResult
}

function summary(results: readonly ClusterResult[]): string {
  const lines = results.flatMap(({ cluster, targets, failure }): Line[] =>
    failure === undefined ? targets.map((target) => ({ cluster, target })) : [{ cluster }],
  )
  return table<Line>(
    [
      { header: 'CLUSTER', value: ({ cluster }) => cluster },
      { header: 'TARGET', value: ({ target }) => target?.title ?? null },
      { header: 'KIND', value: ({ target }) => target?.kind ?? null },
      { header: 'ROWS', value: ({ target }) => (target ? String(target.rows.length) : null) },
      { header: 'FAILED', value: ({ target }) => (target ? String(target.failed) : null) },
      { header: 'STATE', value: ({ target }) => target?.state ?? 'not read' },
    ],
    lines,
  )
}
