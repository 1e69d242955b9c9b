import { type Static, Type } from 'typebox'
import { type Column, defineKind, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, Word } from '../parts.ts'
import { OneOf } from '../words.ts'
import { clusterManagementAddOnConversion } from './add-on-conversion.ts'
import { AddOnConfig, AddOnMeta, ConfigReferent, ConfigResource, HashedConfig } from './add-on-parts.ts'
import { ADDON_GROUP } from './names.ts'

/** How a change reaches clusters: its inside is that of works and is kept as it comes. */
const Rollout = Type.Optional(
  Type.Unsafe<Readonly<Record<string, unknown>>>({
    type: 'object',
    additionalProperties: true,
    default: { type: 'All' },
    description: 'how a change reaches the clusters, such as {type: Progressive}; default: all at once',
  }),
)

const InstallStrategy = Type.Optional(
  Type.Object(
    {
      type: Type.Optional(
        OneOf(['Manual', 'Placements'], {
          default: 'Manual',
          description: 'Manual: somebody makes a ManagedClusterAddOn; Placements: where placements choose',
        }),
      ),
      placements: Type.Optional(
        Type.Array(
          Type.Object({
            namespace: Word(63, 'namespace of the placement'),
            name: Word(253, 'name of the placement'),
            configs: Type.Optional(Type.Array(AddOnConfig, { description: 'what configures it on these clusters' })),
            rolloutStrategy: Rollout,
          }),
          { ...keyedBy('namespace', 'name'), description: 'where it is installed; a later one wins' },
        ),
      ),
    },
    { default: { type: 'Manual' }, description: 'where it is installed by itself' },
  ),
)

const Spec = Type.Object(
  {
    addOnMeta: AddOnMeta,
    defaultConfigs: Type.Optional(
      Type.Array(AddOnConfig, {
        ...keyedBy('group', 'resource'),
        description: 'objects that configure it wherever nothing else is said, one of each sort',
      }),
    ),
    installStrategy: InstallStrategy,
  },
  { description: 'what is wanted' },
)

const OlderSpec = Type.Object(
  {
    addOnMeta: AddOnMeta,
    supportedConfigs: Type.Optional(
      Type.Array(
        Type.Object({
          ...ConfigResource,
          defaultConfig: Type.Optional(
            Type.Object(ConfigReferent, { description: 'the object that counts where nothing else is said' }),
          ),
        }),
        { ...keyedBy('group', 'resource'), description: 'sorts of objects that may configure it' },
      ),
    ),
    installStrategy: InstallStrategy,
  },
  { description: 'what is wanted' },
)

const Defaults = Type.Optional(
  Type.Array(Type.Object({ ...ConfigResource, desiredConfig: HashedConfig('what shall be in force') }), {
    ...keyedBy('group', 'resource'),
    description: 'what configures it where nothing else is said',
  }),
)

const shared = {
  installProgressions: Type.Optional(
    Type.Array(
      Type.Object({
        namespace: Word(63, 'namespace of the placement'),
        name: Word(253, 'name of the placement'),
        configReferences: Type.Optional(
          Type.Array(
            Type.Object({
              ...ConfigResource,
              desiredConfig: HashedConfig('what shall be in force'),
              lastKnownGoodConfig: HashedConfig('what was in force everywhere last'),
              lastAppliedConfig: HashedConfig('what was put in force last'),
            }),
            { description: 'what configures it on these clusters' },
          ),
        ),
        conditions: Conditions,
      }),
      { ...keyedBy('namespace', 'name'), description: 'how far it has come, by placement' },
    ),
  ),
}

const Status = Type.Object({ defaultConfigReferences: Defaults, ...shared }, { description: 'what is seen' })
const OlderStatus = Type.Object({ defaultconfigReferences: Defaults, ...shared }, { description: 'what is seen' })

const columns: readonly Column[] = [{ name: 'DISPLAY NAME', type: 'string', jsonPath: '.spec.addOnMeta.displayName' }]

/** An add-on that this hub knows. */
export const clusterManagementAddOn = defineKind({
  group: ADDON_GROUP,
  version: 'v1beta1',
  kind: 'ClusterManagementAddOn',
  plural: 'clustermanagementaddons',
  singular: 'clustermanagementaddon',
  shortNames: ['cma', 'cmas'],
  categories: [],
  scope: 'Cluster',
  description: 'An add-on that this hub knows: what it is, what configures it, on which members it is installed.',
  columns,
  spec: Spec,
  status: Status,
  others: [
    {
      version: 'v1alpha1',
      columns,
      spec: OlderSpec,
      status: OlderStatus,
      conversion: clusterManagementAddOnConversion,
    },
  ],
  example: {
    apiVersion: `${ADDON_GROUP}/v1beta1`,
    kind: 'ClusterManagementAddOn',
    metadata: { name: 'helloworld' },
    spec: { addOnMeta: { displayName: 'Hello World' } },
  },
})

/** What an add-on is, and where it is installed. */
export type ClusterManagementAddOnSpec = Static<typeof Spec>
/** How far its installation has come. */
export type ClusterManagementAddOnStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ClusterManagementAddOn = KindObject<ClusterManagementAddOnSpec, ClusterManagementAddOnStatus>
