import { type Static, Type } from 'typebox'
import { defineKind, type Fault, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, ObjectName, Text, Word } from '../parts.ts'
import { OneOf } from '../words.ts'
import { WORK_GROUP } from './names.ts'

const Identifier = (description: string) =>
  Type.Object(
    {
      group: Type.Optional(Text(253, 'group; empty: the core group')),
      resource: Word(253, 'resource, such as deployments'),
      namespace: Type.Optional(Text(253, 'namespace; absent: one of the whole cluster')),
      name: Word(253, 'name'),
    },
    { description },
  )

const Manifest = Type.Unsafe<Readonly<Record<string, unknown>>>({
  type: 'object',
  additionalProperties: true,
  description: 'a whole object',
  'x-kubernetes-embedded-resource': true,
})

const FeedbackRule = Type.Object({
  type: OneOf(['WellKnownStatus', 'JSONPaths'], {
    description: 'WellKnownStatus: what is usually asked of the kind; JSONPaths: what the paths find',
  }),
  jsonPaths: Type.Optional(
    Type.Array(
      Type.Object({
        name: Word(253, 'what the value is called'),
        path: Word(4096, 'where it is, below status'),
        version: Type.Optional(Text(63, 'version of the object; absent: the preferred one')),
      }),
      { ...keyedBy('name'), description: 'for type JSONPaths' },
    ),
  ),
})

const ConditionRule = Type.Object({
  type: OneOf(['WellKnownConditions', 'CEL'], {
    description: 'WellKnownConditions: what the kind says by itself; CEL: what the expressions say',
  }),
  condition: Word(316, 'condition it decides, such as Complete'),
  celExpressions: Type.Optional(Type.Array(Text(4096, 'expression'), { description: 'all must be true; for CEL' })),
  message: Type.Optional(Text(32768, 'for people')),
  messageExpression: Type.Optional(Text(4096, 'expression that makes the message')),
})

const UpdateStrategy = Type.Object(
  {
    type: OneOf(['Update', 'CreateOnly', 'ServerSideApply', 'ReadOnly'], {
      default: 'Update',
      description:
        'Update: replaced where it differs; CreateOnly: made once; ServerSideApply: the fields named are owned; ReadOnly: only looked at',
    }),
    serverSideApply: Type.Optional(
      Type.Object(
        {
          force: Type.Optional(Type.Boolean({ description: 'take fields that others own' })),
          fieldManager: Type.Optional(
            Type.String({
              maxLength: 128,
              default: 'work-agent',
              pattern: '^work-agent',
              faultMessage: 'must begin with work-agent',
              description: 'as whom fields are owned',
            }),
          ),
          ignoreFields: Type.Optional(
            Type.Array(
              Type.Object({
                condition: Type.Optional(
                  OneOf(['OnSpokePresent', 'OnSpokeChange'], {
                    default: 'OnSpokePresent',
                    description: 'OnSpokePresent: sent once; OnSpokeChange: sent when the manifest changes',
                  }),
                ),
                jsonPaths: Type.Optional(Type.Array(Text(4096, 'path'), { description: 'the fields' })),
                jsonPointers: Type.Optional(Type.Array(Text(4096, 'pointer'), { description: 'the fields' })),
                jqPathExpressions: Type.Optional(Type.Array(Text(4096, 'expression'), { description: 'the fields' })),
              }),
              { ...keyedBy('condition'), description: 'fields that members may change' },
            ),
          ),
        },
        { description: 'for type ServerSideApply' },
      ),
    ),
  },
  { description: 'how what is there already is changed' },
)

const Spec = Type.Object(
  {
    workload: Type.Optional(
      Type.Object(
        { manifests: Type.Optional(Type.Array(Manifest, { description: 'objects the member shall have' })) },
        { description: 'what is delivered' },
      ),
    ),
    deleteOption: Type.Optional(
      Type.Object(
        {
          propagationPolicy: Type.Optional(
            OneOf(['Foreground', 'Orphan', 'SelectivelyOrphan'], {
              default: 'Foreground',
              description: 'Foreground: the objects go with the work; Orphan: they stay; SelectivelyOrphan: some stay',
            }),
          ),
          selectivelyOrphans: Type.Optional(
            Type.Object(
              {
                orphaningRules: Type.Optional(
                  Type.Array(Identifier('an object that stays'), { description: 'objects that stay' }),
                ),
              },
              { description: 'for SelectivelyOrphan' },
            ),
          ),
          ttlSecondsAfterFinished: Type.Optional(
            Type.Integer({ minimum: 0, format: 'int64', description: 'seconds after Complete until the work goes' }),
          ),
        },
        { description: 'what becomes of the objects when the work goes' },
      ),
    ),
    manifestConfigs: Type.Optional(
      Type.Array(
        Type.Object({
          resourceIdentifier: Identifier('which objects; * is any name or namespace'),
          feedbackRules: Type.Optional(Type.Array(FeedbackRule, { description: 'what of their status is reported' })),
          feedbackScrapeType: Type.Optional(
            OneOf(['Poll', 'Watch'], { default: 'Poll', description: 'how their status is read' }),
          ),
          updateStrategy: Type.Optional(UpdateStrategy),
          conditionRules: Type.Optional(
            Type.Array(ConditionRule, {
              ...keyedBy('condition'),
              description: 'what conditions of the work follow from their status',
            }),
          ),
        }),
        { description: 'what counts for single objects; the first that matches' },
      ),
    ),
    executor: Type.Optional(
      Type.Object(
        {
          subject: Type.Optional(
            Type.Object(
              {
                type: OneOf(['ServiceAccount'], { description: 'what it is' }),
                serviceAccount: Type.Optional(
                  Type.Object(
                    { namespace: ObjectName('namespace of the account'), name: ObjectName('name of the account') },
                    { description: 'the account on the member' },
                  ),
                ),
              },
              { description: 'whose rights count' },
            ),
          ),
        },
        { description: 'as whom the objects are written on the member' },
      ),
    ),
  },
  { description: 'what is wanted' },
)

