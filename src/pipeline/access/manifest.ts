import { parseAllDocuments } from 'yaml'
import { monitorAccessPolicy } from '#kinds'
import { compilePolicy } from './compile.ts'
import type { Finding, PolicyDocument, PolicyObject } from './types.ts'

/** What a text of manifests holds. A policy with an error is not among `policies`: it would not come into force. */
export interface ManifestPolicies {
  readonly policies: readonly PolicyDocument[]
  /** `policy` is namespace/name, or the place of a document that is none */
  readonly findings: readonly { readonly policy: string; readonly finding: Finding }[]
}

/** More documents than anybody applies at once. */
const maxDocuments = 5000

/**
 * Reads MonitorAccessPolicies out of YAML or JSON, one or many documents, also lists as kubectl prints them. Never throws:
 * whatever cannot be used is a finding.
 * @param namespace of policies that name none
 */
export function policiesOfManifest(
  text: string,
  { now, namespace = 'clusterpulse' }: { readonly now: number; readonly namespace?: string },
): ManifestPolicies {
  const policies = new Map<string, PolicyDocument>()
  const findings: { policy: string; finding: Finding }[] = []
  const tell = (policy: string, code: string, message: string, severity: Finding['severity'] = 'error'): void => {
    findings.push({ policy, finding: { severity, code, path: '', message } })
  }
  for (const { place, value, fault } of documentsOf(text)) {
    if (fault !== undefined) tell(place, 'manifest_unreadable', fault)
    else if (!isPolicy(value))
      tell(
        place,
        'not_a_policy',
        `only ${monitorAccessPolicy.kind} of ${monitorAccessPolicy.apiVersion} is looked at`,
        'warning',
      )
    else {
      const name = textOf(value.metadata.name)
      const key = `${textOf(value.metadata.namespace) || namespace}/${name}`
      if (!name) tell(place, 'name_missing', 'metadata.name is missing')
      else if (policies.has(key)) tell(key, 'named_twice', 'the same policy comes twice: the first is used')
      else {
        const metadata = { ...value.metadata, name, namespace: key.slice(0, key.indexOf('/')) }
        // The compiler finds the faults of its shape itself.
        const { document, findings: found } = compilePolicy({ ...value, metadata } as unknown as PolicyObject, { now })
        for (const finding of found) findings.push({ policy: key, finding })
        if (document) policies.set(key, document)
      }
    }
  }
  return { policies: [...policies.values()], findings }
}

interface Place {
  readonly place: string
  readonly value?: unknown
  readonly fault?: string
}

function documentsOf(text: string): Place[] {
  const parsed = parseAllDocuments(text, { uniqueKeys: true, logLevel: 'silent' })
  if (!Array.isArray(parsed)) return []
  const places = parsed.slice(0, maxDocuments).flatMap((document, index): Place[] => {
    const place = `document ${index + 1}`
    const [fault] = document.errors
    if (fault) return [{ place, fault: fault.message.split('\n', 1)[0]?.replace(/:$/, '') ?? 'no YAML' }]
    let value: unknown
    try {
      value = document.toJS({ maxAliasCount: 100 })
    } catch (error) {
      return [{ place, fault: error instanceof Error ? error.message : String(error) }]
    }
    if (value === null) return []
    if (isRecord(value) && Array.isArray(value.items))
      return value.items.map((item: unknown, at) => ({ place: `${place}, item ${at + 1}`, value: item }))
    return [{ place, value }]
  })
  if (parsed.length <= maxDocuments) return places
  return [
    ...places,
    { place: `document ${maxDocuments + 1}`, fault: `only the first ${maxDocuments} documents are read` },
  ]
}

type Fields = Readonly<Record<string, unknown>>
const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const isPolicy = (value: unknown): value is { readonly metadata: Fields } =>
  isRecord(value) &&
  value.apiVersion === monitorAccessPolicy.apiVersion &&
  value.kind === monitorAccessPolicy.kind &&
  isRecord(value.metadata)
