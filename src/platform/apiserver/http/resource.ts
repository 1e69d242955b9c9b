import { randomInt } from 'node:crypto'
import type { DeleteOptions, ObjectKey } from '../objects.ts'
import { applyPatch, readPatch } from '../patching.ts'
import { canEncode } from '../protobuf/index.ts'
import { answerReview, reviewKinds } from '../reviews.ts'
import { type Predicate, parseFieldSelector, parseLabelSelector } from '../selectors.ts'
import { groupVersion, type Resource } from '../served.ts'
import type { TokenRequest } from '../service-account-tokens.ts'
import { ApiError, notFound } from '../status.ts'
import type { ApiObject, Subresource } from '../types.ts'
import type { WriteOptions } from '../write-rules.ts'
import { negotiate, type Representation } from './accept.ts'
import { checkAccess, guardOf, isTrue, type Target } from './authorize.ts'
import { mediaType, readBody, readFields, readObject } from './body.ts'
import { addressOf, type Call } from './call.ts'
import { sendList, sendObject, sendValue } from './respond.ts'
import { watchResource } from './watch.ts'

/** Splits the path below `/api/v1` or `/apis/{group}/{version}`. */
export function targetOf(group: string, version: string, rest: readonly string[]): Target | undefined {
  const at = (
    plural: string | undefined,
    namespace: string | undefined,
    more: readonly string[],
  ): Target | undefined =>
    plural && more.length <= 2
      ? { group, version, plural, namespace, name: more[0] || undefined, subresource: more[1] || undefined }
      : undefined
  const [first, namespace, plural, ...more] = rest
  const ofNamespace = plural === undefined || plural === 'status' || plural === 'finalize'
  if (first === 'namespaces' && !ofNamespace) return at(plural, namespace, more)
  return at(first, undefined, rest.slice(1))
}

const notServed = (): ApiError => new ApiError('NotFound', 'the server could not find the requested resource', {})
const notAllowed = (): ApiError =>
  new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {})

export async function handleResource(call: Call, target: Target): Promise<void> {
  checkAccess(call, target)
  const review = reviewKinds.find(
    ({ group, version, plural }) => group === target.group && version === target.version && plural === target.plural,
  )
  if (review) return handleReview(call, review.kind, target)
  const resource = call.server.served.get(target)
  if (!resource) throw notServed()
  if (call.request.method === 'HEAD') throw notAllowed()
  if (target.namespace !== undefined && !resource.namespaced) throw notServed()
  if (resource.deprecationWarning) call.warnings.push(resource.deprecationWarning)
  if (isAskedToRun(call, resource, target)) call.warnings.push(runsNothing(resource.kind))
  if (resource.inert && isWrite(call, target)) call.warnings.push(doesNothing(resource.kind))
  if (target.name === undefined) return handleCollection(call, resource, target)
  if (resource.namespaced && target.namespace === undefined) throw notServed()
  return handleOne(call, resource, { ...target, name: target.name })
}

const workloads = new Set([
  '/pods',
  '/replicationcontrollers',
  'apps/deployments',
  'apps/replicasets',
  'apps/daemonsets',
  'apps/statefulsets',
  'batch/jobs',
  'batch/cronjobs',
])

const isWrite = ({ method }: Call, { subresource }: Target): boolean =>
  subresource === undefined && /^(POST|PUT|PATCH)$/.test(method)

const isAskedToRun = (call: Call, { collection }: Resource, target: Target): boolean =>
  !call.server.runsWorkloads && isWrite(call, target) && workloads.has(collection)

const runsNothing = (kind: string): string =>
  `this API server keeps the ${kind} and runs nothing: no controller and no node here starts its pods`

const doesNothing = (kind: string): string =>
  `this API server keeps the ${kind} and does not act on it: nothing is limited, allowed or refused by it here`

async function handleReview(call: Call, kind: string, target: Target): Promise<void> {
  if (call.method !== 'POST') throw notAllowed()
  const how = negotiate(call.request.headers.accept, { protobuf: false, shapes: false })
  const body = await readFields(call.request)
  const answer = answerReview(
    kind,
    { kind, apiVersion: groupVersion(target), metadata: {}, ...body },
    call,
    target.namespace,
  )
  return sendValue(call, 201, how, answer)
}

const representation = (call: Call, resource: Resource): Representation =>
  negotiate(call.request.headers.accept, { protobuf: canEncode(groupVersion(resource), resource.kind), shapes: true })

