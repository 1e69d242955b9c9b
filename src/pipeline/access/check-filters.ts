import type { MonitorAccessPolicySpec } from '#kinds'
import { isOwnType } from './document.ts'
import { checkPlain, type FindingList } from './findings.ts'
import { isWildcard, looksLikeRegex } from './pattern.ts'
import { memberPath, quoted } from './texts.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]
type Filters = NonNullable<Resource['filters']>
type Texts = NonNullable<Filters['names']>

/** What one entry of `resources` shows, and whether it can mean what it says. */
export function checkShown(resource: Resource, effect: string, path: string, findings: FindingList): void {
  checkVisibility(resource, effect, path, findings)
  if (resource.filters) checkFilters(resource, effect, `${path}.filters`, findings)
  if (resource.aggregations) checkAggregations(resource, `${path}.aggregations`, findings)
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

/** Names of these are those of Kubernetes, so what holds syntax of expressions is none. */
const hasPlainNames: ReadonlySet<string> = new Set(['nodes', 'namespaces', 'pods'])

function checkFilters({ type, filters = {} }: Resource, effect: string, path: string, findings: FindingList): void {
  const { names, namespaces, labels = {}, fields = {} } = filters
  // The filters of a Deny are ignored: it hides the whole type.
  const refuse = (isRefused: (text: string) => boolean) => (effect === 'Deny' ? () => false : isRefused)
  const isOddWildcard = refuse((text) => isWildcard(text) && looksLikeRegex(text))
  const isOddName = refuse(looksLikeRegex)
  checkTexts(names ?? {}, hasPlainNames.has(type) ? isOddName : isOddWildcard, `${path}.names`, findings)
  checkTexts(namespaces ?? {}, isOddName, `${path}.namespaces`, findings)
  for (const [name, texts] of Object.entries(fields))
    checkLists(texts, isOddWildcard, memberPath(`${path}.fields`, name), findings)
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

type IsRefused = (text: string) => boolean

function checkTexts(texts: Texts, isRefused: IsRefused, path: string, findings: FindingList): void {
  for (const list of ['allowed', 'denied'] as const) {
    for (const [i, text] of (texts[list] ?? []).entries()) checkPlain(text, `${path}.${list}[${i}]`, findings)
  }
  checkLists(texts, isRefused, path, findings)
}

/** @param isRefused a denied text that would hide less than its author means, or than the original hid by it */
function checkLists(
  { allowed = [], denied = [] }: Texts,
  isRefused: IsRefused,
  path: string,
  findings: FindingList,
): void {
  for (const [list, texts] of [
    ['allowed', allowed],
    ['denied', denied],
  ] as const) {
    for (const [i, text] of texts.entries()) {
      const here = `${path}.${list}[${i}]`
      if (list === 'denied' && isRefused(text)) {
        const message = `${quoted(text)} looks like a regular expression and would hide less than that: only "*" and "?" are special here; write each name or wildcard by itself, and "?" for a character that is meant as it is`
        findings.error('denied_looks_like_regex', here, message)
      } else if (isWildcard(text) && looksLikeRegex(text)) {
        const message = `in ${quoted(text)} only "*" and "?" are special, every other character is itself: this is no regular expression`
        findings.warning('wildcard_looks_like_regex', here, message)
      }
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
