import { type Static, Type } from 'typebox'
import { type Column, defineKind, type KindObject } from '../kind.ts'
import { Conditions, keyedBy, NamespaceName, Text, Word } from '../parts.ts'
import { OneOf } from '../words.ts'
import { managedClusterAddOnConversion } from './add-on-conversion.ts'
import { AddOnConfig, AddOnMeta, ConfigReferent, ConfigResource, Generation, HashedConfig } from './add-on-parts.ts'
import { ADDON_GROUP } from './names.ts'

const DEFAULT_NAMESPACE = 'open-cluster-management-agent-addon'

const Configs = Type.Optional(Type.Array(AddOnConfig, { description: 'objects that configure it here' }))

const Spec = Type.Object({ configs: Configs }, { description: 'what is wanted' })

const OlderSpec = Type.Object(
  {
    installNamespace: Type.Optional(
      Type.String({
        maxLength: 63,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
        default: DEFAULT_NAMESPACE,
        description: 'namespace on the member it is installed in',
      }),
    ),
    configs: Configs,
  },
  { description: 'what is wanted' },
)

const user = Type.Optional(Text(1024, 'user name of its certificate'))
const groups = Type.Optional(Type.Array(Text(1024, 'group'), { description: 'groups of its certificate' }))
const units = Type.Optional(Type.Array(Text(1024, 'unit'), { description: 'units of its certificate' }))
const driver = Type.Optional(
  OneOf(['csr', 'token'], { description: 'how it proves who it is at the hub: by certificate or by token' }),
)
const signerName = Type.String({ minLength: 5, maxLength: 571, description: 'who signs its certificate' })
const subject = { description: 'who it is at the hub; absent: made of the names of add-on, cluster and agent' }

const Registration = Type.Object({
  type: OneOf(['kubeClient', 'customSigner'], {
    description: 'kubeClient: it speaks to the API of the hub; customSigner: to something else, with a certificate',
  }),
  kubeClient: Type.Optional(
    Type.Object(
      { subject: Type.Optional(Type.Object({ user, groups }, subject)), driver },
      { description: 'for type kubeClient' },
    ),
  ),
  customSigner: Type.Optional(
    Type.Object(
      { signerName, subject: Type.Optional(Type.Object({ user, groups, organizationUnits: units }, subject)) },
      { description: 'for type customSigner' },
    ),
  ),
})

const OlderRegistration = Type.Object({
  signerName,
  subject: Type.Optional(Type.Object({ user, groups, organizationUnit: units }, subject)),
})

const shared = {
  conditions: Conditions,
  relatedObjects: Type.Optional(
    Type.Array(
      Type.Object({
        group: Text(253, 'group'),
        resource: Text(253, 'resource'),
        namespace: Type.Optional(Text(63, 'namespace')),
        name: Text(253, 'name'),
      }),
      { description: 'objects that have to do with it' },
    ),
  ),
  addOnMeta: AddOnMeta,
  supportedConfigs: Type.Optional(
    Type.Array(Type.Object(ConfigResource), {
      ...keyedBy('group', 'resource'),
      description: 'sorts of objects that may configure it',
    }),
  ),
  healthCheck: Type.Optional(
    Type.Object(
      {
        mode: Type.Optional(
          OneOf(['Lease', 'Customized'], {
            default: 'Lease',
            description: 'Lease: its lease on the member is watched; Customized: it says itself how it is',
          }),
        ),
      },
      { description: 'how it is known to be well' },
    ),
  ),
  namespace: Type.Optional(NamespaceName('namespace on the member it is installed in')),
}

const inForce = {
  ...ConfigResource,
  desiredConfig: HashedConfig('what shall be in force'),
  lastAppliedConfig: HashedConfig('what was put in force last'),
  lastObservedGeneration: Generation,
}

const Status = Type.Object(
  {
    ...shared,
    configReferences: Type.Optional(Type.Array(Type.Object(inForce), { description: 'what configures it' })),
    registrations: Type.Optional(Type.Array(Registration, { description: 'as whom it comes to the hub' })),
  },
  { description: 'what is seen; written by add-ons, the hub and the agent' },
)

const OlderStatus = Type.Object(
  {
    ...shared,
    configReferences: Type.Optional(
      Type.Array(
        Type.Object({ ...inForce, namespace: ConfigReferent.namespace, name: Type.Optional(Word(253, 'its name')) }),
        {
          description: 'what configures it',
        },
      ),
    ),
    registrations: Type.Optional(Type.Array(OlderRegistration, { description: 'as whom it comes to the hub' })),
    kubeClientDriver: driver,
  },
  { description: 'what is seen; written by add-ons, the hub and the agent' },
)

const condition = (name: string): Column => ({
  name,
  type: 'string',
  jsonPath: `.status.conditions[?(@.type=="${name}")].status`,
})
const columns = [condition('Available'), condition('Degraded'), condition('Progressing')]

/** An add-on on one member. */
export const managedClusterAddOn = defineKind({
  group: ADDON_GROUP,
  version: 'v1beta1',
  kind: 'ManagedClusterAddOn',
  plural: 'managedclusteraddons',
  singular: 'managedclusteraddon',
  shortNames: ['mca', 'mcas'],
  categories: [],
  description: 'An add-on on one member; lives in the namespace of the member and has the name of the add-on.',
  columns,
  spec: Spec,
  status: Status,
  others: [
    {
      version: 'v1alpha1',
      columns,
      spec: OlderSpec,
      status: OlderStatus,
      conversion: managedClusterAddOnConversion,
    },
  ],
  example: {
    apiVersion: `${ADDON_GROUP}/v1beta1`,
    kind: 'ManagedClusterAddOn',
    metadata: { name: 'helloworld', namespace: 'west' },
    spec: {},
  },
})

/** Which objects configure an add-on here. */
export type ManagedClusterAddOnSpec = Static<typeof Spec>
/** How the add-on is, and as whom it comes to the hub. */
export type ManagedClusterAddOnStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ManagedClusterAddOn = KindObject<ManagedClusterAddOnSpec, ManagedClusterAddOnStatus>
