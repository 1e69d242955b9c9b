import { createHash } from 'node:crypto'
import { readDefinition } from '#metricsource'
import type { Plan } from '#model'
import type { ConfigUpdate } from '#wire'

/** What a hub of the original says of what to collect: all its MetricSources, and perhaps an interval. */
export type OriginalConfig = Pick<ConfigUpdate, 'metricSourcesJson' | 'defaultIntervalSeconds'>

/** As the settings of an agent bound it, s. */
const [LEAST_INTERVAL, MOST_INTERVAL] = [1, 3_600]
const MAX_SOURCES = 1_000
const MAX_SOURCE_BYTES = 1_048_576

/**
 * The plan that a config makes of the one in force: its sources take the place of ours, its interval too, unless it is 0. What
 * cannot be used is found, and the last good of it stays: of a source that cannot be read by its name; where one has no name
 * that can be read, every source of ours that is not told of.
 */
export function planOfConfig(config: OriginalConfig, plan: Plan): { plan: Plan; findings: readonly string[] } {
  const findings: string[] = []
  const known = new Map(plan.sources.map((document) => [nameOf(document) ?? '', document]))
  const sources = new Map<string, unknown>()
  let isNameless = config.metricSourcesJson.length > MAX_SOURCES
  if (isNameless) findings.push(`there are more than ${MAX_SOURCES} sources; the first of them are collected`)
  for (const [place, bytes] of config.metricSourcesJson.slice(0, MAX_SOURCES).entries()) {
    const document = documentOf(bytes)
    const name = nameOf(document)
    if (name === undefined) {
      isNameless = true
      findings.push(`source ${place + 1} is no MetricSource that has a name`)
    } else if (readDefinition(document)) sources.set(name, document)
    else {
      const isKept = known.has(name)
      findings.push(`${name} cannot be read: ${isKept ? 'as it was it stays' : 'it is not collected'}`)
      if (isKept) sources.set(name, known.get(name))
    }
  }
  if (isNameless) for (const [name, document] of known) if (!sources.has(name)) sources.set(name, document)
  const intervalMs = intervalOf(config.defaultIntervalSeconds, findings) ?? plan.intervalMs
  const ordered = [...sources].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, document]) => document)
  const content = JSON.stringify([intervalMs, ordered])
  const version = `config-${createHash('sha256').update(content).digest('hex').slice(0, 16)}`
  return { plan: { ...plan, version, intervalMs, sources: ordered }, findings }
}

/** undefined: the one we have holds */
function intervalOf(seconds: number, findings: string[]): number | undefined {
  if (seconds === 0) return undefined
  if (seconds < 0) {
    findings.push(`an interval of ${seconds} s is none; the former one holds`)
    return undefined
  }
  const taken = Math.min(Math.max(seconds, LEAST_INTERVAL), MOST_INTERVAL)
  if (taken !== seconds) findings.push(`an interval of ${seconds} s is taken as ${taken} s`)
  return taken * 1000
}

/** undefined: no JSON, or more of it than a source needs */
function documentOf(bytes: Uint8Array): unknown {
  if (bytes.length > MAX_SOURCE_BYTES) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined // the caller says so
  }
}

function nameOf(document: unknown): string | undefined {
  const { namespace, name } = (document ?? {}) as { readonly namespace?: unknown; readonly name?: unknown }
  return typeof namespace === 'string' && typeof name === 'string' && name !== ''
    ? `${namespace}/${name}`.slice(0, 320)
    : undefined
}
