import type { MonitorAccessPolicySpec } from '#kinds'
import { isOwnType } from './document.ts'
import { checkPlain, type FindingList } from './findings.ts'
import { isWildcard, re2 } from './pattern.ts'
import { memberPath, quoted } from './texts.ts'
import { standardTypes } from './types.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Filters = NonNullable<Resource['filters']>
type Texts = NonNullable<Filters['names']>

/** Everything about rules that the schema cannot say. `path` is that of the list. */
export function checkRules(rules: readonly Rule[], effect: string, path: string, findings: FindingList): void {
  for (const [i, rule] of rules.entries()) {
    const here = `${path}[${i}]`
    checkSelector(rule.selector, `${here}.selector`, findings)
    checkPermissions(rule.permissions ?? {}, effect, `${here}.permissions`, findings)
    checkResources(rule.resources ?? [], effect, `${here}.resources`, findings)
  }
}

function checkSelector(selector: Rule['selector'], path: string, findings: FindingList): void {
  const { matchNames = [], matchPattern = '', matchLabels = {} } = selector
  if (matchNames.length === 0 && matchPattern === '' && Object.keys(matchLabels).length === 0) {
    findings.warning(
      'selector_empty',
      path,
      'an empty selector selects no cluster: for all of them write matchNames: ["*"]',
    )
  }
  for (const [i, name] of matchNames.entries()) {
    const here = `${path}.matchNames[${i}]`
    checkPlain(name, here, findings)
    if (/[^a-z0-9.*?\n\r\t-]/.test(name)) {
      const message = `no cluster is named like ${quoted(name)}, names have lower case letters, digits, "-" and ".": correct it, or use matchPattern for a regular expression`
      findings.warning('cluster_name_impossible', here, message)
    }
  }
  if (matchPattern !== '') checkPattern(matchPattern, `${path}.matchPattern`, findings)
}

function checkPattern(pattern: string, path: string, findings: FindingList): void {
  const { fault } = re2(pattern)
  if (fault !== undefined) {
    const message = `the pattern ${quoted(pattern)} cannot be used: ${fault}; write an expression in the syntax of RE2, without look-around and back references`
    findings.error('pattern_invalid', path, message)
  } else if (!isAnchored(pattern)) {
    const message = `the pattern is found anywhere in a name, so ${quoted(pattern)} selects more than names that begin with it: put ^ in front of it (and $ behind), or .* where that is meant`
    findings.warning('pattern_unanchored', path, message)
  }
}

/** Every alternative says where it begins: `^`, `\A`, or openly `.*`. A guess where groups are nested; it is for a warning. */
function isAnchored(pattern: string): boolean {
  return alternatives(pattern).every((part) => {
    const text = part.replace(/^(\(\?[a-zA-Z-]+\))+/, '')
    const group = /^\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?/.exec(text)
    const end = group ? closing(text) : -1
    if (group && end > 0) return !/^[?*{]/.test(text.slice(end + 1)) && isAnchored(text.slice(group[0].length, end))
    return /^(\^|\\A|\.[*+])/.test(text)
  })
}

/** Splits at the bars that are in no group, no class and not escaped. */
function alternatives(pattern: string): readonly string[] {
  const cuts = [...syntax(pattern)]
    .filter(({ depth, character }) => depth === 0 && character === '|')
    .map(({ at }) => at)
  return [...cuts, pattern.length].map((end, i) => pattern.slice(i === 0 ? 0 : (cuts[i - 1] ?? 0) + 1, end))
}

const closing = (pattern: string): number =>
  [...syntax(pattern)].find(({ depth, character }) => depth === 0 && character === ')')?.at ?? -1

/** Characters that are syntax, with the depth of groups they stand in. */
function* syntax(
  pattern: string,
): Generator<{ readonly at: number; readonly character: string; readonly depth: number }> {
  let depth = 0
  let inClass = false
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at)
    if (character === '\\') at++
    else if (inClass) inClass = character !== ']'
    else {
      if (character === '[') inClass = true
      if (character === ')') depth--
      yield { at, character, depth }
      if (character === '(') depth++
    }
  }
}

