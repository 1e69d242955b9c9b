import { setImmediate } from 'node:timers/promises'
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

interface ManifestOptions {
  /** ms since the Unix epoch */
  readonly now: number
  /** of policies that name none */
  readonly namespace?: string
}

/**
 * Reads MonitorAccessPolicies out of YAML or JSON, one or many documents, also lists as kubectl prints them. Never throws:
 * whatever cannot be used is a finding.
 */
export function policiesOfManifest(text: string, options: ManifestOptions): ManifestPolicies {
  const found = new Found(options)
  for (const place of documentsOf(text, false)) found.add(place)
  return found
}

/** The same where others wait: bounded, in turns, and without what YAML takes long to read. */
export async function policiesOfForeignManifest(text: string, options: ManifestOptions): Promise<ManifestPolicies> {
  const found = new Found(options)
  for (const place of documentsOf(text, true)) {
    await setImmediate()
    found.add(place)
  }
  return found
}

class Found implements ManifestPolicies {
  readonly #options: ManifestOptions
  readonly #policies = new Map<string, PolicyDocument>()
  readonly findings: { readonly policy: string; readonly finding: Finding }[] = []

  constructor(options: ManifestOptions) {
    this.#options = options
  }

  get policies(): readonly PolicyDocument[] {
    return [...this.#policies.values()]
  }

  add({ place, value, fault }: Place): void {
    if (fault !== undefined) this.#tell(place, 'manifest_unreadable', fault)
    else if (isPolicy(value)) this.#addPolicy(place, value)
    else this.#tell(place, 'not_a_policy', onlyPolicies, 'warning')
  }

  #addPolicy(place: string, value: PolicyLike): void {
    const name = textOf(value.metadata.name)
    const namespace = textOf(value.metadata.namespace) || (this.#options.namespace ?? 'clusterpulse')
    const key = `${namespace}/${name}`
    if (!name) this.#tell(place, 'name_missing', 'metadata.name is missing')
    else if (this.#policies.has(key)) this.#tell(key, 'named_twice', 'the same policy comes twice: the first is used')
    else this.#compile(key, { ...value, metadata: { ...value.metadata, name, namespace } })
  }

  #compile(key: string, object: object): void {
    // The compiler finds the faults of its shape itself.
    const { document, findings } = compilePolicy(object as PolicyObject, { now: this.#options.now })
    for (const finding of findings) this.findings.push({ policy: key, finding })
    if (document) this.#policies.set(key, document)
  }

  #tell(policy: string, code: string, message: string, severity: Finding['severity'] = 'error'): void {
    this.findings.push({ policy, finding: { severity, code, path: '', message } })
  }
}

interface Place {
  readonly place: string
  readonly value?: unknown
  readonly fault?: string
}

// YAML is slow, and some of it slower than its length. JSON is quick at any length.
const maxChars = 128 * 1024
const maxAnchors = 100
const tooDeep = /(?:[[{]\s*(?:\w+:\s*)?){200}|(?:[-?]\s+){200}/
/** Looking for a key that comes twice costs the square of their number. */
const maxCheckedChars = 64 * 1024

/** Why this text is not even tried. */
function unread(text: string): string | undefined {
  if (text.length > maxChars) return `more than ${maxChars} characters of YAML: write it as JSON`
  if (tooDeep.test(text)) return 'nested deeper than any policy'
  if ((text.match(/(?:^|[\s,:[{-])&\S/gm)?.length ?? 0) > maxAnchors)
    return `more than ${maxAnchors} anchors: write out what they stand for`
  return undefined
}

function* documentsOf(text: string, isForeign: boolean): Generator<Place> {
  const whole = jsonOf(text)
  if (whole) return yield* itemsOf('document 1', whole.value)
  let at = 0
  for (const chunk of text.split(/^---(?=\s|$)/m)) {
    if (chunk.replace(/^\s*#.*$/gm, '').trim() === '') continue
    at += 1
    const place = `document ${at}`
    if (isForeign && at > maxDocuments) return yield { place, fault: `only the first ${maxDocuments} are read` }
    const json = jsonOf(chunk)
    const fault = isForeign && !json ? unread(chunk) : undefined
    if (json) yield* itemsOf(place, json.value)
    else if (fault !== undefined) yield { place, fault }
    else yield* yamlOf(place, chunk)
  }
}

function* yamlOf(place: string, text: string): Generator<Place> {
  try {
    for (const document of parseAllDocuments(text, {
      uniqueKeys: text.length <= maxCheckedChars,
      logLevel: 'silent',
    })) {
      const [fault] = document.errors
      if (fault) yield { place, fault: firstLine(fault) }
      else yield* itemsOf(place, document.toJS({ maxAliasCount: 100 }))
    }
  } catch (error) {
    yield { place, fault: firstLine(error) } // deeper than the stack, or aliases without end
  }
}

function jsonOf(text: string): { readonly value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined // then it is YAML in braces, or its fault is told as YAML's
  }
}

function* itemsOf(place: string, value: unknown): Generator<Place> {
  if (value === null) return
  if (!isRecord(value) || !Array.isArray(value.items)) return yield { place, value }
  for (const [at, item] of value.items.entries()) yield { place: `${place}, item ${at + 1}`, value: item as unknown }
}

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]?.replace(/:$/, '') ?? 'this is no YAML'

type Fields = Readonly<Record<string, unknown>>
const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

interface PolicyLike {
  readonly metadata: Fields
}
const onlyPolicies = `only ${monitorAccessPolicy.kind} of ${monitorAccessPolicy.apiVersion} is looked at`
const isPolicy = (value: unknown): value is PolicyLike =>
  isRecord(value) &&
  value.apiVersion === monitorAccessPolicy.apiVersion &&
  value.kind === monitorAccessPolicy.kind &&
  isRecord(value.metadata)
