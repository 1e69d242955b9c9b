import {
  actionsOf,
  customReason,
  deciderOf,
  filtersOf,
  reasonOf,
  whyItemHidden,
  whyRegistryHidden,
} from './access-view.ts'
import { decide, decideCustom, decideRows, type Hit, type Ruling } from './decide.ts'
import { areEventsHidden, whyEventRowHidden } from './event-access-view.ts'
import type { PreparedPolicy } from './prepare.ts'
import { explainResource, isNamed } from './resource-access-view.ts'
import {
  type RowRules,
  whyAlertHidden,
  whyClusterOperatorHidden,
  whyEventHidden,
  whyNamespaceHidden,
  whyNodeHidden,
  whyOperatorHidden,
} from './row-filter.ts'
import { stateOf } from './survey.ts'
import { skipNow, verifiedEmail } from './touching.ts'
import { filterSummary, type Why } from './type-filter.ts'
import type {
  Action,
  Decision,
  Explanation,
  OwnPolicy,
  Principal,
  Question,
  Semantics,
  SkippedPolicy,
  SkipReason,
  StandardResource,
  StandardType,
} from './types.ts'
import { standardTypes } from './types.ts'

export interface Asked {
  readonly principal: Principal
  readonly question: Question
  readonly semantics: Semantics
  readonly generation: string
  readonly now: number
  /** those that touch the principal; null: it is an administrator */
  readonly policies: readonly PreparedPolicy[] | null
}

/** Asks the very functions that decide requests, and writes down what they passed over. */
export function explain({ principal, question, semantics, generation, now, policies }: Asked): Explanation {
  const about = { question, principal, semantics, generation }
  if (!policies) return { ...about, ...unrestricted, ...(question.name !== undefined && { item: shown }) }
  const skipped: { readonly order: number; readonly skipped: SkippedPolicy }[] = []
  const skip = (policy: PreparedPolicy, why: SkipReason, detail: string) =>
    skipped.push({ order: policy.order, skipped: { ...nameOf(policy), why, detail } })
  const effective: PreparedPolicy[] = []
  for (const policy of policies) {
    const reason = skipNow(policy, now)
    if (reason) skip(policy, reason.why, reason.detail)
    else effective.push(policy)
  }
  const answer = answerOf(question, effective, semantics, (at, why) => {
    const policy = effective[at]
    if (policy) skip(policy, why, details[why])
  })
  // A policy that was passed over on the way, and was come back to in the end, is not one that was passed over.
  const others = skipped.filter((entry) => entry.skipped.policy !== answer.decidedBy?.policy)
  others.sort((a, b) => a.order - b.order)
  return { ...about, ...answer, skipped: others.map((entry) => entry.skipped) }
}

const unrestricted: Decision = {
  result: 'allow',
  reason: 'Administrators see everything',
  permissions: ['view', 'view_metrics'],
  decidedBy: null,
  skipped: [],
  filters: {},
}
const shown = { shown: true, why: 'nothing is hidden' }

const nameOf = ({ stored }: PreparedPolicy) => ({
  policy: stored.key,
  effect: stored.document.effect,
  priority: stored.document.priority,
})

const details: Readonly<Record<SkipReason, string>> = {
  disabled: 'it is not enabled',
  not_yet_valid: 'it is not valid yet',
  expired: 'it is not valid any more',
  bounds_unreadable: 'its validity cannot be read',
  faulty: 'its document has a fault',
  no_rule_selects_the_cluster: 'none of its rules selects the cluster',
  action_not_permitted: 'the rule that selects the cluster does not permit this',
  type_not_named: 'the rule that selects the cluster is about other types',
  lower_than_the_deciding: 'a policy before it decided',
  default_not_reached: 'rules that select the cluster come before defaults',
}

type Answer = Omit<Decision, 'skipped'> & Pick<Explanation, 'item'>
type Tell = (at: number, why: SkipReason) => void

