import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, Moment, Text } from '../parts.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'

const sink = (family: string) => Type.Optional(Text(253, `name of a ${family} sink of the same namespace`))

const Spec = Type.Object(
  {
    sinkRef: Type.Object(
      { snapshotSinkRef: sink('snapshot'), databaseSinkRef: sink('database'), eventSinkRef: sink('event') },
      { description: 'the sink: exactly one of these' },
    ),
    profileRef: Type.Optional(Text(253, 'without effect; of older manifests')),
    ownerSink: Type.Optional(Type.Boolean({ default: true, description: 'the test goes when its sink goes' })),
    ttlSecondsAfterFinished: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2147483647,
        format: 'int32',
        default: 300,
        description: 'seconds after its end until it is deleted; 0: at once',
      }),
    ),
  },
  { description: 'what is tested' },
)

const Status = Type.Object(
  {
    conditions: Conditions,
    observedGeneration: Type.Optional(
      Type.Integer({ format: 'int64', description: 'generation of the spec that the status is about' }),
    ),
    latencyMs: Type.Optional(Type.Integer({ format: 'int64', description: 'how long the sink took, in milliseconds' })),
    completed: Type.Optional(Type.Boolean({ description: 'the test has ended, well or not' })),
    completedAt: Type.Optional(Moment('when')),
  },
  { description: 'what came of it; written by the agent' },
)

/** One look at a sink. */
export const kollectConnectionTest = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectConnectionTest',
  plural: 'kollectconnectiontests',
  singular: 'kollectconnectiontest',
  shortNames: ['kconntest'],
  categories: [],
  description: 'One look at a sink: runs once, and is deleted some time after its end.',
  columns: [
    { name: 'Sink', type: 'string', jsonPath: '.spec.sinkRef.*' },
    {
      name: 'Verified',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="ConnectionVerified")].status',
    },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectConnectionTest',
    metadata: { name: 'warehouse', namespace: 'team-a' },
    spec: { sinkRef: { databaseSinkRef: 'warehouse' } },
  },
})

/** Which sink is looked at, and how long the result stays, in seconds. */
export type KollectConnectionTestSpec = Static<typeof Spec>
/** What came of it; latency in milliseconds. */
export type KollectConnectionTestStatus = Static<typeof Status>
/** The object as the API keeps it. */
export type KollectConnectionTest = KindObject<KollectConnectionTestSpec, KollectConnectionTestStatus>
