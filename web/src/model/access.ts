import type { ExplanationView, FindingView, PolicyView, PreviewView, SeenView, SubjectView } from '../contract.ts'
import { plural } from './format.ts'

export type FilterView = PolicyView['rules'][number]['filters'][string]
export type RuleView = PolicyView['rules'][number]

const some = (texts: readonly string[] | undefined): texts is readonly string[] =>
  texts !== undefined && texts.length > 0
const either = (texts: readonly string[]): string =>
  texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`
const pairs = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(' and ')

/** What a filter lets through, a condition a line; every one of them has to be met. */
export function filterLines({ visibility, names, namespaces, labels, fields, aggregations }: FilterView): string[] {
  if (visibility === 'none') return ['nothing is shown']
  const lines: string[] = []
  if (some(names?.allowed)) lines.push(`only those named ${either(names.allowed)}`)
  if (some(names?.denied)) lines.push(`none named ${either(names.denied)}`)
  if (some(namespaces?.allowed)) lines.push(`only in namespaces ${either(namespaces.allowed)}`)
  if (some(namespaces?.denied)) lines.push(`none in namespaces ${either(namespaces.denied)}`)
  if (labels && Object.keys(labels).length > 0) lines.push(`only with ${pairs(labels)}`)
  for (const [field, { allowed, denied }] of Object.entries(fields ?? {})) {
    if (some(allowed)) lines.push(`only where ${field} is ${either(allowed)}`)
    if (some(denied)) lines.push(`none where ${field} is ${either(denied)}`)
  }
  if (lines.length === 0)
    lines.push(visibility === 'filtered' ? 'nothing is shown: it is to be filtered, but by nothing' : 'all are shown')
  if (some(aggregations?.include)) lines.push(`of its results only ${either(aggregations.include)}`)
  if (some(aggregations?.exclude)) lines.push(`of its results never ${either(aggregations.exclude)}`)
  return lines
}

/** Which clusters a rule is about. */
export function selectorText({ names, pattern, labels }: RuleView['selector']): string {
  const ways: string[] = []
  if (names.length > 0) ways.push(`named ${either(names)}`)
  if (pattern) ways.push(`whose name matches ${pattern}`)
  if (Object.keys(labels).length > 0) ways.push(`with ${pairs(labels)}`)
  return ways.length === 0 ? 'no cluster: the selector is empty' : `clusters ${either(ways)}`
}

/** What may be done there. */
export function permissionText(permissions: readonly string[]): string {
  const metrics = permissions.includes('view_metrics')
  if (permissions.includes('view'))
    return metrics ? 'see it, its usage and its history' : 'see it, without usage and history'
  return metrics ? 'usage and history only' : 'nothing'
}

const selectedByText: Readonly<Record<string, string>> = {
  name: 'by its name',
  pattern: 'by a pattern on its name',
  labels: 'by its labels',
  default: 'by the default of the policy, as no rule of any policy selects it',
  fault: 'because a part of the rule cannot be read, and what it could select is denied',
}
export const selectedBy = (how: string): string => selectedByText[how] ?? how

const skipText: Readonly<Record<string, string>> = {
  disabled: 'is switched off',
  not_yet_valid: 'is not valid yet',
  expired: 'is no longer valid',
  bounds_unreadable: 'says from when to when in a way that cannot be read',
  no_rule_selects_the_cluster: 'has no rule for this cluster',
  action_not_permitted: 'does not permit this',
  type_not_named: 'does not name this type',
  lower_than_the_deciding: 'comes after the one that decided',
  default_not_reached: 'its default counts only where no rule of any policy selects the cluster',
}
export const skipWord = (why: string): string => skipText[why] ?? why.replaceAll('_', ' ')

export type Verdict = 'shown' | 'part' | 'hidden'

export interface Answered {
  readonly verdict: Verdict
  /** a sentence: who sees what of which cluster */
  readonly text: string
}

/** The answer of `explain` in a sentence. `who` is "You", or the name of somebody else. */
export function answerText({ result, question, item }: ExplanationView, who: string): Answered {
  const { cluster, type, name, action } = question
  if (item && type && name)
    return {
      verdict: item.shown ? 'shown' : 'hidden',
      text: `${who} ${item.shown ? 'may see' : 'may not see'} ${name} among the ${type} of ${cluster}`,
    }
  const what = action === 'view_metrics' ? 'usage and history of ' : ''
  const where = type ? `the ${type} of ${cluster}` : `cluster ${cluster}`
  if (result === 'deny') return { verdict: 'hidden', text: `${who} may not see ${what}${where}` }
  if (result === 'partial') return { verdict: 'part', text: `${who} may see a part of ${what}${where}` }
  return { verdict: 'shown', text: `${who} may see ${what}${where}` }
}

/** `dev, ops` as people type it. */
export const splitList = (text: string): string[] => [
  ...new Set(
    text
      .split(/[,\n]/)
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  ),
]

export const subjectText = ({ username, groups = [] }: SubjectView): string => {
  if (!username) return groups.length > 0 ? `anybody in ${groups.join(', ')}` : 'anybody'
  return groups.length > 0 ? `${username} (${groups.join(', ')})` : username
}

/** In how many ways a policy is about somebody. */
export function subjectCount({ users, groups, serviceAccounts }: PolicyView): string {
  const parts = [
    users.length > 0 && plural(users.length, 'user'),
    groups.length > 0 && plural(groups.length, 'group'),
    serviceAccounts.length > 0 && plural(serviceAccounts.length, 'service account'),
  ].filter((part) => part !== false)
  return parts.length === 0 ? 'nobody' : parts.join(', ')
}

export const countFindings = (findings: readonly FindingView[]): { errors: number; warnings: number } => ({
  errors: findings.filter(({ severity }) => severity === 'error').length,
  warnings: findings.filter(({ severity }) => severity === 'warning').length,
})

/** Those of which some row counts more or less than before. */
export const changedTypes = (changes: PreviewView['changes']): string[] =>
  countedTypes(changes).filter((type) =>
    changes.some(({ counts }) => counts[type] !== undefined && counts[type].before !== counts[type].after),
  )

/** Every type that any row counts, those of every cluster first, in their usual order. */
export function countedTypes(
  rows: readonly { readonly counts: SeenView['counts'] | PreviewView['changes'][number]['counts'] }[],
): string[] {
  const usual = ['nodes', 'namespaces', 'deployments', 'pods', 'operators', 'clusterOperators', 'alerts', 'events']
  const found = new Set(rows.flatMap(({ counts }) => Object.keys(counts)))
  return [...usual.filter((type) => found.has(type)), ...[...found].filter((type) => !usual.includes(type)).sort()]
}

/** A type of what is counted, as a heading. */
export const typeWord = (type: string): string =>
  type === 'clusterOperators' ? 'Cluster operators' : `${type.slice(0, 1).toUpperCase()}${type.slice(1)}`

/** More, less, or otherwise the same amount: the direction of a change, for its mark. */
export function directionOf({ before, after, counts }: PreviewView['changes'][number]): 'more' | 'less' | 'mixed' {
  const rank = (level: string) => ['none', 'limited', 'full'].indexOf(level)
  const steps = [rank(after) - rank(before), ...Object.values(counts).map((count) => count.after - count.before)]
  const [up, down] = [steps.some((step) => step > 0), steps.some((step) => step < 0)]
  return up === down ? 'mixed' : up ? 'more' : 'less'
}

// ── own policies, as they are stored ─────────────────────────────────────────────────────────────────────────────────

type Loose = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const objects = (value: unknown): Loose[] => (Array.isArray(value) ? value.filter(isObject) : [])
const texts = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.flatMap((one) => (typeof one === 'string' ? one : Array.isArray(one) ? String(one[0]) : []))
    : []
const textMap = (value: unknown): Record<string, string> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)])) : {}

/** The rules of a stored document, in the form in which administrators get them. What is not readable is left out. */
export function rulesOfDocument(document: Loose): RuleView[] {
  return objects(document.cluster_rules).map(({ cluster_selector, permissions, resources }) => {
    const selector = isObject(cluster_selector) ? cluster_selector : {}
    const may = isObject(permissions) ? permissions : {}
    return {
      selector: {
        names: texts(selector.matchNames),
        pattern: typeof selector.matchPattern === 'string' ? selector.matchPattern : '',
        labels: textMap(selector.matchLabels),
      },
      permissions: [...(may.view === true ? ['view'] : []), ...(may.viewMetrics === true ? ['view_metrics'] : [])],
      filters: Object.fromEntries(objects(resources).map((one) => [String(one.type ?? ''), filterOfDocument(one)])),
    }
  })
}

function filterOfDocument(one: Loose): FilterView {
  const lists = (...keys: readonly [allowed: string, denied: string, patterns: string, deniedPatterns: string]) => ({
    allowed: [...texts(one[keys[0]]), ...texts(one[keys[2]])],
    denied: [...texts(one[keys[1]]), ...texts(one[keys[3]])],
  })
  const fields = isObject(one.field_filters) ? one.field_filters : {}
  const rules = isObject(one.aggregation_rules) ? one.aggregation_rules : {}
  const { visibility } = one
  return {
    visibility: visibility === 'none' || visibility === 'filtered' ? visibility : 'all',
    names: lists('allowed_names', 'denied_names', 'name_patterns', 'deny_name_patterns'),
    namespaces: lists('allowed_ns', 'denied_ns', 'ns_patterns', 'deny_ns_patterns'),
    labels: textMap(one.labels),
    fields: Object.fromEntries(
      Object.entries(fields).map(([field, lists]) => [
        field,
        {
          allowed: isObject(lists) ? [...texts(lists.allowed_literals), ...texts(lists.allowed_patterns)] : [],
          denied: isObject(lists) ? [...texts(lists.denied_literals), ...texts(lists.denied_patterns)] : [],
        },
      ]),
    ),
    aggregations: { include: texts(rules.include), exclude: texts(rules.exclude) },
  }
}
