import type { ServedResource } from '../types.ts'
import { componentName, listName, operationId, tagOf } from './names.ts'

export interface Gvk {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly type: 'string' | 'integer' | 'boolean'
  readonly description: string
}

/** One thing that can be asked, before it is written in a version of OpenAPI. */
export interface Operation {
  readonly path: string
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'patch'
  readonly id: string
  readonly tag: string
  readonly description: string
  /** what it is in the words of Kubernetes: list, get, post, put, patch, delete, deletecollection */
  readonly action: string
  readonly gvk: Gvk
  /** of the path: the same for all operations of one path */
  readonly place: readonly Parameter[]
  readonly query: readonly Parameter[]
  /** component of the body; a patch is anything */
  readonly body?: string
  /** media types of the body, where not any that the API reads */
  readonly patches?: readonly string[]
  readonly result: string
  /** codes beside 200 */
  readonly codes: readonly string[]
}

export const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'
export const SCALE = 'io.k8s.api.autoscaling.v1.Scale'

const query = (name: string, description: string, type: Parameter['type'] = 'string'): Parameter => ({
  name,
  in: 'query',
  type,
  description,
})

const place = (name: string, description: string): Parameter => ({ name, in: 'path', type: 'string', description })

const PRETTY = query('pretty', 'whether the answer is indented')
const DRY_RUN = query('dryRun', 'All: everything happens but the storing')
const MANAGER = query('fieldManager', 'who owns the fields that are written')
const VALIDATION = query('fieldValidation', 'what unknown and repeated fields lead to: Ignore, Warn or Strict')
const FORCE = query('force', 'takes fields over from other managers; for apply only', 'boolean')
const WRITE = [DRY_RUN, MANAGER, VALIDATION]

const SELECT = [
  query('labelSelector', 'what the labels of the objects must be'),
  query('fieldSelector', 'what some fields of the objects must be'),
]
const LIST = [
  ...SELECT,
  query('limit', 'how many objects an answer has at most', 'integer'),
  query('continue', 'where the answer before this one ended'),
  query('resourceVersion', 'the version that is asked for'),
  query('resourceVersionMatch', 'how that version is meant: Exact or NotOlderThan'),
  query('timeoutSeconds', 'when a watch ends', 'integer'),
  query('watch', 'whether changes are sent as they come', 'boolean'),
  query('allowWatchBookmarks', 'whether a watch tells from time to time which version it has reached', 'boolean'),
  query('sendInitialEvents', 'whether a watch begins with what there is', 'boolean'),
]
const DELETE = [
  DRY_RUN,
  query('gracePeriodSeconds', 'seconds the object is given to end', 'integer'),
  query('propagationPolicy', 'what happens to what it owns: Orphan, Background or Foreground'),
]

const PATCHES = ['application/json-patch+json', 'application/merge-patch+json']
const APPLY = 'application/apply-patch+yaml'
const STRATEGIC = 'application/strategic-merge-patch+json'

const NAME = 'name'

/** Everything that can be asked of a resource. */
export function operationsOf(resource: ServedResource): Operation[] {
  const root = resource.group ? `/apis/${resource.group}/${resource.version}` : `/api/${resource.version}`
  const base = resource.namespaced ? `${root}/namespaces/{namespace}/${resource.plural}` : `${root}/${resource.plural}`
  const one = `${base}/{${NAME}}`
  const readOnly = 'list' in resource
  const operations = [...collection(resource, base, readOnly), ...item(resource, one, readOnly)]
  if (resource.namespaced) operations.push(acrossNamespaces(resource, `${root}/${resource.plural}`))
  if (resource.approval) operations.push(...subresource(resource, `${one}/approval`, 'approval'))
  if (resource.status) operations.push(...subresource(resource, `${one}/status`, 'status'))
  if ('scale' in resource) operations.push(...subresource(resource, `${one}/scale`, 'scale'))
  return operations
}

type Part = Pick<Operation, 'path' | 'method' | 'action'> & Partial<Operation> & { readonly sub?: string }

function operation(resource: ServedResource, { sub, ...part }: Part): Operation {
  const { group, version, kind } = resource
  const namespaced = part.path.includes('{namespace}')
  const verbs: Readonly<Record<string, string>> = { get: 'read', post: 'create', put: 'replace' }
  const verb = verbs[part.action] ?? part.action
  return {
    id: operationId(verb, resource, { namespaced, ...(sub ? { sub } : {}) }),
    tag: tagOf(resource),
    description: `${verb} ${sub ? `${sub} of ` : ''}${kind}`,
    gvk: { group, version, kind },
    place: [
      ...(part.path.includes(`{${NAME}}`) ? [place(NAME, `name of the ${kind}`)] : []),
      ...(namespaced ? [place('namespace', 'the namespace it is in')] : []),
      PRETTY,
    ],
    query: [],
    result: componentName(resource),
    codes: [],
    ...part,
  }
}

function collection(resource: ServedResource, path: string, readOnly: boolean): Operation[] {
  const list = operation(resource, { path, method: 'get', action: 'list', query: LIST, result: listName(resource) })
  if (readOnly) return [list]
  const body = componentName(resource)
  return [
    list,
    operation(resource, { path, method: 'post', action: 'post', query: WRITE, body, codes: ['201', '202'] }),
    operation(resource, {
      path,
      method: 'delete',
      action: 'deletecollection',
      query: [...LIST, ...DELETE],
      body: `${META}.DeleteOptions`,
      result: `${META}.Status`,
    }),
  ]
}

const acrossNamespaces = (resource: ServedResource, path: string): Operation => ({
  ...operation(resource, { path, method: 'get', action: 'list', query: LIST, result: listName(resource) }),
  id: `${operationId('list', resource, { namespaced: false })}ForAllNamespaces`,
})

function item(resource: ServedResource, path: string, readOnly: boolean): Operation[] {
  const read = operation(resource, { path, method: 'get', action: 'get' })
  if (readOnly) return [read]
  return [
    read,
    ...changes(resource, path),
    operation(resource, {
      path,
      method: 'delete',
      action: 'delete',
      query: DELETE,
      body: `${META}.DeleteOptions`,
      result: `${META}.Status`,
      codes: ['202'],
    }),
  ]
}

function changes(
  resource: ServedResource,
  path: string,
  more: Partial<Operation> & { sub?: string } = {},
): Operation[] {
  // Merge keys are known for built-in kinds only; clients read from here which patch they may send.
  const patches = [APPLY, ...PATCHES, ...(resource.builtIn ? [STRATEGIC] : [])]
  const body = more.result ?? componentName(resource)
  return [
    operation(resource, { path, method: 'put', action: 'put', query: WRITE, body, codes: ['201'], ...more }),
    operation(resource, {
      path,
      method: 'patch',
      action: 'patch',
      query: [...WRITE, FORCE],
      body: `${META}.Patch`,
      patches,
      codes: ['201'],
      ...more,
    }),
  ]
}

function subresource(resource: ServedResource, path: string, sub: 'status' | 'approval' | 'scale'): Operation[] {
  const scale = { gvk: { group: 'autoscaling', version: 'v1', kind: 'Scale' }, result: SCALE }
  const more = { sub, ...(sub === 'scale' ? scale : {}) }
  return [operation(resource, { path, method: 'get', action: 'get', ...more }), ...changes(resource, path, more)]
}