function checkPermissions(
  permissions: NonNullable<Rule['permissions']>,
  effect: string,
  path: string,
  findings: FindingList,
): void {
  const { view, viewMetrics } = permissions
  const isSet = view !== undefined || viewMetrics !== undefined
  if (!isSet || view === true) return
  if (effect === 'Allow') {
    const message = viewMetrics
      ? 'viewMetrics without view shows no cluster and nothing in it: add view: true'
      : 'the rule grants nothing: add view: true, or remove the rule'
    findings.warning('view_not_granted', path, message)
  } else {
    findings.warning(
      'permissions_in_deny',
      path,
      'a rule of a Deny denies every permission, whatever is written here: remove permissions',
    )
  }
}

function checkResources(resources: readonly Resource[], effect: string, path: string, findings: FindingList): void {
  const first = new Map<string, number>()
  for (const [i, resource] of resources.entries()) {
    const here = `${path}[${i}]`
    const before = first.get(resource.type)
    if (before === undefined) first.set(resource.type, i)
    else {
      const message = `${quoted(resource.type)} stands in resources[${before}] too: what either of them hides is hidden; make them one`
      findings.warning('duplicate_type', here, message)
    }
    checkType(resource.type, `${here}.type`, findings)
    checkVisibility(resource, effect, here, findings)
    if (resource.filters) checkFilters(resource.type, resource.filters, `${here}.filters`, findings)
    if (resource.aggregations) checkAggregations(resource, `${here}.aggregations`, findings)
  }
}

const knownUnder: Readonly<Record<string, string>> = {
  deployments: 'namespaces',
  deployment: 'namespaces',
  clusteroperators: 'operators',
  clusteroperator: 'operators',
}

/** Types that MetricSources define are anybody's to name, so a name that looks wrong is only that. */
function checkType(type: string, path: string, findings: FindingList): void {
  checkPlain(type, path, findings)
  if (isOwnType(type)) return
  const lower = type.toLowerCase()
  const under = Object.hasOwn(knownUnder, lower) ? knownUnder[lower] : undefined
  const meant = under ?? [...standardTypes, 'registries'].find((standard) => isNear(lower, standard))
  if (meant === undefined) return
  const message = under
    ? `${quoted(type)} is no type of its own, it follows ${meant}: write ${meant}, unless a MetricSource is named so`
    : `${quoted(type)} is not the standard type ${meant}, so it hides nothing of it: write ${meant}, unless a MetricSource is named so`
  findings.warning('type_misspelled', path, message)
}

