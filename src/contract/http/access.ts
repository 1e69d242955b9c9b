import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Filter } from './parameters.ts'

/** Who may see what, as the API shows it: the caller's own picture, and administrators' pages. */
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Texts = Type.Array(Type.String())
const Lists = Type.Object({ allowed: Texts, denied: Texts })

export const FilterSummarySchema = Type.Object({
  visibility: Type.Union([Type.Literal('all'), Type.Literal('none'), Type.Literal('filtered')]),
  names: Type.Optional(Lists),
  namespaces: Type.Optional(Lists),
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  fields: Type.Optional(Type.Record(Type.String(), Lists)),
  aggregations: Type.Optional(Type.Object({ include: Texts, exclude: Texts })),
})

const DeciderSchema = Type.Object({
  policy: Type.String({ description: 'namespace/name' }),
  hash: Type.String(),
  effect: Type.String(),
  priority: Type.Integer(),
  rule: nullable(Type.Integer({ description: 'from 0; null: default allow' })),
  selectedBy: Type.String({ description: 'name, pattern, labels, default or fault' }),
})

export const ExplanationViewSchema = Type.Object({
  principal: Type.Object({
    username: Type.String(),
    email: Type.String(),
    groups: Texts,
    administrator: Type.Boolean(),
  }),
  question: Type.Object({
    action: Type.String(),
    cluster: Type.String(),
    type: nullable(Type.String()),
    name: nullable(Type.String()),
  }),
  semantics: Type.String(),
  generation: Type.String(),
  result: Type.Union([Type.Literal('allow'), Type.Literal('partial'), Type.Literal('deny')]),
  reason: Type.String(),
  permissions: Texts,
  decidedBy: nullable(DeciderSchema),
  skipped: Type.Array(
    Type.Object({
      policy: Type.String(),
      effect: Type.String(),
      priority: Type.Integer(),
      why: Type.String({ description: 'stable code' }),
      detail: Type.String(),
    }),
  ),
  filters: Type.Record(Type.String(), FilterSummarySchema),
  item: nullable(Type.Object({ shown: Type.Boolean(), why: Type.String() })),
})
/** Why something is shown or hidden: the decision and the policies in the order they are looked at. */
export type ExplanationView = Static<typeof ExplanationViewSchema>

const ExplainQuery = {
  cluster: Type.String({ minLength: 1, maxLength: 253 }),
  action: Type.Optional(Type.Union([Type.Literal('view'), Type.Literal('view_metrics')])),
  type: Filter(
    'nodes, operators, namespaces, pods, alerts, events, a kind of rows such as workloads, or a custom type',
  ),
  name: Filter('one item of that type'),
  namespace: Filter('of the item'),
}

/** For a caller who may not see the cluster the answer is the same as for a cluster that does not exist. */
export const authExplain = {
  method: 'GET',
  url: '/api/v1/auth/explain',
  access: 'filtered',
  schema: {
    operationId: 'authExplain',
    summary:
      'Why the caller sees, or does not see, something; administrators may ask for anybody with `as` and `groups`. Policies that are not about the caller are never named',
    querystring: Type.Object({
      ...ExplainQuery,
      as: Filter('user name; administrators only'),
      groups: Filter('comma list; administrators only'),
    }),
    response: ExplanationViewSchema,
  },
} as const satisfies RouteContract

const OwnPolicySchema = Type.Object({
  source: Type.String({ description: 'user, group:<name> or serviceaccount' }),
  /** the compiled document; of its subjects only those that are the caller */
  policy: Type.Object({}, { additionalProperties: true }),
  priority: Type.Integer(),
  state: Type.String({ description: 'Active, Inactive, Expired or Error' }),
  message: Type.String(),
})

export const authPolicies = {
  method: 'GET',
  url: '/api/v1/auth/policies',
  access: 'authenticated',
  schema: {
    operationId: 'authPolicies',
    summary: 'The policies about the caller, in the order in which they are looked at; other subjects are left out',
    response: Type.Object({
      user: Type.Object({ username: Type.String(), groups: Texts }),
      total_policies: Type.Integer(),
      policies: Type.Array(OwnPolicySchema),
      evaluation_order: Texts,
      retrieved_at: Type.String(),
    }),
  },
} as const satisfies RouteContract

