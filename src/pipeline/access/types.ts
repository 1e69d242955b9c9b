import type { MonitorAccessPolicy } from '#kinds'
import type { ClusterState, FleetEvent, JsonValue, SeenOf, SnapshotType, SourceId, Telling } from '#model'

/** How we know who asks: for the log and for "who am I". */
export type SignInMethod =
  | 'local-administrator'
  | 'password'
  | 'trusted-proxy'
  | 'oidc'
  | 'bearer-jwt'
  | 'token-review'
  | 'development'

/** Who asks. */
export interface Principal {
  readonly username: string
  readonly email: string
  /** the provider vouches for the address; only then do policies that name it count. Absent: no */
  readonly emailVerified?: boolean
  readonly groups: readonly string[]
  readonly isServiceAccount: boolean
  readonly method: SignInMethod
  /** what the hub's API said of its token besides, such as scopes; policies do not look at it */
  readonly extra?: Readonly<Record<string, readonly string[]>>
  /** the administrator who looks through these eyes ("view as"); absent: the principal itself asks */
  readonly actor?: string
}

/** `strict` is ours (section 16 of the specification), `original` answers as the original did, for migration. */
export type Semantics = 'strict' | 'original'

/** `view`: that it exists and how it is; `view_metrics`: its amounts as well. */
export type Action = 'view' | 'view_metrics'

/** Types every cluster has; all others are collected by MetricSources ("custom"). `registries` are no part of a cluster. */
export const standardTypes = ['nodes', 'operators', 'namespaces', 'pods', 'alerts', 'events'] as const
/** One of the types every cluster has. */
export type StandardType = (typeof standardTypes)[number]

// ── compiled policies ────────────────────────────────────────────────────────────────────────────────────────────────

/** A pair as documented in Redis: the wildcard as written, and the regular expression of the original. */
export type DocumentPattern = readonly [original: string, regex: string]

/** One type under a rule, as stored. Writers leave out what is empty; readers take null, absent and empty alike. */
export interface ResourceDocument {
  readonly type: string
  readonly visibility: string
  readonly allowed_names?: readonly string[]
  readonly denied_names?: readonly string[]
  readonly name_patterns?: readonly DocumentPattern[]
  readonly deny_name_patterns?: readonly DocumentPattern[]
  readonly allowed_ns?: readonly string[]
  readonly denied_ns?: readonly string[]
  readonly ns_patterns?: readonly DocumentPattern[]
  readonly deny_ns_patterns?: readonly DocumentPattern[]
  readonly labels?: Readonly<Record<string, string>>
  readonly field_filters?: Readonly<
    Record<
      string,
      {
        readonly allowed_literals?: readonly string[]
        readonly denied_literals?: readonly string[]
        readonly allowed_patterns?: readonly DocumentPattern[]
        readonly denied_patterns?: readonly DocumentPattern[]
      }
    >
  >
  readonly aggregation_rules?: { readonly include: readonly string[]; readonly exclude: readonly string[] }
}

export interface RuleDocument {
  readonly cluster_selector: {
    readonly matchNames?: readonly string[]
    readonly matchPattern?: string
    readonly matchLabels?: Readonly<Record<string, string>>
  }
  readonly permissions: { readonly view?: boolean; readonly viewMetrics?: boolean }
  readonly resources: readonly ResourceDocument[] | null
}

/** The compiled policy as `data` of `policy:<namespace>:<name>` in Redis (specification, section 4). Plain JSON. */
export interface PolicyDocument {
  readonly policy_name: string
  readonly namespace: string
  readonly priority: number
  readonly effect: string
  readonly enabled: boolean
  readonly users: readonly string[]
  readonly groups: readonly string[]
  readonly service_accounts: readonly string[]
  readonly default_cluster_access: string
  readonly cluster_rules: readonly RuleDocument[] | null
  readonly not_before: string | null
  readonly not_after: string | null
  /** RFC 3339, whole seconds */
  readonly compiled_at: string
  /** 16 hex digits */
  readonly hash: string
  readonly custom_resource_types: readonly string[] | null
}

