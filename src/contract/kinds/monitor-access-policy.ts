import { type Static, Type } from 'typebox'
import { StatusConditions } from './conditions.ts'
import { defineKind, type KindObject } from './kind.ts'

const Texts = (description: string) =>
  Type.Optional(Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 10_000, description }))

const Lists = (what: string) =>
  Type.Optional(
    Type.Object(
      {
        allowed: Texts(`${what} that pass; none: every one does. "*" stands for any text, "?" for one character`),
        denied: Texts(`${what} that never pass, whatever is allowed`),
      },
      { description: `by ${what}` },
    ),
  )

const Labels = (description: string) =>
  Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 1024 }), { description }))

const Resource = Type.Object(
  {
    type: Type.String({
      minLength: 1,
      maxLength: 253,
      description:
        'nodes, operators, namespaces, pods, alerts, events, registries, or the type a MetricSource collects',
    }),
    visibility: Type.Optional(
      Type.Union([Type.Literal('all'), Type.Literal('none'), Type.Literal('filtered')], {
        default: 'all',
        description: 'filtered shows what the filters leave: without filters nothing',
      }),
    ),
    filters: Type.Optional(
      Type.Object(
        {
          names: Lists('names'),
          namespaces: Lists('namespaces'),
          labels: Labels('every pair must be on the item'),
          fields: Type.Optional(
            Type.Record(
              Type.String(),
              Type.Object({ allowed: Texts('values that pass'), denied: Texts('values that never pass') }),
              { description: 'by the declared fields of a MetricSource' },
            ),
          ),
        },
        {
          description: 'what an item must meet to be shown; all of them. Ignored in a Deny, which hides the whole type',
        },
      ),
    ),
    aggregations: Type.Optional(
      Type.Object(
        { include: Texts('names that are shown; none: all'), exclude: Texts('names that are never shown') },
        { description: 'which results of a MetricSource are shown' },
      ),
    ),
  },
  { description: 'one type of resource under this rule' },
)

const Rule = Type.Object(
  {
    selector: Type.Object(
      {
        matchNames: Texts('names of clusters; "*" and "?" as in filters'),
        matchPattern: Type.Optional(
          Type.String({
            maxLength: 256,
            description: 'RE2 expression found anywhere in the name: anchor it with ^ and $ to mean the whole name',
          }),
        ),
        matchLabels: Labels('labels of the ClusterConnection, every pair'),
      },
      { description: 'which clusters; names, pattern and labels are alternatives, an empty selector selects none' },
    ),
    permissions: Type.Optional(
      Type.Object(
        {
          view: Type.Optional(Type.Boolean({ description: 'see that it is there, and its lists' })),
          viewMetrics: Type.Optional(Type.Boolean({ description: 'see usage, history and metric aggregations' })),
        },
        { description: 'what an Allow grants, default: view. A Deny denies everything, whatever stands here' },
      ),
    ),
    resources: Type.Optional(Type.Array(Resource, { maxItems: 1000, description: 'a type not named is shown whole' })),
  },
  { description: 'one rule; the first of a policy that selects the cluster counts' },
)

