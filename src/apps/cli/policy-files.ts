import { readFileSync } from 'node:fs'
import { LineCounter, parseAllDocuments } from 'yaml'
import { compilePolicy, type Finding, type PolicyDocument, type PolicyObject, type SelectedCluster } from '#access'
import { clusterConnection, monitorAccessPolicy } from '#kinds'
import { FleetError } from '#model'

/** A file of manifests or of cases cannot be used; says where and why. */
export class ManifestError extends FleetError {
  override readonly name = 'ManifestError'
  readonly code = 'invalid_manifest'
  readonly retryable = false
}

/** What the files hold: compiled policies with what was found, and clusters with their labels. */
export interface PolicyFiles {
  readonly policies: readonly PolicyDocument[]
  readonly findings: readonly { readonly policy: string; readonly finding: Finding }[]
  readonly clusters: readonly SelectedCluster[]
  /** documents of other kinds, left out */
  readonly ignored: number
}

interface Manifest {
  readonly place: string
  readonly object: Readonly<Record<string, unknown>>
}

/**
 * Reads MonitorAccessPolicies (and ClusterConnections, for the labels of clusters) out of YAML or JSON files, `-` is standard
 * input. Policies with errors are left out: their findings say why.
 * @throws ManifestError where a file cannot be read or is no YAML
 */
export function readPolicyFiles(paths: readonly string[], now: number): PolicyFiles {
  const policies: PolicyDocument[] = []
  const findings: { policy: string; finding: Finding }[] = []
  const clusters: SelectedCluster[] = []
  let ignored = 0
  for (const { object } of paths.flatMap(manifestsOf)) {
    const { name = '', namespace = 'clusterpulse' } = (object.metadata ?? {}) as { name?: string; namespace?: string }
    if (isOf(object, monitorAccessPolicy)) {
      const whole = { ...object, metadata: { ...(object.metadata as object), name, namespace } }
      const compiled = compilePolicy(whole as unknown as PolicyObject, { now }) // faults of its shape are findings
      for (const finding of compiled.findings) findings.push({ policy: `${namespace}/${name}`, finding })
      if (compiled.document) policies.push(compiled.document)
    } else if (isOf(object, clusterConnection)) {
      const { labels = {} } = (object.spec ?? {}) as { labels?: Record<string, string> }
      clusters.push({ name, labels })
    } else ignored += 1
  }
  return { policies, findings, clusters, ignored }
}

const isOf = (object: Manifest['object'], kind: { readonly apiVersion: string; readonly kind: string }): boolean =>
  object.apiVersion === kind.apiVersion && object.kind === kind.kind

function manifestsOf(path: string): Manifest[] {
  return readYaml(path).flatMap(({ place, value }) => {
    if (value === null) return []
    if (!isRecord(value)) throw new ManifestError(`${place} holds no object`)
    // kubectl get -o yaml prints lists.
    const items = Array.isArray(value.items) && /List$/.test(String(value.kind)) ? value.items : [value]
    return items.filter(isRecord).map((object) => ({ place, object }))
  })
}

/** The documents of a YAML file. @throws ManifestError with file, line and column */
export function readYaml(path: string): { readonly place: string; readonly value: unknown }[] {
  let text: string
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (cause) {
    throw new ManifestError(`${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true })
  return [...documents].map((document) => {
    const [fault] = document.errors
    if (fault) throw new ManifestError(`${path}: ${fault.message.split('\n', 1)[0]?.replace(/:$/, '')}`)
    const { line } = lines.linePos(document.range[0])
    return { place: `${path}, line ${line}`, value: document.toJS({ maxAliasCount: 100 }) as unknown }
  })
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
