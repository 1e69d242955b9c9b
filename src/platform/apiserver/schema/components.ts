import type { Schema } from '../types.ts'

type Extra = Partial<Schema>

/** Names of the schemas that OpenAPI publishes once and refers to, such as `io.k8s.api.core.v1.Node`. */
const names = new WeakMap<Schema, string>()
/** What is a Go type in built-in kinds, and only a word in custom ones: 32 bits are a limit, no bytes are bytes. */
const narrow = new WeakSet<Schema>()

/** The name under which OpenAPI publishes this schema; undefined where it is written out in place. */
export const componentOf = (schema: Schema): string | undefined => names.get(schema)

export const isNarrow = (schema: Schema): boolean => narrow.has(schema)

/** Gives a schema a name of its own in OpenAPI. */
export function component(name: string, schema: Schema): Schema {
  names.set(schema, name)
  return schema
}

/** The same schema in another place, with what is meant by it there. */
export function as(schema: Schema, description: string, extra: Extra = {}): Schema {
  const copy = { ...schema, description, ...extra }
  const name = names.get(schema)
  if (name !== undefined) names.set(copy, name)
  return copy
}

export const text = (description: string, extra: Extra = {}): Schema => ({ type: 'string', description, ...extra })
export const oneOf = (values: readonly string[], description: string, extra: Extra = {}): Schema =>
  text(description, { enum: [...values], ...extra })
export const flag = (description: string, extra: Extra = {}): Schema => ({ type: 'boolean', description, ...extra })
export const int64 = (description: string, extra: Extra = {}): Schema => ({
  type: 'integer',
  format: 'int64',
  description,
  ...extra,
})
export function int32(description: string, extra: Extra = {}): Schema {
  const schema: Schema = { type: 'integer', format: 'int32', description, ...extra }
  narrow.add(schema)
  return schema
}
export function bytes(description: string): Schema {
  const schema = text(description, { format: 'byte' })
  narrow.add(schema)
  return schema
}
export const time = (description: string): Schema => text(description, { format: 'date-time' })

/** A list that is replaced as a whole. */
export const list = (items: Schema, description: string, extra: Extra = {}): Schema => ({
  type: 'array',
  description,
  items,
  'x-kubernetes-list-type': 'atomic',
  ...extra,
})

/** A list without repeats; appliers share it. */
export const setOf = (items: Schema, description: string): Schema => ({
  type: 'array',
  description,
  items,
  'x-kubernetes-list-type': 'set',
  'x-kubernetes-patch-strategy': 'merge',
})

/** A list whose items are told apart by their keys; a strategic patch replaces it. */
export const keyed = (keys: readonly string[], items: Schema, description: string): Schema => ({
  type: 'array',
  description,
  items,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': [...keys],
})

/** A list whose items are told apart by their keys; a strategic patch merges by the first. */
export const listBy = (keys: readonly string[], items: Schema, description: string, strategy = 'merge'): Schema => ({
  ...keyed(keys, items, description),
  'x-kubernetes-patch-merge-key': keys[0] ?? '',
  'x-kubernetes-patch-strategy': strategy,
})

export const map = (values: Schema, description: string, extra: Extra = {}): Schema => ({
  type: 'object',
  description,
  additionalProperties: values,
  ...extra,
})

export const strings = (description: string, extra: Extra = {}): Schema => list({ type: 'string' }, description, extra)
export const stringMap = (description: string, extra: Extra = {}): Schema => map({ type: 'string' }, description, extra)

export const object = (description: string, properties: Record<string, Schema>, extra: Extra = {}): Schema => ({
  type: 'object',
  description,
  properties,
  ...extra,
})

/** An object whose inside this server keeps and does not look at. */
export const open = (description: string): Schema => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
})

export const ATOMIC: Extra = { 'x-kubernetes-map-type': 'atomic' }

export const quantity = component('io.k8s.apimachinery.pkg.api.resource.Quantity', {
  description: 'An amount with a unit prefix, such as 250m (a quarter) or 2Gi (two times 2^30).',
  anyOf: [{ type: 'string' }, { type: 'number' }],
})

export const intOrString = component('io.k8s.apimachinery.pkg.util.intstr.IntOrString', {
  description: 'A number, or a text such as a percentage or the name of a port.',
  format: 'int-or-string',
  'x-kubernetes-int-or-string': true,
})

