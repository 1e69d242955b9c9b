import { metricSource } from '#kinds'
import { accessForContext, createKubeClient, type KubeObject, loadKubeconfig } from '#kube'
import {
  type CompiledSource,
  collectSource,
  compileMetricSource,
  type Finding,
  printFinding,
  type SourceObject,
  withoutSumsOfNothing,
} from '#metricsource'
import {
  type Aggregated,
  type FieldReport,
  type RowsError,
  type ScalarValue,
  scalarOf,
  seconds,
  systemClock,
  type Table,
} from '#model'
import type { Answer } from './access.ts'
import { age, type Column, table } from './format.ts'
import { isRecord, ManifestError, objectsOf, type Place, placeOf } from './manifest-files.ts'
import { isSelected } from './select-objects.ts'
import { printable } from './terminal.ts'

export interface EvalOptions {
  /** MetricSources */
  readonly files: readonly string[]
  readonly objects?: readonly string[]
  readonly kubeconfig?: string
  readonly context?: string
  /** rows printed at most */
  readonly limit: number
  /** ms, for now() and age() */
  readonly now: number
  readonly output: 'table' | 'json'
  /** told of progress on long work */
  readonly onProgress?: (text: string) => void
}

/** What a source gave of some objects, or of a cluster. */
export interface Evaluated {
  readonly rows: Table
  readonly aggregations: Readonly<Record<string, Aggregated>>
  readonly reports: readonly FieldReport[]
  readonly truncated: boolean
  readonly errors: readonly RowsError[]
}

/** A declaration of a file with what the compiler said of it. */
export interface Declared {
  readonly object: SourceObject
  readonly source: CompiledSource | undefined
  readonly findings: readonly LocatedFinding[]
}

/** A finding with its place, where the declaration was read from a file. */
export type LocatedFinding = Finding & Partial<Place>

/** As compilers say it: `file:line:column: error: …`. */
export const printLocated = (finding: LocatedFinding): string => {
  const { file, line, column } = finding
  return `${file === undefined ? '' : `${file}:${line}:${column}: `}${printFinding(finding)}`
}

/** A cluster does not give what a source wants. */
class UnreadSourceError extends ManifestError {}

/**
 * Compiles declarations and shows what they give.
 * @throws ManifestError where a file cannot be used or holds no MetricSource; KubeError where the cluster cannot be read
 */
export async function evaluate(options: EvalOptions): Promise<Answer> {
  if (!options.objects && options.kubeconfig === undefined) {
    throw new ManifestError('say what to read: objects of a file (--objects FILE) or of a cluster (--kubeconfig FILE)')
  }
  const declared = readSources(options.files)
  const shown: string[] = []
  const results: Record<string, unknown>[] = []
  const notes = declared.flatMap(({ findings }) => findings.map(printLocated))
  let isUnread = false
  // One that a cluster does not serve says nothing of the others.
  const tried = async (source: CompiledSource, object: SourceObject) => {
    try {
      return await run(source, object, options)
    } catch (error) {
      if (!(error instanceof UnreadSourceError) || declared.length === 1) throw error
      isUnread = true
      notes.push(`${object.metadata.name}: ${error.message}`)
      return undefined
    }
  }
  for (const { object, source, findings } of declared) {
    const read = source && (await tried(source, object))
    const evaluated = read && withKnownSums(source, read)
    if (source && evaluated) {
      notes.push(...remarks(source, evaluated))
      shown.push(printed(source, evaluated, options, declared.length > 1))
    }
    results.push(asJson(object, findings, evaluated))
  }
  const failed = isUnread || declared.some(({ source }) => !source)
  const text = options.output === 'json' ? JSON.stringify(results, null, 2) : shown.join('\n\n')
  return { text, notes, failed }
}

/** @throws ManifestError */
export function readSources(files: readonly string[]): readonly Declared[] {
  const found = objectsOf(files).filter(({ kind }) => kind === metricSource.kind)
  if (found.length === 0) throw new ManifestError(`${files.join(', ')}: there is no MetricSource in it`)
  return found.map((object) => {
    const metadata = isRecord(object.metadata) ? object.metadata : {}
    const name = String(metadata.name ?? 'unnamed')
    const given = {
      metadata: { name, namespace: String(metadata.namespace ?? 'default') },
      spec: object.spec,
    } as SourceObject // whatever is wrong with it, the compiler says
    const { source, findings } = compileMetricSource(given)
    const located = findings.map((finding) => ({ ...finding, ...placeOf(object, finding.path, finding.at) }))
    return { object: given, source, findings: located }
  })
}