async function handleCollection(call: Call, resource: Resource, target: Target): Promise<void> {
  const { namespace } = target
  const how = representation(call, resource)
  switch (call.method) {
    case 'GET':
      return isTrue(call.query.get('watch')) && !resource.list
        ? watchResource(call, how, resource, {
            ...watchQuery(call, resource, namespace),
            check: () => checkAccess(call, target),
          })
        : sendList(call, how, resource, call.server.objects.page(resource, listQuery(call, resource, namespace)))
    case 'POST': {
      if (resource.namespaced && namespace === undefined) throw notAllowed()
      const object = await call.server.objects.createIn(
        resource,
        namespace,
        await readObject(call.request),
        writeOptions(call, target, resource),
      )
      return sendObject(call, 201, how, resource, object)
    }
    case 'DELETE': {
      if ((resource.namespaced && namespace === undefined) || resource.collection === '/namespaces') throw notAllowed()
      const { matches } = selectors(call, resource)
      const options = await deleteOptions(call, resource)
      const items = await call.server.objects.removeAll(
        resource,
        { namespace, matches: matches ?? (() => true) },
        options,
      )
      return sendList(call, how, resource, { items, resourceVersion: call.server.objects.resourceVersion })
    }
    default:
      throw notAllowed()
  }
}

async function handleOne(call: Call, resource: Resource, target: Target & { readonly name: string }): Promise<void> {
  const { subresource } = target
  const key = { name: target.name, namespace: target.namespace }
  const how = representation(call, resource)
  const { objects } = call.server
  if (subresource === 'finalize' && resource.collection === '/namespaces' && call.method === 'PUT') {
    const { finalizers = [] } = ((await readFields(call.request)).spec ?? {}) as { finalizers?: unknown }
    if (!isTexts(finalizers)) throw new ApiError('BadRequest', 'spec.finalizers is no list of texts')
    return sendObject(call, 200, how, resource, await objects.finalizeNamespace(key.name, finalizers))
  }
  if (subresource === 'token' && resource.collection === '/serviceaccounts') return handleToken(call, how, target)
  if (subresource === 'scale' && resource.scale) return handleScale(call, how, resource, target)
  const part = partOf(resource, subresource)
  if (subresource !== undefined && part === undefined) throw notServed()
  const options: WriteOptions = { ...writeOptions(call, target, resource), ...(part ? { subresource: part } : {}) }
  switch (call.method) {
    case 'GET': {
      const found = objects.read(resource, key)
      if (!found) throw notFound(resource, key.name)
      return sendObject(call, 200, how, resource, found)
    }
    case 'PUT': {
      const body = await readObject(call.request)
      const { object, created } = await objects.change(resource, key, () => body as ApiObject, options)
      return sendObject(call, created ? 201 : 200, how, resource, object)
    }
    case 'PATCH':
      return handlePatch(call, how, resource, key, options)
    case 'DELETE': {
      if (subresource) throw notAllowed()
      const result = await objects.remove(resource, key, await deleteOptions(call, resource))
      if (result.kind === 'gone' && resource.collection !== '/pods') return sendValue(call, 200, how, result.status)
      return sendObject(call, 200, how, resource, result.object)
    }
    default:
      throw notAllowed()
  }
}

function partOf({ status, approval }: Resource, subresource: string | undefined): Subresource | undefined {
  if (subresource === 'status') return status ? subresource : undefined
  return subresource === 'approval' && approval ? subresource : undefined
}

async function handlePatch(
  call: Call,
  how: Representation,
  resource: Resource,
  key: ObjectKey,
  options: WriteOptions,
): Promise<void> {
  const type = mediaType(call.request)
  const patch = readPatch(resource, type, await readBody(call.request))
  const given = call.query.get('fieldManager')
  if (patch.kind === 'apply' && !given)
    throw new ApiError(
      'Invalid',
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
      {
        group: 'meta.k8s.io',
        kind: 'PatchOptions',
        causes: [
          {
            reason: 'FieldValueRequired',
            message: 'Required value: is required for apply patch',
            field: 'fieldManager',
          },
        ],
      },
    )
  const force = isTrue(call.query.get('force'))
  const nowMs = call.server.clock.now()
  const { object, created } = await call.server.objects.change(
    resource,
    key,
    (live) => applyPatch(resource, key, live, patch, { ...options, force, nowMs }),
    {
      ...options,
      managed: patch.kind === 'apply',
      patched: patch.kind !== 'apply',
      createMissing: patch.kind === 'apply' && !options.subresource,
    },
  )
  return sendObject(call, created ? 201 : 200, how, resource, object)
}