const ResourceMeta = Type.Object({
  ordinal: Type.Optional(Type.Integer({ format: 'int32', description: 'place in the list of manifests' })),
  group: Type.Optional(Text(253, 'group')),
  version: Type.Optional(Text(63, 'version')),
  kind: Type.Optional(Text(253, 'kind')),
  resource: Type.Optional(Text(253, 'resource')),
  namespace: Type.Optional(Text(253, 'namespace')),
  name: Type.Optional(Text(253, 'name')),
})

const FeedbackValue = Type.Object({
  name: Word(253, 'what it is called'),
  fieldValue: Type.Object(
    {
      type: OneOf(['Integer', 'String', 'Boolean', 'JsonRaw'], { description: 'which of the others is set' }),
      integer: Type.Optional(Type.Integer({ format: 'int64', description: 'a number' })),
      string: Type.Optional(Text(32768, 'a text')),
      boolean: Type.Optional(Type.Boolean({ description: 'yes or no' })),
      jsonRaw: Type.Optional(Text(1024, 'anything, as JSON')),
    },
    { description: 'its value' },
  ),
})

const Status = Type.Object(
  {
    conditions: Conditions,
    resourceStatus: Type.Optional(
      Type.Object(
        {
          manifests: Type.Optional(
            Type.Array(
              Type.Object({
                resourceMeta: ResourceMeta,
                statusFeedback: Type.Optional(
                  Type.Object(
                    {
                      values: Type.Optional(
                        Type.Array(FeedbackValue, { ...keyedBy('name'), description: 'what was asked for' }),
                      ),
                    },
                    { description: 'what of its status is reported' },
                  ),
                ),
                conditions: Conditions,
              }),
              { description: 'one for each manifest' },
            ),
          ),
        },
        { description: 'what became of the objects' },
      ),
    ),
  },
  { description: 'what is seen; written by the agent' },
)

/** As much as a work may carry, in bytes of JSON. */
export const MAX_WORKLOAD_BYTES = 500 * 1024
const MAX_NAME = 188

type Named = {
  readonly apiVersion?: unknown
  readonly kind?: unknown
  readonly metadata?: { readonly name?: unknown; readonly namespace?: unknown; readonly generateName?: unknown }
}

/** One object has one manifest, whatever version it is written in. */
const identityOf = ({ apiVersion, kind, metadata }: Named): string => {
  const group = String(apiVersion ?? '').includes('/') ? String(apiVersion).split('/')[0] : ''
  return JSON.stringify([group, kind, metadata?.namespace ?? '', metadata?.name])
}

function manifestFaults(manifests: readonly Named[]): Fault[] {
  const at = (index: number, field = '') => `spec.workload.manifests[${index}]${field}`
  const seen = new Map<string, number>()
  return manifests.flatMap((manifest, index) => {
    const { name, generateName } = manifest.metadata ?? {}
    if (generateName) return [{ path: at(index, '.metadata.generateName'), message: 'cannot be used: give a name' }]
    if (!name) return [{ path: at(index, '.metadata.name'), message: 'is missing' }]
    const id = identityOf(manifest)
    const before = seen.get(id)
    seen.set(id, before ?? index)
    return before === undefined ? [] : [{ path: at(index), message: `is the same object as ${at(before)}` }]
  })
}

function rules({ metadata, spec }: Pick<KindObject<Static<typeof Spec>, unknown>, 'metadata' | 'spec'>): Fault[] {
  const manifests = spec.workload?.manifests ?? []
  const path = 'spec.workload.manifests'
  const sizeBytes = new TextEncoder().encode(JSON.stringify(manifests)).byteLength
  return [
    ...((metadata?.name?.length ?? 0) > MAX_NAME
      ? [{ path: 'metadata.name', message: `must have at most ${MAX_NAME} characters` }]
      : []),
    ...(manifests.length === 0 ? [{ path, message: 'is empty: a work delivers at least one object' }] : []),
    ...(sizeBytes > MAX_WORKLOAD_BYTES
      ? [{ path, message: `has ${sizeBytes} bytes; the limit is ${MAX_WORKLOAD_BYTES}: divide the work` }]
      : []),
    ...manifestFaults(manifests),
  ]
}

/** Objects that a member shall have. */
export const manifestWork = defineKind({
  group: WORK_GROUP,
  version: 'v1',
  kind: 'ManifestWork',
  plural: 'manifestworks',
  singular: 'manifestwork',
  shortNames: [],
  categories: [],
  description: 'Objects that a member shall have; lives in the namespace of the member.',
  columns: [],
  spec: Spec,
  specOptional: true,
  rules,
  status: Status,
  example: {
    apiVersion: `${WORK_GROUP}/v1`,
    kind: 'ManifestWork',
    metadata: { name: 'hello', namespace: 'west' },
    spec: {
      workload: {
        manifests: [
          {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: { name: 'hello', namespace: 'default' },
            data: { hello: 'world' },
          },
        ],
      },
    },
  },
})

/** What is delivered, and how. */
export type ManifestWorkSpec = Static<typeof Spec>
/** What became of it on the member. */
export type ManifestWorkStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ManifestWork = KindObject<ManifestWorkSpec, ManifestWorkStatus>