async function run(source: CompiledSource, object: SourceObject, options: EvalOptions): Promise<Evaluated> {
  if (options.objects) return evaluateObjects(source, object, objectsOf(options.objects), options.now)
  const config = await loadKubeconfig([options.kubeconfig ?? ''])
  const context = options.context ?? config.currentContext
  if (context === undefined)
    throw new ManifestError(`${options.kubeconfig}: it names no current context; say which with --context`)
  const access = await accessForContext(config, context)
  await using kube = createKubeClient(access, { timeoutMs: seconds(30) })
  const part = await collectSource({
    kube,
    source,
    signal: new AbortController().signal,
    clock: systemClock,
    onProgress: (rows) => options.onProgress?.(`${source.target.kind}: ${rows} objects read`),
  })
  if (part.outcome === 'complete') return part
  if (part.outcome === 'changed') throw new TypeError('a collection is complete')
  const what = { absent: 'is not served', forbidden: 'may not be read', unreachable: 'could not be read' }[part.outcome]
  throw new UnreadSourceError(
    `${source.target.apiVersion} ${source.target.kind} ${what} by context ${context}: ${part.message}`,
  )
}

/** The same without a cluster: objects of other kinds, namespaces and labels are passed over. */
export function evaluateObjects(
  source: CompiledSource,
  object: SourceObject,
  objects: readonly Readonly<Record<string, unknown>>[],
  now: number,
): Evaluated {
  const builder = source.collect(now)
  const wanted = objects.filter((one) => isSelected(source, object, one))
  for (const one of wanted.slice(0, source.collection.maxResources)) builder.add(one as unknown as KubeObject)
  const rows = builder.rows()
  const truncated = wanted.length > source.collection.maxResources
  return { rows, aggregations: source.aggregate(rows), reports: builder.reports(), truncated, errors: [] }
}

/** People are told of a sum of nothing that it is not known. */
const withKnownSums = (source: CompiledSource, read: Evaluated): Evaluated => ({
  ...read,
  aggregations: withoutSumsOfNothing(read.aggregations, source.sumsOfNothing(read.rows)),
})

function remarks(source: CompiledSource, { rows, reports, truncated, errors }: Evaluated): string[] {
  const of = (count: number) => `${count} of ${rows.size}`
  return [
    ...(rows.size === 0 ? [`no object matched ${source.target.apiVersion} ${source.target.kind}`] : []),
    ...(truncated ? [`only the first ${rows.size} objects were taken (spec.collection.maxResources)`] : []),
    ...errors.map(({ namespace, message }) => `namespace ${namespace || 'all'}: ${message}`),
    ...reports.flatMap(({ field, missing, malformed, example }) => [
      ...(malformed > 0 ? [`${field}: ${of(malformed)} do not fit its type, such as ${JSON.stringify(example)}`] : []),
      ...(missing > 0 && missing === rows.size ? [`${field}: nothing found in any object; is its path right?`] : []),
    ]),
  ]
}

function printed(
  source: CompiledSource,
  { rows, aggregations }: Evaluated,
  options: EvalOptions,
  named: boolean,
): string {
  const columns: Column<number>[] = [
    ...(source.target.scope === 'Namespaced'
      ? [{ header: 'NAMESPACE', value: (row: number) => rows.namespaceAt(row) }]
      : []),
    { header: 'NAME', value: (row) => rows.nameAt(row) },
    ...source.columns.map(({ name, unit }) => {
      const value = rows.column(name)
      return {
        header: name.toUpperCase(),
        value: (row: number) => cell(scalarOf(value?.(row) ?? null), unit, options.now),
      }
    }),
  ]
  const shown = Array.from({ length: Math.min(rows.size, options.limit) }, (_, row) => row)
  const more = rows.size > shown.length ? [`… and ${rows.size - shown.length} more (--limit)`] : []
  const sums = Object.entries(aggregations)
  const aggregated = table<readonly [string, Aggregated]>(
    [
      { header: 'AGGREGATION', value: ([name]) => name },
      { header: 'VALUE', value: ([, value]) => aggregatedText(value) },
    ],
    sums,
  )
  return [
    ...(named ? [`# ${source.id}`] : []),
    ...(rows.size > 0 ? [table(columns, shown), ...more] : []),
    ...(sums.length > 0 ? ['', aggregated] : []),
  ].join('\n')
}

function cell(value: ScalarValue, unit: string, now: number): string | null {
  if (value === null) return null
  if (unit === 'time' && typeof value === 'string') {
    const at = Date.parse(value)
    if (!Number.isNaN(at)) return at <= now ? `${age(now - at)} ago` : `in ${age(at - now)}`
  }
  return String(value)
}

function aggregatedText(value: Aggregated): string | null {
  if (value === null) return null
  if (typeof value !== 'object') return String(value)
  const groups = Object.entries(value).map(([group, one]) => `${printable(group)}=${one ?? '-'}`)
  return groups.join(', ')
}

function asJson(object: SourceObject, findings: readonly LocatedFinding[], evaluated: Evaluated | undefined) {
  return {
    name: `${object.metadata.namespace}/${object.metadata.name}`,
    findings,
    ...(evaluated && {
      rows: [...evaluated.rows.rows()],
      aggregations: evaluated.aggregations,
      fields: evaluated.reports,
      truncated: evaluated.truncated,
      errors: evaluated.errors,
    }),
  }
}
