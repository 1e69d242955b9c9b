/** Any API object as stored: plain JSON with apiVersion, kind and metadata. */
export interface ApiObject {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    uid?: string
    resourceVersion?: string
    generation?: number
    creationTimestamp?: string
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
    generateName?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
    finalizers?: string[]
    ownerReferences?: unknown[]
    managedFields?: ManagedFieldsEntry[]
    [field: string]: unknown
  }
  [field: string]: unknown
}

/** metav1.ManagedFieldsEntry, FieldsV1. */
export interface ManagedFieldsEntry {
  manager: string
  operation: 'Apply' | 'Update'
  apiVersion: string
  time?: string
  fieldsType: 'FieldsV1'
  fieldsV1: Record<string, unknown>
  subresource?: string
}

/** OpenAPI v3 schema as far as Kubernetes uses it, with its x-kubernetes-* extensions. */
export interface Schema {
  type?: string
  format?: string
  description?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  required?: string[]
  enum?: unknown[]
  default?: unknown
  nullable?: boolean
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  multipleOf?: number
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  not?: Schema
  $ref?: string
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
  'x-kubernetes-patch-strategy'?: string
  'x-kubernetes-patch-merge-key'?: string
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
  'x-kubernetes-validations'?: unknown[]
  [extension: `x-${string}`]: unknown
}

/** One column of `kubectl get`: `jsonPath` for declared ones. */
export interface PrinterColumn {
  name: string
  type: string
  format?: string
  description?: string
  /** 0 is always shown, above only with -o wide */
  priority?: number
  jsonPath: string
}

/** A part of an object with an address of its own, of which only that part is written there. */
export type Subresource = 'status' | 'approval'

/** One resource the server serves in one version. Built-in ones are in resources/, others come from CRDs. */
export interface ServedResource {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly namespaced: boolean
  readonly status: boolean
  /** whether it is approved or denied through a subresource of its own */
  readonly approval?: boolean
  readonly builtIn: boolean
  readonly schema: Schema
  readonly columns: readonly PrinterColumn[]
}

/** One field that does not fit: `path` as Kubernetes prints it (`spec.endpoint`, `spec.items[0]`). */
export interface FieldFault {
  readonly reason:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueTypeInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueTooLong'
    | 'FieldValueTooMany'
    | 'FieldValueDuplicate'
    | 'FieldValueForbidden'
  readonly path: string
  readonly message: string
}

/** What is stored in the moment of a write, with what is decided and not on disk yet. */
export interface StoredObjects {
  /** Objects of a collection whose key starts with the prefix. */
  list(collection: string, prefix: string): readonly ApiObject[]
}

/** Why a write that was let through is not stored: nothing changed. */
export interface WriteFailure {
  /** as the caller is answered */
  readonly httpCode: number
  readonly message: string
}

/** What the rules say to one write, in the two moments in which they are asked. */
export interface Admission {
  /**
   * The object as the rules make it, before its schema is checked.
   * @throws ApiError Invalid, naming the rule
   */
  mutate(object: ApiObject, before: ApiObject | undefined): ApiObject
  /**
   * Asked when everything else about the write is decided. `object` is undefined where the write deletes.
   * @throws ApiError Forbidden, Invalid, naming the rule
   */
  validate(object: ApiObject | undefined, before: ApiObject | undefined, stored: StoredObjects): void
  /** Told what became of what was let through, before the caller is. Never rejects. @param failure absent: it is stored */
  settled(failure?: WriteFailure): Promise<void>
}