export const authCacheClear = {
  method: 'POST',
  url: '/api/v1/auth/cache/clear',
  access: 'authenticated',
  schema: {
    operationId: 'authCacheClear',
    summary: 'Forgets what is cached of the caller: groups and verified tokens. Decisions are never cached',
    response: Type.Object({ message: Type.String(), rbac_entries_cleared: Type.Integer(), user: Type.String() }),
  },
} as const satisfies RouteContract

export const authLogin = {
  method: 'GET',
  url: '/api/v1/auth/login',
  access: 'public',
  schema: {
    operationId: 'authLogin',
    summary: 'Sends a browser to the identity provider (302)',
    querystring: Type.Object({ returnTo: Filter('path of the page to come back to') }),
    response: Type.Object({}),
  },
} as const satisfies RouteContract

export const authCallback = {
  method: 'GET',
  url: '/api/v1/auth/callback',
  access: 'public',
  schema: {
    operationId: 'authCallback',
    summary: 'Where the identity provider sends the browser back to',
    response: Type.Object({}),
  },
} as const satisfies RouteContract

export const authPassword = {
  method: 'POST',
  url: '/api/v1/auth/password',
  access: 'public',
  schema: {
    operationId: 'authPassword',
    summary: 'Signs the local administrator in; throttled',
    body: Type.Object({
      username: Type.String({ minLength: 1, maxLength: 256 }),
      password: Type.String({ minLength: 1, maxLength: 1024 }),
    }),
    response: Type.Object({ message: Type.String() }),
  },
} as const satisfies RouteContract

// ── administrators ───────────────────────────────────────────────────────────────────────────────────────────────────

const FindingSchema = Type.Object({
  severity: Type.Union([Type.Literal('error'), Type.Literal('warning')]),
  code: Type.String(),
  path: Type.String(),
  message: Type.String(),
})
/** One thing that is wrong or odd in a policy, with its place. */
export type FindingView = Static<typeof FindingSchema>

export const PolicyViewSchema = Type.Object({
  key: Type.String({ description: 'namespace/name' }),
  state: Type.String({ description: 'Active, Inactive, Expired or Error' }),
  message: Type.String(),
  effect: Type.String(),
  priority: Type.Integer(),
  enabled: Type.Boolean(),
  users: Texts,
  groups: Texts,
  serviceAccounts: Texts,
  notBefore: nullable(Type.String()),
  notAfter: nullable(Type.String()),
  hash: Type.String(),
  compiledAt: Type.String(),
  customTypes: Texts,
  /** clusters of the fleet that a rule of it selects now */
  clusters: Texts,
  findings: Type.Array(FindingSchema),
  rules: Type.Array(
    Type.Object({
      selector: Type.Object({
        names: Texts,
        pattern: Type.String(),
        labels: Type.Record(Type.String(), Type.String()),
      }),
      permissions: Texts,
      filters: Type.Record(Type.String(), FilterSummarySchema),
    }),
  ),
  defaultAccess: Type.String(),
})
/** One stored policy with its state and findings. */
export type PolicyView = Static<typeof PolicyViewSchema>

export const listPolicies = {
  method: 'GET',
  url: '/api/v2/access/policies',
  access: 'administrator',
  schema: {
    operationId: 'listPolicies',
    summary:
      'All policies in the order in which they are looked at, with their state, faults and the clusters they select',
    response: Type.Object({ items: Type.Array(PolicyViewSchema), generation: Type.String(), semantics: Type.String() }),
  },
} as const satisfies RouteContract
/** All stored policies, for administrators. */
export type PoliciesView = Static<(typeof listPolicies)['schema']['response']>

