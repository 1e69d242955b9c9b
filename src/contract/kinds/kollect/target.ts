import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, LabelSelector, Moment, Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { Names, namespaceChoice, ProfileRef, ResourceRules } from './parts.ts'

const Count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, description }))
const Generation = Type.Optional(
  Type.Integer({ format: 'int64', description: 'generation of the spec that the status is about' }),
)
const seen = {
  conditions: Conditions,
  observedGeneration: Generation,
  matchedNamespaces: Type.Optional(Names('namespace', 'namespaces that the spec chooses')),
  effectiveNamespaces: Type.Optional(Names('namespace', 'those of them that scopes leave')),
  activeResourceRules: Count('rules in force'),
}

const Spec = Type.Object(
  {
    profileRef: Text(253, 'name of a KollectProfile of the same namespace'),
    namespaceSelector: Type.Optional(LabelSelector('only namespaces with these labels')),
    ...namespaceChoice,
    resourceRules: Type.Optional(ResourceRules),
    labelSelector: Type.Optional(LabelSelector('only objects with these labels; has no effect beside resourceRules')),
    names: Type.Optional(Names('name', 'only objects of these names; has no effect beside resourceRules')),
    suspend: Type.Optional(Type.Boolean({ description: 'collect nothing' })),
    watchMode: Type.Optional(
      OneOf(['All', 'OptIn'], {
        default: 'All',
        description:
          'All: every object that is chosen, but for those labelled `kollect.dev/watch: disabled`; OptIn: only what is labelled `enabled`, itself or by its namespace',
      }),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(
  {
    ...seen,
    extractionFailures: Count('objects whose values could not be taken'),
    lastExtractionError: Type.Optional(Text(32_768, 'why, of the last of them')),
    collectedCount: Count('rows; absent: not known yet'),
    collectedCountUpdatedAt: Type.Optional(Moment('when the number of rows last changed')),
  },
  { description: 'what is seen; written by the agent' },
)

/** Where a profile is applied, seen from a namespace. */
export const kollectTarget = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectTarget',
  plural: 'kollecttargets',
  singular: 'kollecttarget',
  shortNames: ['ktgt'],
  categories: [],
  description:
    'Where a profile is applied: which namespaces, which objects. Without a choice of namespaces it reads its own.',
  columns: [
    { name: 'Profile', type: 'string', jsonPath: '.spec.profileRef', priority: 1 },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Synced', type: 'string', jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
    { name: 'Collected', type: 'integer', jsonPath: '.status.collectedCount' },
    { name: 'Updated', type: 'date', jsonPath: '.status.collectedCountUpdatedAt' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectTarget',
    metadata: { name: 'deployments', namespace: 'team-a' },
    spec: { profileRef: 'deployments', includedNamespaces: ['team-a'] },
  },
})

const ClusterSpec = Type.Object(
  {
    profileRef: ProfileRef('the KollectProfile'),
    namespaceSelector: LabelSelector('only namespaces with these labels; at least one demand'),
    ...namespaceChoice,
    resourceRules: Type.Optional(ResourceRules),
    suspend: Type.Optional(Type.Boolean({ description: 'collect nothing' })),
  },
  { description: 'what is wanted' },
)

const ClusterStatus = Type.Object(seen, { description: 'what is seen; written by the agent' })

/** Where a profile is applied, over namespaces of the cluster. */
export const kollectClusterTarget = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectClusterTarget',
  plural: 'kollectclustertargets',
  singular: 'kollectclustertarget',
  shortNames: ['kctgt'],
  categories: [],
  scope: 'Cluster',
  description: 'One profile over every namespace that is chosen by labels, for those who run the cluster.',
  columns: [
    { name: 'Profile', type: 'string', jsonPath: '.spec.profileRef.name' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: ClusterSpec,
  status: ClusterStatus,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectClusterTarget',
    metadata: { name: 'team-deployments' },
    spec: {
      profileRef: { name: 'deployments', namespace: 'kollect-system' },
      namespaceSelector: { matchLabels: { team: 'true' } },
    },
  },
})

/** Which objects a target of a namespace takes. */
export type KollectTargetSpec = Static<typeof Spec>
/** What the agent says of it; counts of rows and objects, times as RFC 3339. */
export type KollectTargetStatus = Static<typeof Status>
/** The object as the API keeps it. */
export type KollectTarget = KindObject<KollectTargetSpec, KollectTargetStatus>
/** Which objects a target of the cluster takes. */
export type KollectClusterTargetSpec = Static<typeof ClusterSpec>
/** What the agent says of it. */
export type KollectClusterTargetStatus = Static<typeof ClusterStatus>
/** The object as the API keeps it. */
export type KollectClusterTarget = KindObject<KollectClusterTargetSpec, KollectClusterTargetStatus>