async function handleToken(call: Call, how: Representation, target: Target & { readonly name: string }): Promise<void> {
  if (call.method !== 'POST') throw notAllowed()
  const asked = (await readFields(call.request)) as TokenRequest
  const answer = await call.server.tokens.issue(
    { name: target.name, namespace: target.namespace },
    asked,
    writeOptions(call, target).dryRun === true,
  )
  return sendValue(call, 201, how, answer)
}

function atPath(object: ApiObject, path: string): unknown {
  return path
    .split('.')
    .filter(Boolean)
    .reduce<unknown>((value, field) => (value as Record<string, unknown> | undefined)?.[field], object)
}

function withPath(object: ApiObject, path: string, value: unknown): ApiObject {
  const [first = '', ...rest] = path.split('.').filter(Boolean)
  const set = (target: unknown, [field = '', ...more]: readonly string[]): unknown => ({
    ...(target as object | undefined),
    [field]: more.length > 0 ? set((target as Record<string, unknown> | undefined)?.[field], more) : value,
  })
  return set(object, [first, ...rest]) as ApiObject
}

/** The selector of a workload as the one text that scalers ask pods with. */
function labelsOfSelector({ spec }: ApiObject): string | undefined {
  const labels = (spec as { selector?: { matchLabels?: Record<string, string> } } | undefined)?.selector?.matchLabels
  return (
    labels &&
    Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(',')
  )
}

async function handleScale(
  call: Call,
  how: Representation,
  resource: Resource,
  target: Target & { readonly name: string },
): Promise<void> {
  const key = { name: target.name, namespace: target.namespace }
  const paths = resource.scale
  if (!paths) throw notServed()
  const scaleOf = (object: ApiObject): ApiObject => {
    const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
    const selector = paths.labelSelectorPath ? atPath(object, paths.labelSelectorPath) : labelsOfSelector(object)
    return JSON.parse(
      JSON.stringify({
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
        spec: { replicas: atPath(object, paths.specReplicasPath) ?? 0 },
        status: {
          replicas: atPath(object, paths.statusReplicasPath) ?? 0,
          ...(typeof selector === 'string' ? { selector } : {}),
        },
      }),
    ) as ApiObject
  }
  const { objects } = call.server
  if (call.method === 'GET') {
    const found = objects.read(resource, key)
    if (!found) throw notFound(resource, key.name)
    return sendValue(call, 200, how, scaleOf(found))
  }
  if (call.method !== 'PUT' && call.method !== 'PATCH') throw notAllowed()
  const next =
    call.method === 'PUT'
      ? await readObject(call.request).then((body) => () => body as ApiObject)
      : (
          (patch) => (scale: ApiObject) =>
            applyPatch({ ...resource, builtIn: true }, key, scale, patch, {
              nowMs: call.server.clock.now(),
              force: false,
            })
        )(readPatch({ ...resource, builtIn: true }, mediaType(call.request), await readBody(call.request)))
  const { object } = await objects.change(
    resource,
    key,
    (live) => {
      if (!live) throw notFound(resource, key.name)
      const scale = next(scaleOf(live))
      const { resourceVersion } = scale.metadata
      const wanted = withPath(
        live,
        paths.specReplicasPath,
        (scale.spec as { replicas?: number } | undefined)?.replicas ?? 0,
      )
      return { ...wanted, metadata: { ...wanted.metadata, ...(resourceVersion ? { resourceVersion } : {}) } }
    },
    writeOptions(call, target, resource),
  )
  return sendValue(call, 200, how, scaleOf(object))
}

function writeOptions(call: Call, target: Target, resource?: Resource): WriteOptions {
  const { query, request } = call
  const kind = { POST: 'CreateOptions', PUT: 'UpdateOptions', PATCH: 'PatchOptions' }[call.method] ?? 'UpdateOptions'
  const dryRun = query.getAll('dryRun')
  checkDryRun(dryRun, kind)
  const fieldValidation = query.get('fieldValidation') || 'Warn'
  if (fieldValidation !== 'Strict' && fieldValidation !== 'Warn' && fieldValidation !== 'Ignore')
    throw unsupportedOption(kind, 'fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn'])
  const agent = String(request.headers['user-agent'] ?? '').split('/')[0] ?? ''
  const { subresource } = target
  const write = { id: call.id, address: addressOf(call), user: call.user, subresource, dryRun: dryRun.length > 0 }
  return {
    dryRun: write.dryRun,
    fieldValidation,
    fieldManager: query.get('fieldManager') || agent || 'unknown',
    warnings: call.warnings,
    user: call.user,
    guard: guardOf(call, target),
    ...(resource && { admission: call.server.admission.of(resource, write) }),
  }
}