const SubjectSchema = Type.Object({
  username: Type.String({ maxLength: 1024 }),
  email: Type.Optional(Type.String({ maxLength: 1024 })),
  groups: Type.Optional(Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 1000 })),
})
/** A person to look at access for: a user with groups. */
export type SubjectView = Static<typeof SubjectSchema>

/** What one person sees of one cluster: counts after filtering, beside what there is. */
const SeenSchema = Type.Object({
  cluster: Type.String(),
  level: Type.String({ description: 'none, limited or full' }),
  permissions: Texts,
  decidedBy: nullable(DeciderSchema),
  filters: Type.Record(Type.String(), FilterSummarySchema),
  counts: Type.Record(Type.String(), Type.Object({ shown: Type.Integer(), of: Type.Integer() })),
})
/** What somebody sees of one cluster: permissions, filters, counts. */
export type SeenView = Static<typeof SeenSchema>

export const accessOf = {
  method: 'POST',
  url: '/api/v2/access/seen',
  access: 'administrator',
  schema: {
    operationId: 'accessOf',
    summary: 'What a chosen person sees, cluster by cluster; audited',
    body: SubjectSchema,
    response: Type.Object({ subject: SubjectSchema, items: Type.Array(SeenSchema), generation: Type.String() }),
  },
} as const satisfies RouteContract
/** What a chosen person sees, cluster by cluster. */
export type AccessOfView = Static<(typeof accessOf)['schema']['response']>

export const viewAs = {
  method: 'POST',
  url: '/api/v2/access/view-as',
  access: 'administrator',
  schema: {
    operationId: 'viewAs',
    summary: 'This browser shows what the chosen person sees, for 15 minutes, reading only; audited',
    body: SubjectSchema,
    response: Type.Object({ message: Type.String() }),
  },
} as const satisfies RouteContract

export const endViewAs = {
  method: 'POST',
  url: '/api/v2/access/view-as/end',
  access: 'authenticated',
  schema: {
    operationId: 'endViewAs',
    summary: 'Back to the own eyes',
    response: Type.Object({ message: Type.String() }),
  },
} as const satisfies RouteContract

const ChangeSchema = Type.Object({
  subject: SubjectSchema,
  cluster: Type.String(),
  before: Type.String({ description: 'none, limited or full' }),
  after: Type.String(),
  /** by type: how many rows were and would be shown */
  counts: Type.Record(Type.String(), Type.Object({ before: Type.Integer(), after: Type.Integer() })),
  decidedBy: nullable(DeciderSchema),
})
/** What a preview of policies changes for one subject on one cluster. */
export type AccessChangeView = Static<typeof ChangeSchema>

export const previewPolicies = {
  method: 'POST',
  url: '/api/v2/access/preview',
  access: 'administrator',
  schema: {
    operationId: 'previewPolicies',
    summary:
      'What would change if these policies were applied: for every subject that any policy names, and for those given, over the present fleet. Nothing is stored',
    body: Type.Object({
      /** YAML or JSON, one or many documents */
      manifest: Type.String({ maxLength: 1_000_000 }),
      /** keys (namespace/name) taken away in the same step */
      remove: Type.Optional(Type.Array(Type.String(), { maxItems: 1000 })),
      subjects: Type.Optional(Type.Array(SubjectSchema, { maxItems: 100 })),
    }),
    response: Type.Object({
      findings: Type.Array(Type.Object({ policy: Type.String(), ...FindingSchema.properties })),
      changes: Type.Array(ChangeSchema),
      subjects: Type.Integer({ description: 'how many were compared' }),
      unchanged: Type.Integer({ description: 'pairs of subject and cluster that stay as they are' }),
      /** more subjects than are compared in one answer (500) */
      truncated: Type.Boolean(),
    }),
  },
} as const satisfies RouteContract
/** What would change if the given policies were in force. */
export type PreviewView = Static<(typeof previewPolicies)['schema']['response']>

export const routesAccess: readonly RouteContract[] = [
  authExplain,
  authPolicies,
  authCacheClear,
  authLogin,
  authCallback,
  authPassword,
  listPolicies,
  accessOf,
  viewAs,
  endViewAs,
  previewPolicies,
]