function answerOf(question: Question, policies: readonly PreparedPolicy[], semantics: Semantics, tell: Tell): Answer {
  const { type, cluster } = question
  const isCustom = type !== undefined && type !== 'registries' && !isStandard(type) && !question.resource
  if (!isCustom) {
    const ruling = (type === undefined ? decide : decideRows)(policies, cluster, semantics, tell)
    // The policy that shows the cluster comes too late for a type that a Deny above it hides.
    if (ruling.by && deniedBy(question, ruling)) tell(ruling.by.at, 'lower_than_the_deciding')
    const isSeen = type === undefined || decide(policies, cluster, semantics).view
    return {
      ...standardAnswer(question, ruling, policies, semantics),
      ...(!isSeen && noItem(question)),
      ...(!isSeen && question.resource && { result: 'deny' }),
    }
  }
  const ruling = decide(policies, cluster, semantics)
  if (!ruling.view) {
    decide(policies, cluster, semantics, tell)
    const reason = `Access denied to cluster '${cluster.name}'`
    return {
      result: 'deny',
      reason,
      permissions: [],
      decidedBy: deciderOf(ruling.by, policies),
      filters: {},
      ...noItem(question),
    }
  }
  return customAnswer(question, type, ruling, policies, semantics, tell)
}

const isStandard = (type: string): type is StandardType => standardTypes.some((standard) => standard === type)

function standardAnswer(
  question: Question,
  ruling: Ruling,
  policies: readonly PreparedPolicy[],
  semantics: Semantics,
): Answer {
  const permissions = actionsOf(ruling)
  const filters = filtersOf(ruling)
  const denied = deniedBy(question, ruling)
  const isHidden = denied !== undefined || hidesKind(question, ruling, semantics)
  const isPermitted = permissions.includes(question.action)
  if (!ruling.view || !isPermitted) {
    const decidedBy = deciderOf(ruling.by, policies)
    const reason = ruling.view ? notPermitted(decidedBy?.policy ?? '', question.action) : reasonOf(ruling, policies)
    return { result: 'deny', reason, permissions, decidedBy, filters, ...noItem(question) }
  }
  const by = denied ?? ruling.by
  return {
    result: isHidden ? 'deny' : ruling.result,
    reason: reasonOf({ ...ruling, by, view: !isHidden }, policies),
    permissions,
    decidedBy: deciderOf(by, policies),
    filters,
    ...itemOf(question, ruling, semantics),
  }
}

const pods: StandardResource = { name: 'pods', rule: 'pods', isTaken: false }

const kindOf = ({ type, resource }: Question): StandardResource | undefined =>
  resource ?? (type === 'pods' ? pods : undefined)

/** The Deny that hides the type: under any of its names, and through pods where it follows them. */
function deniedBy(question: Question, ruling: Ruling): Hit | undefined {
  const { type } = question
  const kind = kindOf(question)
  if (type === undefined) return undefined
  if (!kind) return ruling.denied.get(type)
  const own = ruling.denied.get(kind.name) ?? ruling.denied.get(`core/${kind.name}`)
  if (own || kind.rule === 'events' || isNamed(ruling.filters, kind)) return own
  return kind.rule === 'named' ? ruling.denied.values().next().value : ruling.denied.get('pods')
}

/** No row of the kind can be shown, whatever it is called. Of pods there are counts besides. */
function hidesKind({ resource: kind }: Question, ruling: Ruling, semantics: Semantics): boolean {
  if (!kind || kind.rule === 'pods') return false
  const rules: RowRules = { semantics, filters: ruling.filters, usage: ruling.usage }
  if (kind.rule === 'events') return areEventsHidden(rules, kind)
  const { filters } = explainResource(rules, kind, { name: '', values: {} }, () => true)
  return !filters || filters.some(({ isClosed }) => isClosed)
}

const notPermitted = (policy: string, action: Action): string =>
  `The deciding policy ${policy} does not permit ${action}`

function customAnswer(
  question: Question,
  type: string,
  ruling: Ruling,
  policies: readonly PreparedPolicy[],
  semantics: Semantics,
  tell: Tell,
): Answer {
  const custom = decideCustom(policies, question.cluster, type, ruling, semantics, tell)
  const decidedBy = deciderOf(custom.by, policies)
  const permissions: readonly Action[] =
    custom.result === 'deny' ? [] : custom.viewMetrics ? ['view', 'view_metrics'] : ['view']
  const isPermitted = custom.result === 'deny' || permissions.includes(question.action)
  const filters = custom.by ? { [type]: filterSummary(custom.filter) } : {}
  const { name = '', namespace, labels, fields = {} } = question
  const item = { name, ...(namespace !== undefined && { namespace }), ...(labels && { labels }), values: fields }
  const why = custom.result === 'deny' ? 'visibility' : whyItemHidden(custom.filter, item, semantics)
  return {
    result: isPermitted ? custom.result : 'deny',
    reason: isPermitted
      ? customReason(custom, true, question.cluster.name, type, policies)
      : notPermitted(decidedBy?.policy ?? '', question.action),
    permissions,
    decidedBy,
    filters,
    ...(question.name !== undefined && { item: itemAnswer(type, why) }),
  }
}