const ownerReference = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference',
  object(
    'Names an object that owns this one; when the last owner goes, so does what it owns.',
    {
      apiVersion: text('API version of the owner'),
      kind: text('kind of the owner'),
      name: text('name of the owner, which is in the same namespace or in none'),
      uid: text('identity of the owner; an object with the same name and another uid is not meant'),
      controller: flag('whether this owner steers the object; at most one does'),
      blockOwnerDeletion: flag('whether a foreground deletion of the owner waits for this object'),
    },
    { required: ['apiVersion', 'kind', 'name', 'uid'], ...ATOMIC },
  ),
)

const managedFields = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry',
  object('The fields one writer set, and how.', {
    manager: text('name of the writer'),
    operation: text('Apply for server-side apply, Update for every other write'),
    apiVersion: text('API version in which the fields are named'),
    time: time('when the set of fields changed last'),
    fieldsType: text('always FieldsV1'),
    fieldsV1: open('the fields as a tree: f: is a field, k: an item by its keys, v: an item by its value'),
    subresource: text('the subresource that was written, such as status'),
  }),
)

/** metav1.ObjectMeta: what every object says of itself. */
export const objectMeta: Schema = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta',
  object('What every object says of itself: its identity, its labels, and what the server knows of its life.', {
    name: text('unique among the objects of its kind in its namespace; cannot be changed'),
    generateName: text('start of a name; the server completes it when no name is given'),
    namespace: text('the namespace it lives in; empty for cluster-wide objects; cannot be changed'),
    uid: text('set by the server: tells objects apart that had the same name at different times'),
    resourceVersion: text('set by the server on every change; send it back to change only what you have read'),
    generation: int64('set by the server: rises with every change of the wanted state'),
    creationTimestamp: time('set by the server: when it was created'),
    deletionTimestamp: time('set by the server: when its deletion was asked for; it goes once no finalizer is left'),
    deletionGracePeriodSeconds: int64('seconds it was given to end'),
    labels: stringMap('short facts to select by'),
    annotations: stringMap('facts for tools; not for selecting'),
    finalizers: setOf({ type: 'string' }, 'who must still act before the object may go'),
    ownerReferences: listBy(['uid'], ownerReference, 'objects this one depends on'),
    managedFields: list(managedFields, 'who set which fields; kept by the server'),
    selfLink: text('no longer used'),
  }),
)

export const listMeta: Schema = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta',
  object('What a list says of itself.', {
    resourceVersion: text('the version of the whole list: a watch may start from here'),
    continue: text('ask with this for the next page; empty on the last one'),
    remainingItemCount: int64('how many items follow, where the server knows'),
    selfLink: text('no longer used'),
  }),
)

/** An object of a kind, with apiVersion, kind and metadata before its own fields. */
export const kindOf = (
  name: string,
  description: string,
  properties: Record<string, Schema>,
  extra: Extra = {},
): Schema =>
  component(
    name,
    object(
      description,
      {
        apiVersion: text('version of the schema, such as apps/v1'),
        kind: text('name of the schema'),
        metadata: as(objectMeta, 'identity, labels and life of the object'),
        ...properties,
      },
      extra,
    ),
  )

const requirement = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement',
  object(
    'One demand on a label.',
    {
      key: text('name of the label'),
      operator: text('In, NotIn, Exists or DoesNotExist'),
      values: strings('allowed or refused values; empty for Exists and DoesNotExist'),
    },
    { required: ['key', 'operator'] },
  ),
)

export const labelSelector: Schema = component(
  'io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector',
  object(
    'Selects objects by their labels; all demands must be met, none selects everything.',
    {
      matchLabels: stringMap('labels that must have exactly these values'),
      matchExpressions: list(requirement, 'further demands'),
    },
    ATOMIC,
  ),
)

export const objectReference = component(
  'io.k8s.api.core.v1.ObjectReference',
  object(
    'Names any object.',
    {
      apiVersion: text('API version of the object'),
      kind: text('kind of the object'),
      namespace: text('its namespace'),
      name: text('its name'),
      uid: text('its identity'),
      resourceVersion: text('the version that is meant'),
      fieldPath: text('a part of it, such as spec.containers{web}'),
    },
    ATOMIC,
  ),
)

/** One statement of a status; which times it has differs between kinds. */
export const condition = (name: string, more: Record<string, Schema> = {}): Schema =>
  component(
    name,
    object(
      'One dated statement.',
      {
        type: text('what is said'),
        status: text('True, False or Unknown'),
        reason: text('one word why, for programs'),
        message: text('a sentence why, for people'),
        lastTransitionTime: time('when the status changed last'),
        ...more,
      },
      { required: ['type', 'status'] },
    ),
  )

/** Statements, one per type. */
export const conditions = (name: string, description: string, more: Record<string, Schema> = {}): Schema =>
  listBy(['type'], condition(name, more), description)
