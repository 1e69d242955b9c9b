import { type MonitorAccessPolicySpec, monitorAccessPolicy } from '#kinds'
import { parseInstant } from './bounds.ts'
import { checkRules } from './check-rules.ts'
import { policyDocument } from './document.ts'
import { checkPlain, FindingList } from './findings.ts'
import { memberPath, quoted } from './texts.ts'
import type { Compilation, PolicyObject } from './types.ts'

/**
 * Makes an object of the kind into the document that decisions are made from, and says everything that its author should
 * know. Takes whatever somebody wrote into a file: what does not fit the kind is an error among the findings, nothing throws.
 * Errors come first; with one there is no document. Whether another policy has the same priority cannot be known here.
 * @param options.now ms since the Unix epoch
 */
export function compilePolicy(object: PolicyObject, { now }: { readonly now: number }): Compilation {
  const findings = new FindingList()
  const policy = checkShape(object, findings)
  if (policy) checkContent(policy, now, findings)
  const document = policy && !findings.hasErrors ? policyDocument(policy, now) : undefined
  return { document, findings: findings.list() }
}

/** @returns the object without nulls, which an API server would have left out; undefined where it does not fit the kind */
function checkShape(object: unknown, findings: FindingList): PolicyObject | undefined {
  const given = isObject(object) ? object : {}
  const metadata = isObject(given.metadata) ? given.metadata : {}
  checkName(metadata.name, 'metadata.name', findings)
  if (metadata.namespace !== undefined) checkName(metadata.namespace, 'metadata.namespace', findings)
  const whole = { ...given, spec: withoutNulls(given.spec) }
  const faults = monitorAccessPolicy.faults(whole)
  for (const { path, message } of faults) findings.error(codeOf(path), path, sentence(path, message))
  if (faults.length > 0) return undefined
  checkUnknown(whole.spec, monitorAccessPolicy.definition.spec, 'spec', findings)
  return { metadata: metadata as PolicyObject['metadata'], spec: whole.spec as MonitorAccessPolicySpec } // both checked above
}

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

function checkName(name: unknown, path: string, findings: FindingList): void {
  if (typeof name === 'string' && name.length <= 253 && DNS_SUBDOMAIN.test(name)) return
  const said = typeof name === 'string' ? quoted(name) : name === undefined ? 'missing' : 'no text'
  findings.error('name_invalid', path, `the name is ${said}: use lower case letters, digits, "-" and "."`)
}

function codeOf(path: string): string {
  if (path === 'spec.access.effect') return 'effect_invalid'
  if (path === 'spec.identity.priority') return 'priority_invalid'
  return path.endsWith('.selector.matchPattern') ? 'pattern_invalid' : 'field_invalid'
}

function sentence(path: string, message: string): string {
  if (path === 'spec.access.effect') return `the effect ${message}: write Allow or Deny`
  if (path === 'spec.identity.priority')
    return `the priority ${message}: use a whole number from 1 to 10000, the highest is looked at first`
  if (path.endsWith('.selector.matchPattern')) return `the pattern ${message}: shorten it, or use several rules`
  return `${path} ${message}: correct it as in "kubectl explain monitoraccesspolicy.${path.replaceAll(/\[\d+\]/g, '')}"`
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)] as const])),
  )
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly patternProperties?: Readonly<Record<string, Schema>>
}

/** An API server drops fields it does not know, so in a file they are mistakes: "filter" would show everything. */
function checkUnknown(value: unknown, schema: Schema, path: string, findings: FindingList): void {
  if (Array.isArray(value)) {
    const { items } = schema
    for (const [i, item] of items ? value.entries() : []) checkUnknown(item, items ?? {}, `${path}[${i}]`, findings)
    return
  }
  if (!isObject(value)) return
  const [free] = Object.values(schema.patternProperties ?? {})
  const known = schema.properties ?? {}
  for (const [key, inner] of Object.entries(value)) {
    const here = memberPath(path, key)
    const field = free ?? (Object.hasOwn(known, key) ? known[key] : undefined)
    if (field) checkUnknown(inner, field, here, findings)
    else {
      const names = Object.keys(known).join(', ')
      findings.warning(
        'field_unknown',
        here,
        `the field ${JSON.stringify(key)} does not exist and is ignored: here are ${names}`,
      )
    }
  }
}