// ── one item ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const noItem = ({ name, type = 'cluster' }: Question): Pick<Explanation, 'item'> =>
  name === undefined ? {} : { item: itemAnswer(type, 'visibility') }

function itemOf(question: Question, ruling: Ruling, semantics: Semantics): Pick<Explanation, 'item'> {
  const { type, name } = question
  if (type === undefined || name === undefined) return {}
  if (type === 'registries') {
    const why = whyRegistryHidden(ruling, { name, labels: question.labels ?? {} }, semantics)
    return { item: itemAnswer(type, why) }
  }
  const rules: RowRules = { semantics, filters: ruling.filters, usage: ruling.usage }
  const kind = kindOf(question)
  if (kind) {
    const { namespace = '', labels, fields = {}, namespaceLabels = null } = question
    const item = { name, namespace, ...(labels && { labels }), values: fields }
    const isShown = (place: string) => whyNamespaceHidden(rules, place, namespaceLabels) === null
    const why =
      kind.rule === 'events'
        ? whyEventRowHidden(rules, kind, item, { isNamespaceShown: isShown, known: () => question.object ?? null })
        : explainResource(rules, kind, item, isShown).why
    return { item: itemAnswer(type, why) }
  }
  if (!isStandard(type) || type === 'pods') return {}
  return { item: itemAnswer(type, whyHidden(type, name, question, rules)) }
}

function whyHidden(type: Exclude<StandardType, 'pods'>, name: string, question: Question, rules: RowRules): Why | null {
  const { namespace = '', labels, fields } = question
  switch (type) {
    case 'nodes':
      return whyNodeHidden(rules, name, labels ?? null)
    case 'namespaces':
      return whyNamespaceHidden(rules, name, labels ?? null)
    case 'operators':
      return namespace === ''
        ? whyClusterOperatorHidden(rules, name)
        : whyOperatorHidden(rules, {
            csv: name,
            displayName: typeof fields?.displayName === 'string' ? fields.displayName : name,
            availableInNamespaces: [namespace],
            clusterWide: false,
          })
    case 'events':
      return whyEventHidden(rules, name, '', namespace)
    case 'alerts':
      return whyAlertHidden(rules, { ...labels, name, ...(namespace && { namespace }) })
  }
}

const because: Readonly<Record<Why, string>> = {
  visibility: 'is hidden as a whole',
  name: 'is filtered by name, and this name does not pass',
  namespace: 'is filtered by namespace, and none of its namespaces passes',
  labels: 'is filtered by labels, and not all of them are on it',
  field: 'is filtered by fields, and a value does not pass',
}

const itemAnswer = (type: string, why: Why | string | null): NonNullable<Explanation['item']> => {
  if (why === null) return { shown: true, why: `${type}: nothing hides it` }
  return { shown: false, why: `${type} ${Object.hasOwn(because, why) ? because[why as Why] : why}` }
}

// ── the principal's own policies ─────────────────────────────────────────────────────────────────────────────────────

export function ownPolicies(
  policies: readonly PreparedPolicy[],
  principal: Principal,
  semantics: Semantics,
  now: number,
): readonly OwnPolicy[] {
  return policies.map((policy) => ({
    source: sourceOf(policy, principal, semantics),
    policy: policy.stored,
    ...stateOf(policy.stored, now),
  }))
}

function sourceOf({ stored }: PreparedPolicy, principal: Principal, semantics: Semantics): string {
  const { users, groups, service_accounts } = stored.document
  const email = verifiedEmail(principal, semantics)
  if (users?.includes(principal.username) || (email && users?.includes(email))) return 'user'
  const group = principal.groups.find((name) => groups?.includes(name))
  if (group !== undefined) return `group:${group}`
  return service_accounts?.includes(principal.username) ? 'serviceaccount' : 'user'
}
