/** One rule of a role: resources, or paths that are no resources. Rules only ever allow. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  /** `pods`, `pods/log`, `*`, or `*` with a subresource behind it */
  readonly resources?: readonly string[]
  /** empty: all names */
  readonly resourceNames?: readonly string[]
  /** `/healthz`, `/openapi/*`; only a whole ending is left open */
  readonly nonResourceURLs?: readonly string[]
}

/** What somebody wants to do with a resource. */
export interface ResourceAttempt {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** absent or '': in the whole cluster */
  readonly namespace?: string
  /** absent or '': no single object */
  readonly name?: string
}

/** What somebody wants to do with a path that is no resource. */
export interface PathAttempt {
  readonly verb: string
  readonly path: string
}

export type Attempt = ResourceAttempt | PathAttempt

const ALL = '*'
const has = (list: readonly string[] | undefined, value: string): boolean => list?.includes(value) ?? false
const hasOrAll = (list: readonly string[] | undefined, value: string): boolean => has(list, ALL) || has(list, value)

/** Whether one rule allows what somebody wants, wherever the rule is in force. */
export function ruleAllows(rule: PolicyRule, attempt: Attempt): boolean {
  if (!hasOrAll(rule.verbs, attempt.verb)) return false
  if ('path' in attempt) return rule.nonResourceURLs?.some((url) => pathCovers(url, attempt.path)) ?? false
  const { group, resource, subresource = '', name = '' } = attempt
  return (
    hasOrAll(rule.apiGroups, group) &&
    namesResource(rule.resources, resource, subresource) &&
    (!rule.resourceNames?.length || rule.resourceNames.includes(name))
  )
}

function namesResource(resources: readonly string[] | undefined, resource: string, subresource: string): boolean {
  if (subresource === '') return hasOrAll(resources, resource)
  return hasOrAll(resources, `${resource}/${subresource}`) || has(resources, `*/${subresource}`)
}

/** Whether the path of a rule stands for another, which may itself end with a star. */
const pathCovers = (owner: string, path: string): boolean =>
  owner === path || (owner.endsWith(ALL) && path.startsWith(owner.replace(/\*+$/, '')))

/** The parts of what `wanted` grants, each of one verb and one thing, that none of the owned rules grants as well. */
export function uncovered(owned: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(singleRules).filter((single) => !owned.some((rule) => covers(rule, single)))
}

interface SingleRule extends PolicyRule {
  readonly verbs: readonly [string]
}

function singleRules(rule: PolicyRule): SingleRule[] {
  const { verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const names = resourceNames.length > 0 ? resourceNames.map((name) => ({ resourceNames: [name] })) : [{}]
  return verbs.flatMap((verb) => [
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        names.map((name): SingleRule => ({ verbs: [verb], apiGroups: [group], resources: [resource], ...name })),
      ),
    ),
    ...nonResourceURLs.map((url): SingleRule => ({ verbs: [verb], nonResourceURLs: [url] })),
  ])
}

function covers(rule: PolicyRule, single: SingleRule): boolean {
  if (!hasOrAll(rule.verbs, single.verbs[0])) return false
  const [url] = single.nonResourceURLs ?? []
  if (url !== undefined) return rule.nonResourceURLs?.some((own) => pathCovers(own, url)) ?? false
  const [group = ''] = single.apiGroups ?? []
  const [resource = ''] = single.resources ?? []
  const [name] = single.resourceNames ?? []
  return hasOrAll(rule.apiGroups, group) && coversResource(rule.resources, resource) && coversName(rule, name)
}

function coversResource(resources: readonly string[] | undefined, resource: string): boolean {
  if (hasOrAll(resources, resource)) return true
  const at = resource.indexOf('/')
  return at >= 0 && has(resources, `*${resource.slice(at)}`)
}

const coversName = ({ resourceNames }: PolicyRule, name: string | undefined): boolean =>
  !resourceNames?.length || (name !== undefined && resourceNames.includes(name))
