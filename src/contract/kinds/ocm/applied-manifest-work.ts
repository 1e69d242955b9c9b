import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Moment, Text } from '../parts.ts'
import { WORK_GROUP } from './names.ts'

const Spec = Type.Object(
  {
    hubHash: Type.Optional(Text(256, 'hash of the address of the hub')),
    agentID: Type.Optional(Text(256, 'the agent that applied it')),
    manifestWorkName: Type.Optional(Text(253, 'name of the ManifestWork on the hub')),
  },
  { description: 'which work of which hub' },
)

const Status = Type.Object(
  {
    appliedResources: Type.Optional(
      Type.Array(
        Type.Object({
          group: Type.Optional(Text(253, 'group')),
          version: Type.Optional(Text(63, 'version')),
          resource: Type.Optional(Text(253, 'resource')),
          namespace: Type.Optional(Text(253, 'namespace')),
          name: Type.Optional(Text(253, 'name')),
          uid: Type.Optional(Text(256, 'identity of the object')),
        }),
        { description: 'objects that the work made or took over' },
      ),
    ),
    evictionStartTime: Type.Optional(Moment('since when the work is gone from the hub')),
  },
  { description: 'what was applied' },
)

/** What a ManifestWork left on a member, kept on the member. */
export const appliedManifestWork = defineKind({
  group: WORK_GROUP,
  version: 'v1',
  kind: 'AppliedManifestWork',
  plural: 'appliedmanifestworks',
  singular: 'appliedmanifestwork',
  shortNames: [],
  categories: [],
  scope: 'Cluster',
  description: 'What a ManifestWork left on a member, kept on the member; owns the objects it made.',
  columns: [],
  spec: Spec,
  specOptional: true,
  status: Status,
  example: {
    apiVersion: `${WORK_GROUP}/v1`,
    kind: 'AppliedManifestWork',
    metadata: { name: '0a1b2c3d-hello' },
    spec: { hubHash: '0a1b2c3d', agentID: '0a1b2c3d', manifestWorkName: 'hello' },
  },
})

/** Which work of which hub. */
export type AppliedManifestWorkSpec = Static<typeof Spec>
/** What was applied. */
export type AppliedManifestWorkStatus = Static<typeof Status>
/** The object as the member's API keeps it. */
export type AppliedManifestWork = KindObject<AppliedManifestWorkSpec, AppliedManifestWorkStatus>
