import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Bytes, Conditions, Text } from '../parts.ts'
import { OPERATOR_GROUP } from './names.ts'
import { NodePlacement } from './parts.ts'

/** Settings of the agents that we show and do not read. */
const Kept = (description: string) =>
  Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object', additionalProperties: true, description }),
  )
const Int64 = (description: string) => Type.Optional(Type.Integer({ format: 'int64', description }))

const Spec = Type.Object(
  {
    namespace: Type.Optional(
      Type.String({
        maxLength: 57,
        pattern: '^open-cluster-management-[-a-z0-9]*[a-z0-9]$',
        description: 'namespace of the agents; begins with open-cluster-management-',
      }),
    ),
    clusterName: Type.Optional(Text(63, 'name of the cluster at the hub')),
    externalServerURLs: Type.Optional(
      Type.Array(
        Type.Object({
          url: Type.Optional(Text(2048, 'https address')),
          caBundle: Type.Optional(Bytes('PEM of the CAs its certificate is verified with')),
        }),
        { description: 'how others may reach the API of the cluster' },
      ),
    ),
    deployOption: Type.Optional(
      Type.Object(
        { mode: Type.Optional(Text(64, 'Default, Hosted, Singleton or SingletonHosted')) },
        { description: 'how the agents are deployed' },
      ),
    ),
    nodePlacement: Type.Optional(NodePlacement),
    registrationImagePullSpec: Type.Optional(Text(1024, 'image of the registration agent')),
    workImagePullSpec: Type.Optional(Text(1024, 'image of the work agent')),
    imagePullSpec: Type.Optional(Text(1024, 'image of both, for the singleton modes')),
    registrationConfiguration: Kept('settings of the registration agent'),
    workConfiguration: Kept('settings of the work agent'),
    hubApiServerHostAlias: Kept('an address of the hub that no name server knows'),
    resourceRequirement: Kept('what the agents may use'),
    priorityClassName: Type.Optional(Text(253, 'priority of the agents')),
  },
  { description: 'how OCM deploys its agents' },
)

const Status = Type.Object(
  {
    observedGeneration: Int64('generation that was acted on last'),
    conditions: Conditions,
    generations: Type.Optional(
      Type.Array(
        Type.Object({
          group: Type.Optional(Text(253, 'group')),
          version: Type.Optional(Text(63, 'version')),
          resource: Type.Optional(Text(253, 'resource')),
          namespace: Type.Optional(Text(253, 'namespace')),
          name: Type.Optional(Text(253, 'name')),
          lastGeneration: Int64('generation that was applied last'),
        }),
        { description: 'what was applied' },
      ),
    ),
    relatedResources: Type.Optional(
      Type.Array(
        Type.Object({
          group: Type.Optional(Text(253, 'group')),
          version: Type.Optional(Text(63, 'version')),
          resource: Type.Optional(Text(253, 'resource')),
          namespace: Type.Optional(Text(253, 'namespace')),
          name: Type.Optional(Text(253, 'name')),
        }),
        { description: 'objects that belong to it' },
      ),
    ),
  },
  { description: 'what is seen; written by the operator of OCM' },
)

/** How OCM deploys its agents on a member. */
export const klusterlet = defineKind({
  group: OPERATOR_GROUP,
  version: 'v1',
  kind: 'Klusterlet',
  plural: 'klusterlets',
  singular: 'klusterlet',
  shortNames: [],
  categories: [],
  scope: 'Cluster',
  description:
    'How OCM deploys its agents on a member. Read only, so that an installation of OCM can be taken over; nothing here deploys by it.',
  columns: [],
  spec: Spec,
  specOptional: true,
  status: Status,
  example: {
    apiVersion: `${OPERATOR_GROUP}/v1`,
    kind: 'Klusterlet',
    metadata: { name: 'klusterlet' },
    spec: { clusterName: 'west', namespace: 'open-cluster-management-agent' },
  },
})

/** How OCM deploys its agents. */
export type KlusterletSpec = Static<typeof Spec>
/** What became of it. */
export type KlusterletStatus = Static<typeof Status>
/** The object as the member's API keeps it. */
export type Klusterlet = KindObject<KlusterletSpec, KlusterletStatus>
