import { definitionFaults, establish } from './crd.ts'
import type { Resource } from './served.ts'
import { ApiError, forbidden } from './status.ts'
import type { ApiObject, FieldFault } from './types.ts'

/** What a built-in kind fills in and checks beyond its schema. */
interface KindRule {
  prepare?(object: ApiObject, before: ApiObject | undefined, nowMs: number): ApiObject
  faults?(object: ApiObject, before: ApiObject | undefined): FieldFault[]
  /** @throws ApiError where the object may not go. */
  beforeDelete?(resource: Resource, object: ApiObject): void
}

const KEPT_NAMESPACES = new Set(['default', 'kube-system', 'kube-public'])

const namespaceRule: KindRule = {
  prepare: (object, before) => ({
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name },
    },
    spec: before?.spec ?? { finalizers: ['kubernetes'] },
    status: before?.status ?? { phase: 'Active' },
  }),
  beforeDelete: (resource, object) => {
    if (KEPT_NAMESPACES.has(object.metadata.name))
      throw forbidden(resource, object.metadata.name, 'this namespace may not be deleted')
  },
}

const secretRule: KindRule = {
  prepare: (object) => {
    const { stringData, ...rest } = object as ApiObject & { stringData?: Record<string, string> }
    const written = Object.entries(stringData ?? {}).map(([name, text]) => [
      name,
      Buffer.from(String(text)).toString('base64'),
    ])
    const data = { ...(object.data as object | undefined), ...Object.fromEntries(written) }
    return {
      ...rest,
      ...(Object.keys(data).length > 0 || object.data ? { data } : {}),
      type: object.type || 'Opaque',
    } as ApiObject
  },
  faults: (object, before) => {
    const faults: FieldFault[] = []
    for (const [name, value] of Object.entries((object.data as Record<string, unknown> | undefined) ?? {})) {
      if (!/^[-._a-zA-Z0-9]+$/.test(name))
        faults.push({
          reason: 'FieldValueInvalid',
          path: `data[${name}]`,
          message: `Invalid value: ${JSON.stringify(name)}: a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`,
        })
      if (typeof value !== 'string' || !isBase64(value))
        throw new ApiError(
          'BadRequest',
          `Secret in version "v1" cannot be handled as a Secret: illegal base64 data in data.${name}`,
        )
    }
    if (before && before.type !== object.type)
      faults.push({
        reason: 'FieldValueInvalid',
        path: 'type',
        message: `Invalid value: ${JSON.stringify(object.type)}: field is immutable`,
      })
    return [...faults, ...immutableFaults(object, before)]
  },
}

const isBase64 = (text: string): boolean =>
  text.replace(/[\r\n]/g, '').length % 4 === 0 && /^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/.test(text)

/** A ConfigMap or Secret that says it is immutable keeps its data. */
function immutableFaults(object: ApiObject, before: ApiObject | undefined): FieldFault[] {
  if (before?.immutable !== true) return []
  const fault = (path: string): FieldFault => ({
    reason: 'FieldValueForbidden',
    path,
    message: 'Forbidden: field is immutable when `immutable` is set',
  })
  const faults: FieldFault[] = []
  if (object.immutable !== true) faults.push(fault('immutable'))
  if (JSON.stringify(object.data) !== JSON.stringify(before.data)) faults.push(fault('data'))
  return faults
}

const definitionRule: KindRule = {
  prepare: (object, before, nowMs) => establish(object, before, nowMs),
  faults: definitionFaults,
}

const podRule: KindRule = {
  prepare: (object) => (object.status ? object : { ...object, status: { phase: 'Pending' } }),
}

const emptyStatus: KindRule = {
  prepare: (object) => (object.status ? object : { ...object, status: {} }),
}

const RULES: Readonly<Record<string, KindRule>> = {
  '/namespaces': namespaceRule,
  '/secrets': secretRule,
  '/configmaps': { faults: immutableFaults },
  '/pods': podRule,
  '/nodes': emptyStatus,
  'apps/deployments': emptyStatus,
  'apiextensions.k8s.io/customresourcedefinitions': definitionRule,
}

const none: KindRule = {}

export const ruleOf = (resource: Resource): KindRule => (resource.builtIn ? (RULES[resource.collection] ?? none) : none)
