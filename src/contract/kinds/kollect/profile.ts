import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { ALLOW_FULL_RESOURCE_EXPORT, ALLOW_SECRET_EXTRACTION, KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { GroupVersionKind, Names } from './parts.ts'

const Attribute = Type.Object({
  name: Text(253, 'key in the attributes of a row'),
  path: Text(
    16_384,
    'where the value is: JSONPath such as `{.spec.replicas}`, CEL after `cel:` with the variable `object`, or a field of a Helm release after `helm:release.`',
  ),
  type: Type.Optional(Text(63, 'what the value is, for readers')),
  optional: Type.Optional(
    Type.Boolean({
      description:
        'an absent or failing value leaves the key out; else an absent one is null, and a failing one leaves the object out',
    }),
  ),
})

const Prune = Type.Object(
  {
    defaults: Type.Optional(
      Type.Boolean({ default: true, description: 'leave out what only the API server needs, such as managedFields' }),
    ),
    jsonPointers: Type.Optional(Names('pointer', 'left out besides: RFC 6901 pointers such as /metadata/labels')),
    jsonPaths: Type.Optional(Names('path', 'left out besides: dotted paths such as spec.template.metadata')),
    scrubKeys: Type.Optional(Names('key', 'further keys whose values are replaced, wherever they stand')),
    cel: Type.Optional(Names('expression', 'has no effect and is refused; of older manifests')),
  },
  { description: 'what is left out of an embedded object' },
)

const Export = Type.Object(
  {
    mode: Type.Optional(
      OneOf(['Attributes', 'Resource'], {
        default: 'Attributes',
        description: 'Attributes: what `attributes` say; Resource: the object itself besides, without what is pruned',
      }),
    ),
    as: Type.Optional(
      Type.String({ maxLength: 253, default: 'resource', description: 'attribute that holds an embedded object' }),
    ),
    include: Type.Optional(
      OneOf(['MetadataOnly', 'SpecOnly', 'StatusOnly', 'SpecAndStatus', 'All'], {
        default: 'SpecAndStatus',
        description: 'which parts of an embedded object stay',
      }),
    ),
    dedupeIdentity: Type.Optional(
      Type.Boolean({ default: true, description: 'leave out name, namespace and uid, which the row has' }),
    ),
    prune: Type.Optional(Prune),
  },
  { description: 'what a row holds' },
)

const Metric = Type.Object({
  name: Text(253, 'name of the series'),
  path: Text(253, 'name of the attribute that is added up'),
  labels: Type.Optional(Names('attribute', 'names of attributes that divide the sum; at most 5')),
})

const Spec = Type.Object(
  {
    targetGVK: GroupVersionKind('kind of the objects that are read'),
    attributes: Type.Optional(
      Type.Array(Attribute, { ...keyedBy('name'), maxItems: 256, description: 'values taken from each object' }),
    ),
    export: Type.Optional(Export),
    metrics: Type.Optional(Type.Array(Metric, { maxItems: 100, description: 'series made of attributes' })),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object({ conditions: Conditions }, { description: 'kept for readers of older versions' })

/** Which kind is read, and which values of it. */
export const kollectProfile = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectProfile',
  plural: 'kollectprofiles',
  singular: 'kollectprofile',
  shortNames: ['kprof'],
  categories: [],
  description: `Which kind of object is read, and which values of it become a row. A profile on Secrets that reads their data needs the annotation \`${ALLOW_SECRET_EXTRACTION}: "true"\`; one that embeds them whole needs \`${ALLOW_FULL_RESOURCE_EXPORT}: "true"\`.`,
  columns: [
    { name: 'Kind', type: 'string', jsonPath: '.spec.targetGVK.kind' },
    { name: 'Group', type: 'string', jsonPath: '.spec.targetGVK.group' },
    { name: 'Mode', type: 'string', jsonPath: '.spec.export.mode', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectProfile',
    metadata: { name: 'deployments', namespace: 'team-a' },
    spec: {
      targetGVK: { group: 'apps', version: 'v1', kind: 'Deployment' },
      attributes: [
        { name: 'image', path: '{.spec.template.spec.containers[0].image}' },
        { name: 'replicas', path: 'cel:object.spec.replicas', optional: true },
      ],
    },
  },
})

/** What is read, extracted, embedded and added up. */
export type KollectProfileSpec = Static<typeof Spec>
/** One value of a row: its name, its path, whether it may be absent. */
export type KollectAttribute = Static<typeof Attribute>
/** The object as the API keeps it. */
export type KollectProfile = KindObject<KollectProfileSpec, Static<typeof Status>>
