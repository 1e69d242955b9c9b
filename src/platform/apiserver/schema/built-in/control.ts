import {
  as,
  component,
  condition,
  flag,
  int32,
  int64,
  keyed,
  kindOf,
  labelSelector,
  list,
  object,
  open,
  strings,
  text,
  time,
} from '../components.ts'

export const lease = kindOf('io.k8s.api.coordination.v1.Lease', 'Who holds something, and until when.', {
  spec: component(
    'io.k8s.api.coordination.v1.LeaseSpec',
    object('Who holds it.', {
      holderIdentity: text('who holds it; empty: nobody'),
      leaseDurationSeconds: int32('seconds after the last renewal until others may take it'),
      acquireTime: time('when it was taken'),
      renewTime: time('when it was renewed last'),
      leaseTransitions: int32('how often the holder has changed'),
      strategy: text('how the holder is chosen'),
      preferredHolder: text('who shall take over'),
    }),
  ),
})

const rbac = (kind: string): string => `io.k8s.api.rbac.v1.${kind}`

const rule = component(
  rbac('PolicyRule'),
  object(
    'What may be done with what.',
    {
      verbs: strings('what may be done, such as get, list, watch; * is everything'),
      apiGroups: strings('groups of the resources; "" is the core group'),
      resources: strings('resources, such as pods or pods/log'),
      resourceNames: strings('names of the objects; empty: all'),
      nonResourceURLs: strings('paths that are no resources, such as /healthz'),
    },
    { required: ['verbs'] },
  ),
)

const roleRef = component(
  rbac('RoleRef'),
  object(
    'Names a role.',
    { apiGroup: text('always rbac.authorization.k8s.io'), kind: text('Role or ClusterRole'), name: text('its name') },
    { required: ['kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
  ),
)

const subject = component(
  rbac('Subject'),
  object(
    'Someone who is given a role.',
    {
      kind: text('User, Group or ServiceAccount'),
      name: text('name of the one'),
      namespace: text('namespace of a ServiceAccount'),
      apiGroup: text('group of the kind; "" for a ServiceAccount'),
    },
    { required: ['kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
  ),
)

export const role = kindOf(rbac('Role'), 'What may be done in one namespace.', {
  rules: list(rule, 'what may be done'),
})

export const clusterRole = kindOf(rbac('ClusterRole'), 'What may be done in the whole cluster.', {
  rules: list(rule, 'what may be done'),
  aggregationRule: component(
    rbac('AggregationRule'),
    object('Collects the rules of other roles.', {
      clusterRoleSelectors: list(labelSelector, 'roles whose rules are collected'),
    }),
  ),
})

const binding = {
  subjects: list(subject, 'who is given the role'),
  roleRef: as(roleRef, 'the role; cannot be changed'),
}

export const roleBinding = kindOf(rbac('RoleBinding'), 'Gives a role in one namespace.', binding, {
  required: ['roleRef'],
})
export const clusterRoleBinding = kindOf(rbac('ClusterRoleBinding'), 'Gives a role in the whole cluster.', binding, {
  required: ['roleRef'],
})

const extensions = (kind: string): string => `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.${kind}`

const definitionNames = component(
  extensions('CustomResourceDefinitionNames'),
  object(
    'What the resource is called.',
    {
      plural: text('in the path of the API, such as widgets'),
      singular: text('for people; default: the kind in small letters'),
      kind: text('in manifests, such as Widget'),
      listKind: text('kind of its lists; default: the kind with List behind it'),
      shortNames: strings('short forms for people'),
      categories: strings('groups it is listed with, such as all'),
    },
    { required: ['plural', 'kind'] },
  ),
)

const definitionVersion = component(
  extensions('CustomResourceDefinitionVersion'),
  object(
    'One version of the resource.',
    {
      name: text('its name, such as v1alpha1'),
      served: flag('whether it is offered'),
      storage: flag('whether objects are stored in it; exactly one is'),
      deprecated: flag('whether users are warned of it'),
      deprecationWarning: text('the warning'),
      schema: object('How its objects look.', { openAPIV3Schema: open('structural schema of the objects') }),
      subresources: object('Parts with an address of their own.', {
        status: open('lets the status be written apart from the rest'),
        scale: object(
          'Lets the size be written without knowing the kind.',
          {
            specReplicasPath: text('path of the wanted size'),
            statusReplicasPath: text('path of the size seen'),
            labelSelectorPath: text('path of the selector, as text'),
          },
          { required: ['specReplicasPath', 'statusReplicasPath'] },
        ),
      }),
      additionalPrinterColumns: list(
        object(
          'One column of a table.',
          {
            name: text('its heading'),
            type: text('string, integer, number, boolean or date'),
            jsonPath: text('where the value is found'),
            format: text('format of the type'),
            description: text('what it says'),
            priority: int32('0: always shown; above: only in wide tables'),
          },
          { required: ['name', 'type', 'jsonPath'] },
        ),
        'columns shown by kubectl get',
      ),
      selectableFields: list(
        object('A field to select by.', { jsonPath: text('where it is found') }, { required: ['jsonPath'] }),
        'fields that field selectors may ask',
      ),
    },
    { required: ['name', 'served', 'storage'] },
  ),
)

export const customResourceDefinition = kindOf(
  extensions('CustomResourceDefinition'),
  'Adds a resource to the API.',
  {
    spec: component(
      extensions('CustomResourceDefinitionSpec'),
      object(
        'The resource.',
        {
          group: text('its API group, such as example.com'),
          names: as(definitionNames, 'what it is called'),
          scope: text('Namespaced or Cluster'),
          versions: list(definitionVersion, 'its versions'),
          conversion: open('how versions are turned into each other'),
          preserveUnknownFields: flag('no longer used; must be false'),
        },
        { required: ['group', 'names', 'scope', 'versions'] },
      ),
    ),
    status: component(
      extensions('CustomResourceDefinitionStatus'),
      object('Whether it is served.', {
        acceptedNames: as(definitionNames, 'names it has been given'),
        conditions: keyed(
          ['type'],
          condition(extensions('CustomResourceDefinitionCondition'), {
            observedGeneration: int64('generation this was said of'),
          }),
          'whether it is served, and why not',
        ),
        storedVersions: strings('versions objects have been stored in'),
        observedGeneration: int64('generation this was said of'),
      }),
    ),
  },
  { required: ['spec'] },
)
