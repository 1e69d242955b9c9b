import { type ManifestPolicies, policiesOfManifest, type SelectedCluster } from '#access'
import { clusterConnection } from '#kinds'
import { isRecord, textOf, yamlOf } from './manifest-files.ts'

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

function clustersOf(value: unknown): SelectedCluster[] {
  if (!isRecord(value)) return []
  if (Array.isArray(value.items)) return value.items.flatMap(clustersOf)
  if (value.kind !== clusterConnection.kind || value.apiVersion !== clusterConnection.apiVersion) return []
  const { name } = (value.metadata ?? {}) as { name?: unknown }
  const { labels } = (value.spec ?? {}) as { labels?: unknown }
  const pairs = Object.entries(isRecord(labels) ? labels : {}).map(([key, text]) => [key, String(text)])
  return typeof name === 'string' ? [{ name, labels: Object.fromEntries(pairs) }] : []
}
