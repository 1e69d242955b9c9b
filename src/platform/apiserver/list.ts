import type { Predicate } from './selectors.ts'
import type { Resource } from './served.ts'
import { ApiError } from './status.ts'
import type { VersionedStore } from './store.ts'
import type { ApiObject } from './types.ts'

export interface ListQuery {
  readonly namespace?: string | undefined
  readonly matches?: Predicate
  /** the one name a field selector asks for */
  readonly name?: string | undefined
  /** objects per page; 0 or absent: all */
  readonly limit?: number
  readonly continue?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly resourceVersionMatch?: string | undefined
}

/** One page, in stored form, all of it as it was at one version. */
export interface ObjectPage {
  readonly items: readonly ApiObject[]
  readonly resourceVersion: string
  readonly continue?: string
  readonly remaining?: number
}

interface Token {
  readonly v: 'meta.k8s.io/v1'
  readonly rv: number
  readonly start: string
}

const encodeToken = (rv: number, start: string): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv, start } satisfies Token)).toString('base64url')

function decodeToken(text: string): Token {
  try {
    const token = JSON.parse(Buffer.from(text, 'base64url').toString()) as Token
    if (token.v === 'meta.k8s.io/v1' && Number.isInteger(token.rv) && typeof token.start === 'string') return token
  } catch {
    // falls through: whatever it was, it is none of our tokens
  }
  throw new ApiError('BadRequest', 'invalid continue token: continue key is not valid')
}

const TOO_OLD =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

/** The list a client went on with too late; `continue` lets it go on over the present state. */
export class ContinueExpiredError extends ApiError {
  readonly continue: string

  constructor(next: string) {
    super('Expired', TOO_OLD)
    this.continue = next
  }

  override get status() {
    return { ...super.status, metadata: { continue: this.continue } }
  }
}

export function parseVersion(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new ApiError(
      'BadRequest',
      `resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a number that this server gave out`,
    )
  return Number(text)
}

export function tooLargeVersion(asked: number, current: number): ApiError {
  return new ApiError('Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

/** The version a list is to be made at; undefined for the newest. */
function exactVersion(query: ListQuery, current: number): number | undefined {
  const { resourceVersion = '', resourceVersionMatch = '' } = query
  if (resourceVersionMatch && !['Exact', 'NotOlderThan'].includes(resourceVersionMatch))
    throw invalidOptions(
      `resourceVersionMatch: Unsupported value: ${JSON.stringify(resourceVersionMatch)}: supported values: "Exact", "NotOlderThan", ""`,
    )
  if (resourceVersionMatch && resourceVersion === '')
    throw invalidOptions(
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
    )
  if (resourceVersionMatch === 'Exact' && resourceVersion === '0')
    throw invalidOptions(
      'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    )
  if (resourceVersion === '') return undefined
  const version = parseVersion(resourceVersion)
  if (version > current) throw tooLargeVersion(version, current)
  return resourceVersionMatch === 'Exact' ? version : undefined
}

const invalidOptions = (message: string): ApiError =>
  new ApiError('Invalid', `ListOptions.meta.k8s.io "" is invalid: ${message}`, {
    group: 'meta.k8s.io',
    kind: 'ListOptions',
  })

/**
 * One page of a resource.
 * @throws ApiError BadRequest for what cannot be read, Expired (410) where the version asked for is forgotten, Timeout
 * (504) where it is not reached.
 */
export function listPage(store: VersionedStore, resource: Resource, query: ListQuery): ObjectPage {
  const prefix = resource.namespaced && query.namespace ? `${query.namespace}/` : ''
  if (resource.list) {
    const items = resource
      .list()
      .filter((object) => !query.namespace || object.metadata.namespace === query.namespace)
      .filter(query.matches ?? (() => true))
    return { items, resourceVersion: String(store.resourceVersion) }
  }
  const token = query.continue ? decodeToken(query.continue) : undefined
  if (token && query.resourceVersion && query.resourceVersion !== '0')
    throw new ApiError('BadRequest', 'specifying resource version is not allowed when using continue')
  const exact = token ? (token.rv < 0 ? undefined : token.rv) : exactVersion(query, store.resourceVersion)
  const version = exact ?? store.resourceVersion
  const entries = entriesOf(store, resource, query, prefix, exact)
  if (!entries) {
    if (token) throw new ContinueExpiredError(encodeToken(-1, token.start))
    throw new ApiError('Expired', `The resourceVersion for the provided list is too old.`)
  }
  return cut(entries, query, version, token?.start)
}

function entriesOf(
  store: VersionedStore,
  resource: Resource,
  query: ListQuery,
  prefix: string,
  exact: number | undefined,
): [string, ApiObject][] | undefined {
  if (exact !== undefined) return store.entriesAt(resource.collection, prefix, exact)
  if (query.name !== undefined && (!resource.namespaced || prefix)) {
    const key = prefix + query.name
    const object = store.get(resource.collection, key)
    return object ? [[key, object]] : []
  }
  return store.entries(resource.collection, prefix)
}

function cut(
  entries: readonly [string, ApiObject][],
  query: ListQuery,
  version: number,
  start: string | undefined,
): ObjectPage {
  const limit = query.limit && query.limit > 0 ? query.limit : Number.POSITIVE_INFINITY
  const items: ApiObject[] = []
  let at = start === undefined ? 0 : entries.findIndex(([key]) => key > start)
  if (at < 0) at = entries.length
  let last = ''
  for (; at < entries.length && items.length < limit; at++) {
    const [key, object] = entries[at] ?? ['', undefined]
    last = key
    if (object && (query.matches?.(object) ?? true)) items.push(object)
  }
  const resourceVersion = String(version)
  if (at >= entries.length) return { items, resourceVersion }
  return {
    items,
    resourceVersion,
    continue: encodeToken(version, last),
    // With a selector nobody knows how many of the rest will match.
    ...(query.matches ? {} : { remaining: entries.length - at }),
  }
}