const Spec = Type.Object(
  {
    identity: Type.Object(
      {
        subjects: Type.Object(
          {
            users: Texts('names of users, or their verified email addresses'),
            groups: Texts('names of groups'),
            serviceAccounts: Type.Optional(
              Type.Array(
                Type.Object({
                  name: Type.String({ minLength: 1, maxLength: 253, description: 'name of the service account' }),
                  namespace: Type.Optional(
                    Type.String({ maxLength: 253, default: 'default', description: 'where the service account is' }),
                  ),
                }),
                { maxItems: 10_000, description: 'service accounts of the hub' },
              ),
            ),
          },
          { description: 'whom the policy is for; nobody where all are empty' },
        ),
        priority: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 10000,
            default: 100,
            description: 'the highest is looked at first; between equals Deny before Allow',
          }),
        ),
      },
      { description: 'who' },
    ),
    access: Type.Object(
      {
        effect: Type.Union([Type.Literal('Allow'), Type.Literal('Deny')], {
          description:
            'Allow shows what the rules select, Deny hides it: its clusters, or where a rule names resources only those types',
        }),
        enabled: Type.Optional(Type.Boolean({ default: true, description: 'false: as if it were not there' })),
      },
      { description: 'what the policy does' },
    ),
    scope: Type.Object(
      {
        clusters: Type.Object(
          {
            default: Type.Optional(
              Type.Union([Type.Literal('allow'), Type.Literal('deny'), Type.Literal('none')], {
                default: 'none',
                description:
                  'allow: view on every cluster that no rule of any policy selects; ignored in a Deny policy. deny and none mean the same',
              }),
            ),
            rules: Type.Optional(Type.Array(Rule, { maxItems: 10_000, description: 'in order' })),
          },
          { description: 'which clusters, and what of them' },
        ),
      },
      { description: 'where' },
    ),
    lifecycle: Type.Optional(
      Type.Object(
        {
          validity: Type.Optional(
            Type.Object(
              {
                notBefore: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339; inclusive' })),
                notAfter: Type.Optional(Type.String({ maxLength: 64, description: 'RFC 3339; inclusive' })),
              },
              { description: 'from when to when' },
            ),
          ),
        },
        { description: 'when' },
      ),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(
  {
    state: Type.Optional(
      Type.Union(
        [
          Type.Literal('Pending'),
          Type.Literal('Active'),
          Type.Literal('Inactive'),
          Type.Literal('Expired'),
          Type.Literal('Error'),
        ],
        { default: 'Pending', description: 'Active when it takes part in decisions' },
      ),
    ),
    message: Type.Optional(Type.String({ maxLength: 32768, description: 'why, for people' })),
    compiledAt: Type.Optional(Type.String({ format: 'date-time', description: 'when it last came into force' })),
    hash: Type.Optional(Type.String({ maxLength: 64, description: 'of the spec in force' })),
    affectedUsers: Type.Optional(Type.Integer({ minimum: 0, description: 'number of users named' })),
    affectedGroups: Type.Optional(Type.Integer({ minimum: 0, description: 'number of groups named' })),
    affectedServiceAccounts: Type.Optional(
      Type.Integer({ minimum: 0, description: 'number of service accounts named' }),
    ),
    customResourceTypes: Type.Optional(
      Type.Integer({ minimum: 0, description: 'number of types of MetricSources named' }),
    ),
    customResourceWarnings: Type.Optional(
      Type.Array(Type.String(), { description: 'what is probably not meant, with its place in the spec' }),
    ),
    evaluationCount: Type.Optional(
      Type.Integer({ minimum: 0, default: 0, description: 'kept for older readers; not written' }),
    ),
    lastEvaluated: Type.Optional(
      Type.String({ format: 'date-time', description: 'kept for older readers; not written' }),
    ),
    observedGeneration: Type.Optional(Type.Integer({ description: 'generation of the spec this status speaks of' })),
    generationInForce: Type.Optional(
      Type.Integer({
        description: 'generation that decisions use; older than observedGeneration after a faulty change',
      }),
    ),
    conditions: Type.Optional(StatusConditions),
  },
  { description: 'what is' },
)

/** Subjects, effect, priority, life and the clusters and filters a policy is about. */
export type MonitorAccessPolicySpec = Static<typeof Spec>
/** Whether the policy is in force, with the findings of its compilation. */
export type MonitorAccessPolicyStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type MonitorAccessPolicy = KindObject<MonitorAccessPolicySpec, MonitorAccessPolicyStatus>

/** Who may see what: subjects, clusters and filters, Allow or Deny. */
export const monitorAccessPolicy = defineKind({
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  kind: 'MonitorAccessPolicy',
  plural: 'monitoraccesspolicies',
  singular: 'monitoraccesspolicy',
  shortNames: ['map', 'policy'],
  description: 'Who may see what of the fleet. Without a policy that allows, nothing is shown.',
  columns: [
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Effect', type: 'string', jsonPath: '.spec.access.effect' },
    { name: 'Priority', type: 'integer', jsonPath: '.spec.identity.priority' },
    { name: 'Users', type: 'integer', jsonPath: '.status.affectedUsers' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Groups', type: 'integer', jsonPath: '.status.affectedGroups', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'MonitorAccessPolicy',
    metadata: { name: 'developers', namespace: 'clusterpulse' },
    spec: {
      identity: { subjects: { groups: ['developers'] }, priority: 100 },
      access: { effect: 'Allow' },
      scope: {
        clusters: {
          rules: [
            {
              selector: { matchNames: ['dev-*'] },
              permissions: { view: true, viewMetrics: true },
              resources: [{ type: 'namespaces', visibility: 'filtered', filters: { names: { denied: ['kube-*'] } } }],
            },
          ],
        },
      },
    },
  },
})
