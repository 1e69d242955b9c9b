import { type Static, Type } from 'typebox'
import { LabelSelector, Text } from '../parts.ts'

/** Which kind of object; the core group is ''. */
export const GroupVersionKind = (description: string) =>
  Type.Object(
    {
      group: Type.Optional(Text(253, 'API group; empty: the core group')),
      version: Text(63, 'version of the API, such as v1'),
      kind: Text(63, 'kind, such as Deployment'),
    },
    { description },
  )
export type GroupVersionKind = Static<ReturnType<typeof GroupVersionKind>>

/** A Go duration, such as 30s or 1h30m. */
export const Duration = (description: string, more: { readonly default?: string } = {}) =>
  Type.String({ maxLength: 64, description, ...more })

export const Names = (what: string, description: string) => Type.Array(Text(253, what), { maxItems: 1000, description })

/** Which namespaces a target reads. */
export const namespaceChoice = {
  includedNamespaces: Type.Optional(
    Names('namespace', 'only these namespaces; instead of the default that the process has'),
  ),
  excludedNamespaces: Type.Optional(
    Names('namespace', 'never these namespaces; those that the process excludes are excluded as well'),
  ),
  namespaceExcludeSelector: Type.Optional(LabelSelector('never namespaces with these labels')),
}

/** One of several ways to choose objects. */
const ResourceRule = Type.Object({
  gvk: GroupVersionKind('kind of the objects'),
  namespaceSelector: Type.Optional(LabelSelector('labels of their namespace')),
  matchLabels: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'labels that must have exactly these values' }),
  ),
  matchExpressions: Type.Optional(
    Type.Array(
      Type.Object({
        key: Text(317, 'name of the label'),
        operator: Text(64, 'In, NotIn, Exists or DoesNotExist'),
        values: Type.Optional(Type.Array(Text(63, 'value'), { description: 'for In and NotIn' })),
      }),
      { maxItems: 100, description: 'further demands on labels; all must be met' },
    ),
  ),
  matchPolicy: Type.Optional(
    Text(16_384, 'CEL over `object` that says true or false, such as `object.spec.replicas > 1`'),
  ),
})

export const ResourceRules = Type.Array(ResourceRule, {
  maxItems: 100,
  description: 'an object is taken where one of these holds; what a rule names must all be so',
})

/** A Secret of credentials. */
export const SecretRef = (description: string) =>
  Type.Object(
    {
      name: Text(253, 'name of the Secret'),
      namespace: Type.Optional(
        Text(
          253,
          'namespace of the Secret; default: that of the sink. Another one is refused, unless KOLLECT_SEMANTICS is original',
        ),
      ),
    },
    { description },
  )

/** An object that is named with its namespace. */
export const ProfileRef = (description: string) =>
  Type.Object(
    { name: Text(253, 'name of the profile'), namespace: Text(63, 'namespace of the profile') },
    { description },
  )

/** A sink as inventories name it: its name alone, or with settings of this binding. */
export interface SinkRef {
  readonly name: string
  /** cluster inventories only */
  readonly namespace?: string
  readonly exportMinInterval?: string
  readonly snapshotWindow?: string
  readonly maxExportBytes?: number
}

/** Either of text and object has no type in a CRD: what stands there is checked by `kollectFaults`. */
const SinkRefs = (family: string) =>
  Type.Array(
    Type.Unsafe<string | SinkRef>({
      description:
        'name of a sink, or an object with name, namespace, exportMinInterval, snapshotWindow, maxExportBytes',
    }),
    {
      maxItems: 100,
      description: `${family} sinks that the rows go to: each a name, or an object with \`name\` and, for this sink only, \`exportMinInterval\`, \`snapshotWindow\`, \`maxExportBytes\`; in a cluster inventory also \`namespace\``,
    },
  )

/** The sinks of an inventory, by family. */
export const sinkRefs = {
  snapshotSinkRefs: Type.Optional(SinkRefs('snapshot')),
  databaseSinkRefs: Type.Optional(SinkRefs('database')),
  eventSinkRefs: Type.Optional(SinkRefs('event')),
}

/** Earliest repeat of identical content. */
export const exportMinInterval = (more: { readonly default?: string } = {}) =>
  Type.Optional(Duration('earliest repeat of identical content, 0s to 24h', more))
/** Earliest next export of any content. */
export const snapshotWindow = Type.Optional(
  Duration(
    'earliest next export of any content after an export, 0s to 24h; default: 60s for git and object stores, 0s for databases and events',
  ),
)
