import { componentOf, listMeta, objectMeta } from '../schema/index.ts'
import type { Schema, ServedResource } from '../types.ts'
import { componentName, listName } from './names.ts'
import { type Gvk, META, SCALE } from './operations.ts'

/** A schema as it is published: with references, and in the words of one version of OpenAPI. */
export type Published = Readonly<Record<string, unknown>>

const text = (description: string): Schema => ({ type: 'string', description })

const TYPE_FIELDS = {
  apiVersion: text('version of the schema of this object'),
  kind: text('what this object is'),
}

/** Facts that belong to the field, not to the type it refers to. */
const OF_FIELD = [
  'description',
  'default',
  'nullable',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
] as const

const ofField = (schema: Schema): Record<string, unknown> =>
  Object.fromEntries(OF_FIELD.filter((name) => schema[name] !== undefined).map((name) => [name, schema[name]]))

/**
 * The components of one document. Schemas with a name are published once and referred to; what a version of OpenAPI
 * cannot say is left out by `say`.
 */
export class Components {
  readonly schemas: Record<string, Published> = {}
  readonly #base: string
  readonly #say: (schema: Schema) => Record<string, unknown>

  constructor(base: string, say: (schema: Schema) => Record<string, unknown>) {
    this.#base = base
    this.#say = say
    // The first one met gives the description; these two are met with words of their place.
    this.#use(objectMeta)
  }

  ref(name: string): Published {
    return { $ref: this.#base + name }
  }

  /** A kind, its list, and what both refer to. */
  add(resource: ServedResource): void {
    const { group, version, kind, schema } = resource
    const gvk = (name: string): Gvk[] => [{ group, kind: name, version }]
    const name = componentName(resource)
    const metadata = { ...objectMeta, description: 'identity, labels and life of the object' }
    const own = resource.builtIn && componentOf(schema) ? schema : withMeta(schema)
    this.schemas[name] = {
      ...this.#body(own, { metadata: this.#refer(metadata, objectMeta) }),
      'x-kubernetes-group-version-kind': gvk(kind),
    }
    this.#use(listMeta)
    this.schemas[listName(resource)] = {
      type: 'object',
      description: `A list of objects of the kind ${kind}.`,
      required: ['items'],
      properties: {
        ...TYPE_FIELDS,
        items: { type: 'array', description: 'the objects', items: this.ref(name) },
        metadata: this.#refer({ ...listMeta, description: 'version of the list and its place among pages' }, listMeta),
      },
      'x-kubernetes-group-version-kind': gvk(`${kind}List`),
    }
  }

  /** What every document refers to beside its kinds. */
  addShared(groups: readonly Pick<Gvk, 'group' | 'version'>[]): void {
    for (const [name, schema] of Object.entries(SHARED)) this.schemas[`${META}.${name}`] = this.#body(schema)
    const own = this.schemas[`${META}.DeleteOptions`]
    this.schemas[`${META}.DeleteOptions`] = {
      ...own,
      'x-kubernetes-group-version-kind': groups.map(({ group, version }) => ({
        group,
        kind: 'DeleteOptions',
        version,
      })),
    }
    this.schemas[`${META}.Status`] = {
      ...this.schemas[`${META}.Status`],
      'x-kubernetes-group-version-kind': [{ group: '', kind: 'Status', version: 'v1' }],
    }
  }

  addScale(): void {
    this.schemas[SCALE] = {
      ...this.#body(scaleSchema, { metadata: this.#refer(objectMeta, objectMeta) }),
      'x-kubernetes-group-version-kind': [{ group: 'autoscaling', kind: 'Scale', version: 'v1' }],
    }
  }

  #use(schema: Schema): Published {
    const name = componentOf(schema) ?? ''
    if (!this.schemas[name]) {
      // Held while it is made, should it refer to itself.
      this.schemas[name] = {}
      const { default: _, ...own } = schema
      this.schemas[name] = this.#body(own)
    }
    return this.ref(name)
  }

