import type { MonitorAccessPolicySpec } from '#kinds'
import { isAnchored } from './anchored.ts'
import { checkShown } from './check-filters.ts'
import { isOwnType } from './document.ts'
import { checkPlain, type FindingList } from './findings.ts'
import { looksLikeRegex, re2 } from './pattern.ts'
import { quoted } from './texts.ts'
import { standardTypes } from './types.ts'

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
type Resource = NonNullable<Rule['resources']>[number]

/** Everything about rules that the schema cannot say. `path` is that of the list. */
export function checkRules(rules: readonly Rule[], effect: string, path: string, findings: FindingList): void {
  for (const [i, rule] of rules.entries()) {
    const here = `${path}[${i}]`
    checkSelector(rule.selector, effect, `${here}.selector`, findings)
    checkPermissions(rule.permissions ?? {}, effect, `${here}.permissions`, findings)
    checkResources(rule.resources ?? [], effect, `${here}.resources`, findings)
  }
}

function checkSelector(selector: Rule['selector'], effect: string, path: string, findings: FindingList): void {
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
    if (effect === 'Deny' && looksLikeRegex(name)) {
      const message = `${quoted(name)} looks like a regular expression and would deny no cluster, since names know only "*" and "?": write it into matchPattern, with ^ in front and $ behind`
      findings.error('name_looks_like_regex', here, message)
    } else if (/[^a-z0-9.*?\n\r\t-]/.test(name)) {
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
    checkShown(resource, effect, here, findings)
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
