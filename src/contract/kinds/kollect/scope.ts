import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { Duration, GroupVersionKind, Names } from './parts.ts'

const sinks = (family: string) => Type.Optional(Names('name', `only these ${family} sinks; empty: every one`))

const ceiling = {
  allowedGVKs: Type.Optional(
    Type.Array(GroupVersionKind('a kind'), {
      maxItems: 1000,
      description: 'only these kinds, compared without regard to case; empty: every kind',
    }),
  ),
  allowedNamespaces: Type.Optional(Names('namespace', 'only these namespaces; empty: no limit')),
  deniedNamespaces: Type.Optional(Names('namespace', 'never these namespaces, whatever a target says')),
  minExportInterval: Type.Optional(
    Duration(
      'floor of exportMinInterval, and of snapshotWindow for git and object stores, 0s to 24h; databases and events follow changes at once',
    ),
  ),
  snapshotSinkRefs: sinks('snapshot'),
  databaseSinkRefs: sinks('database'),
  eventSinkRefs: sinks('event'),
}

const Spec = Type.Object(ceiling, { description: 'the ceiling' })

const columns = [
  { name: 'Floor', type: 'string', jsonPath: '.spec.minExportInterval' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
] as const

/** What a namespace may collect and where it may send it. */
export const kollectScope = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectScope',
  plural: 'kollectscopes',
  singular: 'kollectscope',
  shortNames: ['kscope'],
  categories: [],
  description: 'A ceiling for one namespace: what its targets may read, and where its inventories may send it.',
  columns,
  spec: Spec,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectScope',
    metadata: { name: 'ceiling', namespace: 'team-a' },
    spec: { allowedNamespaces: ['team-a'], minExportInterval: '30s' },
  },
})

const ClusterSpec = Type.Object(
  {
    ...ceiling,
    allowedStaticRefNamespaces: Type.Optional(
      Names('namespace', 'only profiles and sinks of these namespaces may be named; empty: of every one'),
    ),
  },
  { description: 'the ceiling' },
)

/** What cluster targets may collect and cluster inventories may send where. */
export const kollectClusterScope = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectClusterScope',
  plural: 'kollectclusterscopes',
  singular: 'kollectclusterscope',
  shortNames: ['kcscope'],
  categories: [],
  scope: 'Cluster',
  description: 'A ceiling for cluster targets and cluster inventories.',
  columns,
  spec: ClusterSpec,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectClusterScope',
    metadata: { name: 'ceiling' },
    spec: { deniedNamespaces: ['kube-system'], allowedStaticRefNamespaces: ['kollect-system'] },
  },
})

/** The ceiling of a namespace. */
export type KollectScopeSpec = Static<typeof Spec>
/** The object as the API keeps it. */
export type KollectScope = KindObject<KollectScopeSpec, unknown>
/** The ceiling of cluster kinds. */
export type KollectClusterScopeSpec = Static<typeof ClusterSpec>
/** The object as the API keeps it. */
export type KollectClusterScope = KindObject<KollectClusterScopeSpec, unknown>