function checkContent({ spec }: PolicyObject, now: number, findings: FindingList): void {
  checkSubjects(spec.identity.subjects, findings)
  checkValidity(spec.lifecycle?.validity ?? {}, now, findings)
  const { default: otherwise, rules = [] } = spec.scope.clusters
  const place = 'spec.scope.clusters'
  if (otherwise === 'deny') {
    findings.warning(
      'default_denies_nothing',
      `${place}.default`,
      'deny means the same as none: other policies may still allow; write a Deny policy to deny',
    )
  }
  if (otherwise === 'allow' && spec.access.effect === 'Deny') {
    findings.warning('default_ignored', `${place}.default`, 'the default of a Deny policy is ignored: remove it')
  }
  if (rules.length === 0 && (otherwise !== 'allow' || spec.access.effect === 'Deny')) {
    findings.warning(
      'rules_empty',
      `${place}.rules`,
      'without rules the policy does nothing: add a rule with a selector',
    )
  }
  checkRules(rules, spec.access.effect, `${place}.rules`, findings)
}

function checkSubjects(subjects: MonitorAccessPolicySpec['identity']['subjects'], findings: FindingList): void {
  const { users = [], groups = [], serviceAccounts = [] } = subjects
  const place = 'spec.identity.subjects'
  if (users.length + groups.length + serviceAccounts.length === 0) {
    findings.warning('subjects_empty', place, 'the policy is for nobody: name users, groups or service accounts')
  }
  for (const [list, texts] of [
    ['users', users],
    ['groups', groups],
  ] as const) {
    for (const [i, text] of texts.entries()) {
      const path = `${place}.${list}[${i}]`
      checkPlain(text, path, findings)
      if (text.includes('*'))
        findings.warning(
          'subject_exact',
          path,
          `${quoted(text)} is compared as it is, "*" stands for nothing here: write every name`,
        )
    }
  }
  for (const [i, { name, namespace = 'default' }] of serviceAccounts.entries()) {
    const path = `${place}.serviceAccounts[${i}]`
    checkPlain(name, `${path}.name`, findings)
    checkPlain(namespace || 'default', `${path}.namespace`, findings)
    if (/[:*?]/.test(name + namespace)) {
      findings.warning(
        'subject_exact',
        path,
        'no service account has such a name: write its name and its namespace, each alone',
      )
    }
  }
}

type Validity = NonNullable<NonNullable<MonitorAccessPolicySpec['lifecycle']>['validity']>

function checkValidity(validity: Validity, now: number, findings: FindingList): void {
  const bound = (name: keyof Validity): number | undefined => {
    const text = validity[name]
    if (!text) return undefined
    const at = parseInstant(text)
    if (at === undefined) {
      findings.error(
        'time_invalid',
        `spec.lifecycle.validity.${name}`,
        `${quoted(text)} is no time that exists: write it as 2027-01-31T00:00:00Z or 2027-01-31T02:00:00+02:00`,
      )
    }
    return at
  }
  const [from, until] = [bound('notBefore'), bound('notAfter')]
  const place = 'spec.lifecycle.validity.notAfter'
  if (from !== undefined && until !== undefined && until < from) {
    findings.error(
      'validity_reversed',
      place,
      'notAfter is earlier than notBefore, so the policy would never hold: exchange or correct them',
    )
  } else if (until !== undefined && until < now) {
    findings.warning(
      'validity_expired',
      place,
      `the policy ended at ${validity.notAfter}: it does nothing any more; move notAfter or delete the policy`,
    )
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