function unsupportedOption(kind: string, field: string, value: unknown, supported: readonly string[]): ApiError {
  const known = supported.map((each) => JSON.stringify(each)).join(', ')
  const message = `Unsupported value: ${JSON.stringify(value)}: supported values: ${known}`
  return new ApiError('Invalid', `${kind}.meta.k8s.io "" is invalid: ${field}: ${message}`, {
    group: 'meta.k8s.io',
    kind,
    causes: [{ reason: 'FieldValueNotSupported', message, field }],
  })
}

function checkDryRun(values: readonly unknown[], kind: string): void {
  if (values.some((each) => each !== 'All')) throw unsupportedOption(kind, 'dryRun', values, ['All'])
}

const POLICIES = ['Foreground', 'Background', 'Orphan']

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

async function deleteOptions(call: Call, resource: Resource): Promise<DeleteOptions> {
  const body = (await readFields(call.request)) as DeleteOptions & { dryRun?: unknown }
  const policy = call.query.get('propagationPolicy') ?? body.propagationPolicy
  if (policy && !POLICIES.includes(policy))
    throw unsupportedOption('DeleteOptions', 'propagationPolicy', policy, [...POLICIES, 'nil'])
  const dryRun: unknown[] = [...call.query.getAll('dryRun'), ...(Array.isArray(body.dryRun) ? body.dryRun : [])]
  checkDryRun(dryRun, 'DeleteOptions')
  return {
    ...(body.preconditions ? { preconditions: body.preconditions } : {}),
    dryRun: dryRun.length > 0,
    ...(policy ? { propagationPolicy: policy } : {}),
    admission: call.server.admission.of(resource, {
      ...{ id: call.id, address: addressOf(call), user: call.user, dryRun: dryRun.length > 0 },
    }),
  }
}

function selectors(call: Call, resource: Resource): { matches: Predicate | undefined; name: string | undefined } {
  const labels = call.query.get('labelSelector') ?? ''
  const fields = call.query.get('fieldSelector') ?? ''
  const byField = fields ? parseFieldSelector(fields, resource.fields) : undefined
  const byLabel = labels ? parseLabelSelector(labels) : undefined
  if (!byField && !byLabel) return { matches: undefined, name: undefined }
  const matches: Predicate = (object) => (byLabel?.(object) ?? true) && (byField?.matches(object) ?? true)
  return { matches, name: byField?.name }
}

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (!text) return undefined
  if (!/^-?\d+$/.test(text))
    throw new ApiError('BadRequest', `strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  return Number(text)
}

function listQuery(call: Call, resource: Resource, namespace: string | undefined) {
  const { query } = call
  const { matches, name } = selectors(call, resource)
  const limit = numberOf(query, 'limit')
  return {
    namespace,
    ...(matches ? { matches } : {}),
    name,
    ...(limit ? { limit } : {}),
    continue: query.get('continue') || undefined,
    resourceVersion: query.get('resourceVersion') || undefined,
    resourceVersionMatch: query.get('resourceVersionMatch') || undefined,
  }
}

/** A longer timer would ring at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

function watchQuery(call: Call, resource: Resource, namespace: string | undefined) {
  const { query } = call
  const { matches } = selectors(call, resource)
  const timeoutSeconds = numberOf(query, 'timeoutSeconds') || randomInt(1800, 3600)
  const sendInitialEvents = query.has('sendInitialEvents') && isTrue(query.get('sendInitialEvents'))
  if (query.has('sendInitialEvents') && query.get('resourceVersionMatch') !== 'NotOlderThan')
    throw new ApiError(
      'Invalid',
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
      { group: 'meta.k8s.io', kind: 'ListOptions' },
    )
  return {
    namespace,
    matches: matches ?? (() => true),
    resourceVersion: query.get('resourceVersion') ?? '',
    bookmarks: isTrue(query.get('allowWatchBookmarks')),
    sendInitialEvents,
    timeoutMs: Math.min(timeoutSeconds * 1000, LONGEST_TIMER_MS),
  }
}