/** Something about a policy that its author should know. An `error` keeps it from coming into force. */
export interface Finding {
  readonly severity: 'error' | 'warning'
  /** stable, snake case, such as `pattern_invalid`, `filter_empty`, `duplicate_type` */
  readonly code: string
  /** as people write it: `spec.scope.clusters.rules[0].selector.matchPattern` */
  readonly path: string
  /** a sentence with the cause and what to do */
  readonly message: string
}

/** A policy as it is decided by, or why it cannot be. */
export interface Compilation {
  /** undefined where a finding is an error */
  readonly document: PolicyDocument | undefined
  readonly findings: readonly Finding[]
}

/** What a store holds of one policy. `faults`: elements that cannot be read; they count against the reader of the fleet. */
export interface StoredPolicy {
  /** `<namespace>/<name>` */
  readonly key: string
  readonly document: PolicyDocument
  readonly faults: readonly Finding[]
}

// ── stores ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** All policies at one moment. Immutable; a new value per generation. */
export interface PolicyGeneration {
  /** differs whenever the policies differ; nothing else is promised of its text */
  readonly generation: string
  /** sorted by key */
  readonly policies: readonly StoredPolicy[]
}

/** Reads policies, always whole generations. */
export interface PolicySource {
  /**
   * The newest generation, verified to be so after the call began (calls at the same time share one question).
   * @throws PoliciesUnavailableError where it cannot be read or verified: never an older one, never an empty one instead
   */
  current(signal?: AbortSignal): Promise<PolicyGeneration>
  /** the last generation verified, if that is not longer ago than `maxAgeMs`; else throws PoliciesUnavailableError */
  latest(maxAgeMs: number): PolicyGeneration
  /** called after the generation changed, and after the source was lost or came back */
  onChange(listener: () => void): () => void
}

/** Writes policies: one transaction per call, with indexes and the generation counter. */
export interface PolicyWriter {
  put(document: PolicyDocument, status: Readonly<Record<string, unknown>>): Promise<void>
  /** @param key `<namespace>/<name>`; unknown: nothing happens */
  remove(key: string): Promise<void>
  /** the small status document beside the policy; changes no decision and no generation */
  putStatus(key: string, status: Readonly<Record<string, unknown>>): Promise<void>
  /** Makes the store hold exactly these (after a start, a flush, an edit by hand). @returns keys that had to be mended */
  resync(
    policies: readonly { readonly document: PolicyDocument; readonly status: Readonly<Record<string, unknown>> }[],
  ): Promise<readonly string[]>
  /** what the store holds under this key, if it can be read without a fault */
  stored?(key: string): Promise<PolicyDocument | undefined>
  /** called where what the store holds is not what was written: it came back empty, or was edited; only a resync helps */
  onLost?(listener: () => void): () => void
}

// ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a rule's selector is compared with. */
export interface SelectedCluster {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/** Why a policy of a principal did not count. */
export type SkipReason =
  | 'disabled'
  | 'not_yet_valid'
  | 'expired'
  | 'bounds_unreadable'
  | 'faulty'
  | 'no_rule_selects_the_cluster'
  | 'action_not_permitted'
  | 'type_not_named'
  | 'lower_than_the_deciding'
  | 'default_not_reached'

/** A policy that names the principal and did not count, with the reason. */
export interface SkippedPolicy {
  readonly policy: string
  readonly effect: string
  readonly priority: number
  readonly why: SkipReason
  /** for people, such as `valid from 2026-12-01T00:00:00Z` */
  readonly detail: string
}

/** The policy and the rule that decided; `rule` is null for `default: allow`. */
export interface Decider {
  readonly policy: string
  readonly hash: string
  readonly effect: string
  readonly priority: number
  readonly rule: number | null
  readonly selectedBy: 'name' | 'pattern' | 'labels' | 'default' | 'fault'
}

/** What the lists of a filter allow and deny, as patterns were written. */
export interface ListSummary {
  readonly allowed: readonly string[]
  readonly denied: readonly string[]
}

/** The effective filter of one type, as people read it. */
export interface FilterSummary {
  readonly visibility: 'all' | 'none' | 'filtered'
  readonly names?: ListSummary
  readonly namespaces?: ListSummary
  readonly labels?: Readonly<Record<string, string>>
  readonly fields?: Readonly<Record<string, ListSummary>>
  readonly aggregations?: { readonly include: readonly string[]; readonly exclude: readonly string[] }
}

/** What a principal may do with one thing, and which policy says so. */
export interface Decision {
  readonly result: 'allow' | 'partial' | 'deny'
  /** in the words of the specification, such as `Denied by policy <name>` */
  readonly reason: string
  readonly permissions: readonly Action[]
  readonly decidedBy: Decider | null
  /** every policy of the principal that did not decide, in the order in which they were looked at */
  readonly skipped: readonly SkippedPolicy[]
  /** by type; a standard type that is not named is shown whole */
  readonly filters: Readonly<Record<string, FilterSummary>>
}

/** One question of `explain`. Without `type` it is about the cluster; with `name` about one item of that type. */
export interface Question {
  readonly action: Action
  readonly cluster: SelectedCluster
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly fields?: Readonly<Record<string, unknown>>
  /** the type is a kind of rows that is compiled in; pods always are */
  readonly resource?: StandardResource
  /** of the item's namespace, where they are known */
  readonly namespaceLabels?: Readonly<Record<string, string>>
  /** of an event: what is known of the object it is about */
  readonly object?: Pick<RowItem, 'labels' | 'values'>
}

/** A decision with everything it was made from, for people who ask why. */
export interface Explanation extends Decision {
  readonly question: Question
  readonly principal: Principal
  readonly semantics: Semantics
  readonly generation: string
  /** why this one item is shown or hidden; only where the question names one */
  readonly item?: { readonly shown: boolean; readonly why: string }
}

/** What may be seen of one cluster, for the permissions page. */
export interface ClusterPermissions {
  readonly permissions: readonly Action[]
  /** `full`: every action and nothing filtered */
  readonly level: 'none' | 'limited' | 'full'
  readonly decidedBy: Decider | null
  readonly filters: Readonly<Record<string, FilterSummary>>
}

/** An item of a custom type, as MetricSources keep it. */
export interface RowItem {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, unknown>>
}

/** A row, as what it tells hangs on it. */
export interface ToldRow {
  readonly namespace: string
  value(column: string): JsonValue | undefined
}

/** A kind of rows that is compiled in, as access looks at it. */
export interface StandardResource {
  /** plural, as policies name it: `services`, and `core/services` wherever that is said */
  readonly name: string
  /**
   * `pods`: the filters policies have for pods; `namespaced`: what stands in visible namespaces; `events`: the same, and only with the
   * object it is about; `named`: objects of any kind, shown where a policy names it or filters nothing
   */
  readonly rule: 'pods' | 'namespaced' | 'events' | 'named'
  /** a MetricSource has this type name: only as `core/<name>` does a policy speak for this kind; it still narrows it as `<name>` */
  readonly isTaken: boolean
  /** other tables of the cluster that say what its columns are about */
  readonly toldBy?: readonly SourceId[]
  /** of events: the kinds of rows whose objects they may be about */
  readonly about?: readonly ObjectsOfEvents[]
}

/** A kind of rows that is compiled in, whose objects events are about. */
export interface ObjectsOfEvents extends StandardResource {
  /** names its rows in a cluster's state; of several kinds of objects, keys of rows tell them apart: `name:Kind` */
  readonly rows: SourceId
  readonly kinds: readonly string[]
}

/** What may be seen of one custom type on one cluster. */
export interface RowsAccessView {
  readonly result: 'allow' | 'partial' | 'deny'
  readonly reason: string
  /** no filter can hide a row of it, now or later: sums over all rows may be shown. Aggregations may be kept back all the same */
  readonly whole: boolean
  /** values of metric kind may be shown */
  readonly metrics: boolean
  shows(item: RowItem): boolean
  /** what `shows` looks at besides the namespace; absent: at anything. Rows that are equal in these are shown or hidden together */
  readonly looksAt?: { readonly names: boolean; readonly labels: boolean; readonly fields: boolean }
  /** whether a row may say the name of this node; absent: of any */
  showsNode?(name: string): boolean
  /** what a row tells of a value that says something of namespaces; absent: all of it */
  tells?(tells: Telling, value: JsonValue, row: ToldRow): JsonValue
  /** columns of a row that are not shown with it; absent: all are */
  withholds?(item: RowItem): readonly string[]
  /** what else the answers hang on: another identity of one of these may mean other answers */
  readonly basis: readonly unknown[]
  /** aggregations of metric kind need view_metrics besides */
  aggregation(name: string): boolean
}

/**
 * What one sort of principal sees: pure, without waiting, for as long as its generation and `validUntil` hold. Stands between
 * the store and everything else: before counts, cursors, aggregates, searches, streams. Equal fingerprints see exactly the
 * same of the same state, so that one encoded body serves both.
 */
export interface AccessView {
  readonly fingerprint: string
  readonly generation: string
  /** ms since the Unix epoch: from then on a policy begins or ends; Infinity where none does */
  readonly validUntil: number
  /** sees and may do everything: administrators */
  readonly administrator: boolean
  canSee(cluster: ClusterState): boolean
  /** usage measured in rows (`used`) */
  usage(cluster: ClusterState): boolean
  /** values over time */
  history(cluster: ClusterState): boolean
  /**
   * Rows the policies leave, and in them what they leave: `used` is null without view_metrics; `pods` and `requested` of a
   * node are null unless all pods are to be seen; the pod summary sums visible namespaces; an operator names visible
   * namespaces only; deployments are shown with their namespace.
   */
  visible<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SeenOf<T>[]
  /** No policy can hide anything of this cluster, now or later: sums over all of it may be shown. */
  whole(cluster: ClusterState): boolean
  /** Also reduced by what the event tells of: the node, operator or namespace it names must be visible. */
  showsEvent(cluster: ClusterState, event: FleetEvent): boolean
  showsAlert(cluster: ClusterState, alert: Readonly<Record<string, string>>): boolean
  showsRegistry(registry: SelectedCluster): boolean
  custom(cluster: ClusterState, type: string): RowsAccessView
  /** rows of a kind that is compiled in: decided with the cluster, as the six types of every cluster are */
  resource(cluster: ClusterState, resource: StandardResource): RowsAccessView
  /** what the original told of a type where no cluster is named; null: it is told by the clusters, as everywhere else */
  discovers(type: string): { readonly listed: boolean; readonly granted: boolean } | null
  /** types that the policies in force for the principal name, of whatever cluster */
  readonly namedTypes: ReadonlySet<string>
  permissions(cluster: ClusterState): ClusterPermissions
}

/** The access decision for everybody: the only way from a principal to data. */
export interface Access {
  /** @throws PoliciesUnavailableError: the request fails with 503 */
  viewOf(principal: Principal, signal?: AbortSignal): Promise<AccessView>
  /** the same without waiting, for open streams: from what was verified within the last seconds, or throws */
  viewNow(principal: Principal): AccessView
  explain(principal: Principal, question: Question): Promise<Explanation>
  /** the policies that touch the principal, in the order in which they are looked at */
  policiesOf(principal: Principal): Promise<readonly OwnPolicy[]>
  /** for administrators' pages: all of them */
  policies(): Promise<PolicyGeneration>
  isAdministrator(principal: Principal): boolean
  /** as if these policies were in force: for a dry run; nothing is stored */
  withPolicies(policies: readonly StoredPolicy[]): Access
  onChange(listener: () => void): () => void
}

/** A policy that applies to the one who asks, with the subject it was found by. */
export interface OwnPolicy {
  /** `user`, `group:<name>` or `serviceaccount` */
  readonly source: string
  readonly policy: StoredPolicy
  readonly state: 'Active' | 'Inactive' | 'Expired' | 'Error'
  readonly message: string
}

/** An object of the kind, or what somebody wrote into a file. */
export type PolicyObject = Pick<MonitorAccessPolicy, 'metadata' | 'spec'>
