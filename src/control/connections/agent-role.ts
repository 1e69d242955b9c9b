import { type Collector, clusterRoleFor, type RoleRule, usageRights } from '#collect'
import type { KubeClient, KubeError, KubeObject } from '#kube'
import type { ResourceDescriptor } from '#metricsource'
import type { UsageDefaults } from './settings.ts'

/** What one kind of row reads, before a member said what it calls it. */
export interface SourceReads {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** as declared, else guessed */
  readonly plural: string
  readonly isPluralDeclared: boolean
  readonly watch: boolean
}

/** What an agent may read of one resource. */
export interface RoleRead {
  readonly group: string
  readonly kind: string
  readonly plural: string
  readonly watch: boolean
}

/** A kind that MetricSources ask for and the agent's role does not allow. */
export interface RoleGap {
  readonly group: string
  readonly kind: string
  /** why, and what to do; for people */
  readonly message: string
}

/** What sources read, each once, in an order of its own: equal sets of sources give equal reads. */
export function readsOf(sources: readonly ResourceDescriptor[]): readonly SourceReads[] {
  const reads = new Map<string, SourceReads>()
  for (const { group, version, kind, plural, isPluralDeclared, collection } of sources.flatMap(
    ({ targets, collection }) => targets.map((target) => ({ ...target, collection })),
  )) {
    const key = JSON.stringify([group, version, kind, plural, isPluralDeclared])
    const watch = collection.watch || reads.get(key)?.watch === true
    reads.set(key, { group, version, kind, plural, isPluralDeclared, watch })
  }
  return [...reads].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, read]) => read)
}

/** What reading of usage needs, where it is read. A member that does not grant it is read without. */
export const usageReads = (usage: Pick<UsageDefaults, 'kubelets'> | undefined): readonly SourceReads[] =>
  usage
    ? usageRights(usage.kubelets).map(({ group, version, kind, plural }) => ({
        ...{ group, version, kind, plural, isPluralDeclared: true, watch: false },
      }))
    : []

/** As the member calls it; as declared or guessed where it does not say. Never throws but for an abort. */
export async function resolvedReads(
  kube: Pick<KubeClient, 'find'>,
  reads: readonly SourceReads[],
  signal: AbortSignal,
): Promise<readonly RoleRead[]> {
  const resolved: RoleRead[] = []
  for (const { group, version, kind, plural, isPluralDeclared, watch } of reads) {
    let found: string | undefined
    try {
      found = isPluralDeclared ? undefined : (await kube.find(group, version, kind, signal))?.plural
    } catch {
      signal.throwIfAborted() // else the guess must do: what follows tells whether the member answers
    }
    resolved.push({ group, kind, plural: found ?? plural, watch })
  }
  return resolved
}

/**
 * The least an agent must be allowed: what its collectors read, and what MetricSources read. Never Secrets, whatever a source
 * says: nobody shall give away more by a MetricSource than by a policy.
 */
export function agentRole(collectors: readonly Collector[], reads: readonly RoleRead[]): readonly RoleRule[] {
  const wanted = reads.filter(({ group, plural }) => !(group === '' && plural === 'secrets'))
  return clusterRoleFor([
    ...collectors,
    { reads: wanted.map(({ watch, ...resource }) => ({ resource, verbs: verbsFor({ watch }) })) },
  ])
}

/** Whether all that is refused is to watch: an account of a former role holds the rest. */
export function lacksOnlyWatch({ apiMessage = '' }: KubeError): boolean {
  const missing = missingRules(apiMessage).flatMap(({ verbs }) => verbs)
  return missing.length > 0 && missing.every((verb) => verb === 'watch')
}

/** The same collectors, which poll. */
export const polling = (collectors: readonly Collector[]): readonly Collector[] =>
  collectors.map((one) => ({
    ...one,
    reads: one.reads.map((read) => ({ ...read, verbs: read.verbs.filter((verb) => verb !== 'watch') })),
  }))

/** What of these a role does not allow. */
export function notAllowed(reads: readonly RoleRead[], role: KubeObject | undefined): readonly RoleRead[] {
  const rules = (role?.rules ?? []) as readonly RoleRule[] // as the API serves a ClusterRole
  return reads.filter((read) => !rules.some((one) => allows(one, read)))
}

/**
 * What of these the API refuses to have granted, as nobody can grant what they do not hold. Where it says its refusal another
 * way than RBAC does, all of them.
 */
export function notGrantable(reads: readonly RoleRead[], { apiMessage = '' }: KubeError): readonly RoleRead[] {
  const rules = missingRules(apiMessage)
  return rules.length === 0 ? reads : reads.filter((read) => rules.some((one) => touches(one, read)))
}

/** @param refusal what the API said when the role was to be given */
export function roleGap(read: RoleRead, refusal: KubeError): RoleGap {
  const { group, kind, plural } = read
  const right = `${verbsFor(read).join(', ')} ${plural}${group && `.${group}`}`
  const [, account = 'its account'] = /user "([^"]+)"/i.exec(refusal.apiMessage ?? '') ?? []
  const isHeldByNone = missingRules(refusal.apiMessage ?? '').some((one) => touches(one, read))
  const why = isHeldByNone
    ? `${account} does not hold that right there itself; grant "${right}" to it on the member`
    : `${refusal.apiMessage ?? refusal.message}; let ${account} change the agent's ClusterRole (deploy/member/agent-installer.yaml)`
  const message = `the agent may not read this, and the hub may not give it "${right}": ${why}; the hub tries again within a minute`
  return { group, kind, message }
}

/** `{APIGroups:["g.io"], Resources:["widgets"], Verbs:["get" "list"]}`, as RBAC says what is not held. */
function missingRules(apiMessage: string): readonly RoleRule[] {
  const words = (list = '') => [...list.matchAll(/"([^"]*)"/g)].map(([, word = '']) => word)
  return [...apiMessage.matchAll(/\{APIGroups:\[(.*?)\], Resources:\[(.*?)\],.*?Verbs:\[(.*?)\]\}/g)].map(
    ([, groups, resources, verbs]) => ({ apiGroups: words(groups), resources: words(resources), verbs: words(verbs) }),
  )
}

const verbsFor = ({ watch }: Pick<RoleRead, 'watch'>): readonly string[] =>
  watch ? ['get', 'list', 'watch'] : ['get', 'list']

const touches = ({ apiGroups, resources }: RoleRule, { group, plural }: RoleRead): boolean =>
  apiGroups.includes(group) && resources.includes(plural)

const allows = (one: RoleRule, read: RoleRead): boolean =>
  touches(one, read) && verbsFor(read).every((verb) => one.verbs.includes(verb))
