import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { type ManifestPolicies, policiesOfManifest, type SelectedCluster } from '#access'
import { clusterConnection } from '#kinds'
import { FleetError } from '#model'

/** A file of manifests or of cases cannot be used; says where and why. */
export class ManifestError extends FleetError {
  override readonly name = 'ManifestError'
  readonly code = 'invalid_manifest'
  readonly retryable = false
}

/** What the files hold: compiled policies with what was found, and clusters with their labels. */
export interface PolicyFiles extends ManifestPolicies {
  readonly clusters: readonly SelectedCluster[]
}

/**
 * Reads MonitorAccessPolicies (and ClusterConnections, for the labels of clusters) out of YAML or JSON files, `-` is standard
 * input; other kinds are left out. Policies with errors are left out as well: their findings say why.
 * @throws ManifestError where a file cannot be read or is no YAML
 */
export function readPolicyFiles(paths: readonly string[], now: number): PolicyFiles {
  const read = paths.map((path) => {
    const text = textOf(path)
    const { policies, findings } = policiesOfManifest(text, { now })
    return {
      policies,
      findings: findings.filter(({ finding }) => finding.code !== 'not_a_policy'),
      clusters: yamlOf(path, text).flatMap(clustersOf),
    }
  })
  return {
    policies: read.flatMap(({ policies }) => policies),
    findings: read.flatMap(({ findings }) => findings),
    clusters: read.flatMap(({ clusters }) => clusters),
  }
}

/** The first document of a YAML file. @throws ManifestError with file, line and column */
export const readYaml = (path: string): unknown => yamlOf(path, textOf(path))[0]

function clustersOf(value: unknown): SelectedCluster[] {
  if (!isRecord(value)) return []
  if (Array.isArray(value.items)) return value.items.flatMap(clustersOf)
  if (value.kind !== clusterConnection.kind || value.apiVersion !== clusterConnection.apiVersion) return []
  const { name } = (value.metadata ?? {}) as { name?: unknown }
  const { labels } = (value.spec ?? {}) as { labels?: unknown }
  const pairs = Object.entries(isRecord(labels) ? labels : {}).map(([key, text]) => [key, String(text)])
  return typeof name === 'string' ? [{ name, labels: Object.fromEntries(pairs) }] : []
}

function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ManifestError(`${path} cannot be read: ${why}`, { cause })
  }
}

function yamlOf(path: string, text: string): unknown[] {
  return [...parseAllDocuments(text, { uniqueKeys: true, logLevel: 'silent' })].map((document) => {
    const [fault] = document.errors
    if (fault) throw new ManifestError(`${path}: ${fault.message.split('\n', 1)[0]?.replace(/:$/, '')}`)
    return document.toJS({ maxAliasCount: 100 }) as unknown
  })
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
