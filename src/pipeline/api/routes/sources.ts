import type { FastifyInstance } from 'fastify'
import { functions } from '#expression'
import { listSources, type SourceFindingView, type SourceTrialView, trySource } from '#http'
import { type CompiledSource, compileMetricSource, type Finding, withoutSumsOfNothing } from '#metricsource'
import { FleetError, type RowsPart, scalarOf, seconds, type TableRow } from '#model'
import type { Logger } from '#runtime'
import { acceptJson, bodyOf } from '../body.ts'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, route, visibleCluster } from '../route.ts'
import { readSourceManifest, sourceManifest } from '../source-manifest.ts'
import { sourceView } from '../type-views.ts'
import type { SourceTrial } from '../types.ts'

/** A manifest of 256 KiB, written as JSON text. */
const maxBodyBytes = 2 ** 20
/** Rows of a trial that are sent; all that were read are counted and summed up. */
const maxShownRows = 200
/** A trial reads no more objects than this, whatever the declaration says. */
const maxTrialRows = 20_000
/** Below the limit of a request, so that there is an answer. */
const trialTimeoutMs = seconds(28)
const maxTrials = 2

interface SourceOptions {
  readonly trySource: SourceTrial | undefined
  readonly logger: Logger
}

/** For administrators: what is declared, and what a declaration would give. */
export function sourceRoutes(app: FastifyInstance, parts: Parts, options: SourceOptions): void {
  const { types } = parts
  let running = 0

  route(app, parts, listSources, ({ request }) => {
    const accessView = accessViewOf(request)
    const clusters = parts.state.clusters()
    const items = types.sources().map((source) => {
      const on = clusters.flatMap((cluster) => types.on(accessView, cluster, source) ?? [])
      const collected = on.flatMap(({ state }) => state ?? [])
      return {
        source: sourceView(source, on),
        manifest: sourceManifest(source),
        clusters: collected.filter(({ rows }) => rows.size > 0).length,
        rows: collected.reduce((sum, { rows }) => sum + rows.size, 0),
        errors: collected.filter(({ outcome, errorCount }) => outcome !== 'complete' || errorCount > 0).length,
      }
    })
    const known = functions.map(({ name, signature, description }) => ({ name, signature, description }))
    return { fresh: { items, functions: known } }
  })

  app.register(async (bodies: FastifyInstance) => {
    acceptJson(bodies, maxBodyBytes)
    route(bodies, parts, trySource, async ({ request, now }) => {
      const { manifest, cluster } = bodyOf(trySource, request)
      const read = readSourceManifest(manifest)
      const { source, findings } =
        'object' in read ? compileMetricSource(read.object, now) : { source: undefined, findings: [read.finding] }
      const on = cluster === undefined ? '' : ` on ${cluster}`
      request.auditNote = {
        kind: 'administration',
        resource: `try MetricSource ${source?.id ?? '(faulty)'}${on}`.slice(0, 500),
      }
      const compiled = { findings: findings.map(findingView), source: source ? declaredView(source) : null }
      if (cluster === undefined || !source) return { fresh: { ...compiled, result: null, note: null } }
      visibleCluster(parts, accessViewOf(request), cluster)
      return { fresh: { ...compiled, ...(await tried(cluster, source)) } }
    })
  })

  async function tried(cluster: string, source: CompiledSource): Promise<Pick<SourceTrialView, 'result' | 'note'>> {
    if (!options.trySource)
      return { result: null, note: 'This process has no way into clusters: the declaration was only compiled' }
    if (running >= maxTrials)
      throw new RefusedError('too_many_trials', `${maxTrials} trials are running: try again in a moment`, {
        retryAfterSeconds: 5,
      })
    running += 1
    const signal = AbortSignal.timeout(trialTimeoutMs)
    const began = parts.clock.now()
    try {
      const limit = Math.min(source.collection.maxResources, maxTrialRows)
      const part = await options.trySource(cluster, source, { limit, signal })
      if (part) return { result: resultView(source, part, began, parts.clock.now()), note: null }
      const note = `The hub has no way into cluster ${cluster} from here: its agent pushes, or another process reads it. The declaration was only compiled`
      return { result: null, note }
    } catch (error) {
      options.logger.warn({ cluster, source: source.id, error }, 'a trial of a MetricSource failed')
      if (signal.aborted)
        return { result: null, note: `Cluster ${cluster} did not answer within ${trialTimeoutMs / 1000} s` }
      if (error instanceof FleetError) return { result: null, note: error.message }
      throw error
    } finally {
      running -= 1
    }
  }
}

const findingView = ({ severity, code, path, message, at, suggestion }: Finding): SourceFindingView => ({
  severity,
  code,
  path,
  message,
  at: at ? { text: at.text, from: at.from, to: at.to } : null,
  suggestion: suggestion ?? null,
})

/** With all of its aggregations: an administrator asks. */
function declaredView(source: CompiledSource) {
  const aggregations = source.aggregations.map(({ name, function: by, field, groupBy, unit, hasHistory }) => ({
    name,
    function: by,
    field: field ?? null,
    groupBy: groupBy ?? null,
    unit,
    hasHistory,
  }))
  return { ...sourceView(source, []), aggregations }
}

function resultView(
  source: CompiledSource,
  part: RowsPart,
  began: number,
  now: number,
): NonNullable<SourceTrialView['result']> {
  const failed = part.outcome !== 'complete'
  const known = failed ? {} : withoutSumsOfNothing(part.aggregations, source.sumsOfNothing(part.rows))
  const rows = failed
    ? []
    : Array.from({ length: Math.min(part.rows.size, maxShownRows) }, (_, place) => ({
        id: part.rows.idAt(place),
        ...scalarRow(part.rows.row(place)),
      }))
  const isFault = failed && part.outcome !== 'changed'
  return {
    part: {
      outcome: isFault ? part.outcome : 'complete',
      code: isFault ? part.code : '',
      message: isFault ? part.message : '',
      attemptedAt: began,
      freshness: failed ? null : { observedAt: began, receivedAt: now, source: 'pull' },
      count: failed ? 0 : part.rows.size,
    },
    truncated: failed ? false : part.truncated,
    durationMs: Math.round(part.durationMs),
    items: rows,
    total: failed ? 0 : part.rows.size,
    aggregations: known as NonNullable<SourceTrialView['result']>['aggregations'],
    reports: failed
      ? []
      : part.reports.map(({ field, missing, malformed, example }) => ({ field, missing, malformed, example })),
    errors: failed
      ? []
      : part.errors.map(({ namespace, outcome, code, message }) => ({ namespace, outcome, code, message })),
  }
}

const scalarRow = ({ values, ...row }: TableRow) => ({
  ...row,
  values: Object.fromEntries(Object.entries(values).map(([field, value]) => [field, scalarOf(value)])),
})