  #refer(schema: Schema, named: Schema = schema): Published {
    const ref = this.#use(named)
    const own = ofField(schema)
    if (own.description === this.schemas[componentOf(named) ?? '']?.description) delete own.description
    return Object.keys(own).length > 0 ? { ...own, allOf: [ref] } : ref
  }

  #publish(schema: Schema): Published {
    return componentOf(schema) === undefined ? this.#body(schema) : this.#refer(schema)
  }

  /** Of a list or a map: nothing is said of the element's place that the list does not say. */
  #element(schema: Schema): Published {
    return componentOf(schema) === undefined ? this.#body(schema) : this.#use(schema)
  }

  /** The schema itself, with what is below it published. */
  #body(schema: Schema, instead: Readonly<Record<string, Published>> = {}): Record<string, unknown> {
    const said: Record<string, unknown> = this.#say(schema)
    const { properties, items, additionalProperties } = said as Schema
    if (properties)
      said.properties = Object.fromEntries(
        Object.entries(properties).map(([name, each]) => [name, instead[name] ?? this.#publish(each)]),
      )
    if (items) said.items = this.#element(items)
    if (typeof additionalProperties === 'object') said.additionalProperties = this.#element(additionalProperties)
    for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
      const parts = (said as Schema)[name]
      if (parts) said[name] = parts.map((part) => this.#publish(part))
    }
    if (said.not) said.not = this.#publish(said.not as Schema)
    return said
  }
}

/** The schema of a custom kind, with the fields every object has. */
const withMeta = (schema: Schema): Schema => ({
  type: 'object',
  ...schema,
  properties: { ...TYPE_FIELDS, ...pick(schema.properties), metadata: objectMeta },
})

function pick(properties: Schema['properties'] = {}): Record<string, Schema> {
  const { apiVersion: _, kind: __, metadata: ___, ...own } = properties
  return own
}

const scaleSchema: Schema = {
  type: 'object',
  description: 'The size of something, whatever its kind.',
  properties: {
    ...TYPE_FIELDS,
    metadata: objectMeta,
    spec: {
      type: 'object',
      description: 'the size that is wanted',
      properties: { replicas: { type: 'integer', format: 'int32', description: 'how many are wanted' } },
    },
    status: {
      type: 'object',
      description: 'the size there is',
      required: ['replicas'],
      properties: {
        replicas: { type: 'integer', format: 'int32', description: 'how many there are' },
        selector: text('which pods are counted'),
      },
    },
  },
}

/** Of meta.k8s.io/v1, by name. */
const SHARED: Readonly<Record<string, Schema>> = {
  DeleteOptions: {
    type: 'object',
    description: 'How something is deleted.',
    properties: {
      ...TYPE_FIELDS,
      dryRun: { type: 'array', description: 'All: nothing is deleted', items: { type: 'string' } },
      gracePeriodSeconds: { type: 'integer', format: 'int64', description: 'seconds it is given to end' },
      orphanDependents: { type: 'boolean', description: 'no longer used' },
      preconditions: {
        type: 'object',
        description: 'what must be true of the object',
        properties: { uid: text('its identity'), resourceVersion: text('its version') },
      },
      propagationPolicy: text('what happens to what it owns: Orphan, Background or Foreground'),
    },
  },
  Patch: { type: 'object', description: 'A change of an object, in the form its media type says.' },
  Status: {
    type: 'object',
    description: 'The answer to a call that answers no object.',
    properties: {
      ...TYPE_FIELDS,
      metadata: { type: 'object', description: 'unused' },
      status: text('Success or Failure'),
      message: text('the answer for people'),
      reason: text('one word why, for programs'),
      details: {
        type: 'object',
        description: 'facts beside the reason',
        properties: {
          name: text('name of the object'),
          group: text('its group'),
          kind: text('its kind or resource'),
          uid: text('its identity'),
          retryAfterSeconds: { type: 'integer', format: 'int32', description: 'when the call may be tried again' },
          causes: {
            type: 'array',
            description: 'every fault',
            items: {
              type: 'object',
              properties: {
                reason: text('one word'),
                message: text('a sentence'),
                field: text('the field with the fault'),
              },
            },
          },
        },
      },
      code: { type: 'integer', format: 'int32', description: 'the code of the HTTP answer' },
    },
  },
}