/** One edit away, or two in a long word: a letter too many, too few, another, or two exchanged. */
function isNear(text: string, word: string): boolean {
  const bound = word.length > 6 ? 2 : 1
  if (Math.abs(text.length - word.length) > bound) return false
  let before: number[] = []
  let row = Array.from({ length: word.length + 1 }, (_, j) => j)
  for (let i = 1; i <= text.length; i++) {
    const next = [i]
    for (let j = 1; j <= word.length; j++) {
      const same = text[i - 1] === word[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && text[i - 1] === word[j - 2] && text[i - 2] === word[j - 1]
      const costs = [(row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same]
      next.push(Math.min(...costs, swapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY))
    }
    before = row
    row = next
  }
  return (row[word.length] ?? bound + 1) <= bound
}

const isEmptyTexts = ({ allowed = [], denied = [] }: Texts = {}): boolean => allowed.length + denied.length === 0

const isEmptyFilters = ({ names, namespaces, labels = {}, fields = {} }: Filters): boolean =>
  isEmptyTexts(names) &&
  isEmptyTexts(namespaces) &&
  Object.keys(labels).length === 0 &&
  Object.values(fields).every(isEmptyTexts)

function checkVisibility(resource: Resource, effect: string, path: string, findings: FindingList): void {
  const { visibility = 'all', filters = {} } = resource
  const here = `${path}.visibility`
  const isEmpty = isEmptyFilters(filters)
  if (effect === 'Deny') {
    if (!isEmpty)
      findings.warning(
        'filters_in_deny',
        `${path}.filters`,
        'a Deny hides the whole type, its filters are ignored: remove them, or deny names in the filters of an Allow',
      )
    return
  }
  if (visibility === 'filtered' && isEmpty) {
    findings.warning('filter_empty', here, 'filtered without filters shows nothing: add filters, or write none')
  } else if (visibility === 'all' && !isEmpty) {
    findings.warning('filters_under_all', here, 'the filters count although visibility is all: write filtered')
  } else if (visibility === 'none' && !isEmpty) {
    findings.warning(
      'filters_under_none',
      here,
      'none hides everything, the filters do nothing: write filtered, or remove them',
    )
  }
}

const hasLabels: ReadonlySet<string> = new Set(['nodes', 'namespaces', 'alerts', 'registries'])
const hasNoNamespace: ReadonlySet<string> = new Set(['nodes', 'registries'])

function checkFilters(type: string, filters: Filters, path: string, findings: FindingList): void {
  const { names, namespaces, labels = {}, fields = {} } = filters
  checkTexts(names ?? {}, `${path}.names`, findings)
  checkTexts(namespaces ?? {}, `${path}.namespaces`, findings)
  for (const [name, texts] of Object.entries(fields)) checkLists(texts, memberPath(`${path}.fields`, name), findings)
  if (!isEmptyTexts(namespaces) && hasNoNamespace.has(type)) {
    findings.warning(
      'namespaces_ignored',
      `${path}.namespaces`,
      `${type} have no namespace, so this filter is ignored: remove it, or filter names`,
    )
  }
  if (!isOwnType(type)) return
  if (Object.keys(labels).length > 0 && !hasLabels.has(type)) {
    findings.warning(
      'labels_never_match',
      `${path}.labels`,
      `labels of ${type} are not known here, so this filter hides all of them: filter names or namespaces`,
    )
  }
  if (type === 'pods' && !isEmptyTexts(names)) {
    findings.warning(
      'names_never_match',
      `${path}.names`,
      'pods are known as counts per namespace only, so a filter of their names hides all of them: filter namespaces',
    )
  }
  if (Object.values(fields).some((texts) => !isEmptyTexts(texts))) {
    findings.warning(
      'fields_never_match',
      `${path}.fields`,
      `only types of MetricSources have fields, so this filter hides all ${type}: remove it`,
    )
  }
}

function checkTexts(texts: Texts, path: string, findings: FindingList): void {
  for (const list of ['allowed', 'denied'] as const) {
    for (const [i, text] of (texts[list] ?? []).entries()) checkPlain(text, `${path}.${list}[${i}]`, findings)
  }
  checkLists(texts, path, findings)
}

function checkLists({ allowed = [], denied = [] }: Texts, path: string, findings: FindingList): void {
  for (const [list, texts] of [
    ['allowed', allowed],
    ['denied', denied],
  ] as const) {
    for (const [i, text] of texts.entries()) {
      if (!isWildcard(text) || !/[\\|()[\]{}^$+]/.test(text)) continue
      const message = `in ${quoted(text)} only "*" and "?" are special, every other character is itself: this is no regular expression`
      findings.warning('wildcard_looks_like_regex', `${path}.${list}[${i}]`, message)
    }
  }
  const hidden = new Set(denied)
  if (hidden.has('*') || (allowed.length > 0 && allowed.every((text) => hidden.has(text)))) {
    findings.warning(
      'filter_hides_all',
      path,
      'everything that is allowed here is denied too, and denied wins: nothing is shown; remove one of them',
    )
  }
}

function checkAggregations({ type, aggregations = {} }: Resource, path: string, findings: FindingList): void {
  const { include = [], exclude = [] } = aggregations
  if (isOwnType(type)) {
    findings.warning(
      'aggregations_ignored',
      path,
      `only types of MetricSources have aggregations, for ${type} they are ignored: remove them`,
    )
    return
  }
  const hidden = include.filter((name) => exclude.includes(name))
  if (hidden.length > 0) {
    findings.warning(
      'aggregations_contradict',
      path,
      `${hidden.slice(0, 5).map(quoted).join(', ')} are both included and excluded, and are not shown: remove one of them`,
    )
  }
}
