import type { FieldFault } from './types.ts'

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const FINALIZER_PREFIX = SUBDOMAIN

const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const QUALIFIED_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/** How the names of a resource may look: most are DNS subdomains, some DNS labels, RBAC names are path segments. */
export type NameRule = 'subdomain' | 'label' | 'path'

const fault = (path: string, message: string): FieldFault => ({ reason: 'FieldValueInvalid', path, message })
const wrong = (path: string, value: string, rule: string): FieldFault =>
  fault(path, `Invalid value: ${JSON.stringify(value)}: ${rule}`)

export function nameFaults(name: string, rule: NameRule, path = 'metadata.name'): FieldFault[] {
  if (rule === 'path') {
    if (name === '.' || name === '..') return [wrong(path, name, `may not be '${name}'`)]
    const bad = ['/', '%'].filter((part) => name.includes(part))
    return bad.map((part) => wrong(path, name, `may not contain '${part}'`))
  }
  const limit = rule === 'label' ? 63 : 253
  const faults: FieldFault[] = []
  if (name.length > limit) faults.push(wrong(path, name, `must be no more than ${limit} bytes`))
  if (name.length > 10 * limit) return faults
  if (!(rule === 'label' ? LABEL : SUBDOMAIN).test(name))
    faults.push(wrong(path, name, rule === 'label' ? LABEL_RULE : SUBDOMAIN_RULE))
  return faults
}

/** Whether a key of a label, an annotation or a finalizer has the form `[prefix/]name`. */
export function qualifiedNameProblem(key: string): string | undefined {
  const parts = key.split('/')
  if (parts.length > 2)
    return `a qualified name must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS subdomain prefix and '/'`
  const name = parts.at(-1) ?? ''
  const prefix = parts.length === 2 ? (parts[0] ?? '') : undefined
  if (prefix !== undefined) {
    if (prefix === '') return 'prefix part must be non-empty'
    if (prefix.length > 253 || !FINALIZER_PREFIX.test(prefix)) return `prefix part ${SUBDOMAIN_RULE}`
  }
  if (name === '') return 'name part must be non-empty'
  if (name.length > 63) return 'name part must be no more than 63 bytes'
  return QUALIFIED.test(name) ? undefined : QUALIFIED_RULE
}

export function labelFaults(labels: unknown, path: string): FieldFault[] {
  if (labels === undefined || labels === null) return []
  const faults: FieldFault[] = []
  for (const [key, value] of Object.entries(labels as Record<string, unknown>)) {
    const problem = qualifiedNameProblem(key)
    if (problem) faults.push(wrong(path, key, problem))
    const text = String(value)
    if (text.length > 63) faults.push(wrong(path, text, 'must be no more than 63 bytes'))
    else if (text !== '' && !QUALIFIED.test(text)) faults.push(wrong(path, text, VALUE_RULE))
  }
  return faults
}

const ANNOTATION_LIMIT = 256 * 1024

export function annotationFaults(annotations: unknown, path: string): FieldFault[] {
  if (annotations === undefined || annotations === null) return []
  const faults: FieldFault[] = []
  let total = 0
  for (const [key, value] of Object.entries(annotations as Record<string, unknown>)) {
    const problem = qualifiedNameProblem(key.toLowerCase())
    if (problem) faults.push(wrong(path, key, problem))
    total += key.length + String(value).length
  }
  if (total > ANNOTATION_LIMIT)
    faults.push({
      reason: 'FieldValueTooLong',
      path,
      message: `Too long: may not be more than ${ANNOTATION_LIMIT} bytes`,
    })
  return faults
}

const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([
  'kubernetes',
  'orphan',
  'foregroundDeletion',
  // Given by the server itself to definitions that are being deleted.
  'customresourcecleanup.apiextensions.k8s.io',
])
const UNQUALIFIED_FINALIZER = 'name is neither a standard finalizer name nor is it fully qualified'

export function finalizerFaults(finalizers: unknown, path: string): FieldFault[] {
  if (!Array.isArray(finalizers)) return []
  return finalizers.flatMap((finalizer, index) => {
    const name = String(finalizer)
    const problem =
      qualifiedNameProblem(name) ??
      (name.includes('/') || STANDARD_FINALIZERS.has(name) ? undefined : UNQUALIFIED_FINALIZER)
    return problem ? [wrong(`${path}[${index}]`, name, problem)] : []
  })
}

/** An owner is named in full. */
export function ownerFaults(owners: unknown, path: string): FieldFault[] {
  if (!Array.isArray(owners)) return []
  return owners.flatMap((owner: Record<string, unknown>) =>
    ['kind', 'name', 'uid']
      .filter((name) => owner[name] === '')
      .map((name) => wrong(`${path}.${name}`, '', 'must not be empty')),
  )
}
