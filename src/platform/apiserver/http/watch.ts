import { stringify } from 'yaml'
import { parseVersion } from '../list.ts'
import { encodeObject, encodeWatchEvent } from '../protobuf/index.ts'
import type { Predicate } from '../selectors.ts'
import { groupVersion, type Resource, toVersion } from '../served.ts'
import { ApiError } from '../status.ts'
import type { StoreEvent } from '../store.ts'
import { tableOf } from '../tables.ts'
import type { ApiObject } from '../types.ts'
import type { Representation } from './accept.ts'
import type { Call } from './call.ts'
import { partialOf, rowObjectOf } from './respond.ts'

export interface WatchQuery {
  readonly namespace: string | undefined
  readonly matches: Predicate
  readonly resourceVersion: string
  readonly bookmarks: boolean
  readonly sendInitialEvents: boolean
  readonly timeoutMs: number
  /** @throws ApiError Forbidden where who watches may no more */
  readonly check: () => void
}

/** What a client may leave unread before it is cut off; it then resumes from its last version. */
export const MAX_UNREAD_BYTES = 8 * 1024 * 1024

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

/** What a change is to somebody who sees only what the selector matches. */
function seenAs(event: StoreEvent, matches: Predicate): EventType | undefined {
  if (event.type === 'DELETED') return matches(event.previous ?? event.object) ? 'DELETED' : undefined
  const now = matches(event.object)
  const before = event.previous !== undefined && matches(event.previous)
  if (now) return before ? 'MODIFIED' : 'ADDED'
  return before ? 'DELETED' : undefined
}

/**
 * Streams changes until the client leaves, its time is over, it reads too slowly, or may watch no more: that is looked at before
 * anything is sent.
 * @throws ApiError before anything is sent: Expired where the version asked for is forgotten, TooManyRequests
 */
export async function watchResource(
  call: Call,
  how: Representation,
  resource: Resource,
  query: WatchQuery,
): Promise<void> {
  const { server, request, user } = call
  // What this very process watches is its own to bound.
  const leave = request.socket ? server.watches.open(user) : () => undefined
  try {
    await streamed(call, how, resource, query)
  } finally {
    leave()
  }
}

async function streamed(call: Call, how: Representation, resource: Resource, query: WatchQuery): Promise<void> {
  const { server, response } = call
  const { store } = server
  const write = eventWriter(call, how, resource)
  const prefix = resource.namespaced && query.namespace ? `${query.namespace}/` : ''
  const { namespace } = query
  const matches: Predicate = prefix
    ? (object) => object.metadata.namespace === namespace && query.matches(object)
    : query.matches

  const fromNow = query.resourceVersion === '' || query.resourceVersion === '0'
  const initial = query.sendInitialEvents || fromNow
  const start = initial ? store.resourceVersion : parseVersion(query.resourceVersion)
  // Once the initial events are written nothing can fall in between: both happen in this one step.
  const first = initial ? store.list(resource.collection, prefix).filter(matches) : []

  let end: () => void = () => undefined
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  let rights = server.authorizer.version
  let isAllowed = true
  const mayStill = (): boolean => {
    if (!isAllowed || rights === server.authorizer.version) return isAllowed
    rights = server.authorizer.version
    try {
      query.check()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      isAllowed = false
      response.write(write('ERROR', undefined, error))
      end()
    }
    return isAllowed
  }
  const send = (type: EventType, object: ApiObject): void => {
    if (response.writableEnded || response.destroyed || !mayStill()) return
    response.write(write(type, object))
    if (response.writableLength <= MAX_UNREAD_BYTES) return
    server.counters.slowWatchersCut++
    response.destroy()
    end()
  }

  response.setHeader(
    'content-type',
    how.format === 'protobuf' ? 'application/vnd.kubernetes.protobuf;stream=watch' : 'application/json',
  )
  response.setHeader('cache-control', 'no-cache, private')
  const pending: [EventType, ApiObject][] = []
  let live = false
  const listener = (event: StoreEvent): void => {
    const type = seenAs(event, matches)
    if (!type) return
    // Somebody who no longer sees it gets its last state with the version at which that became so.
    const object = event.object
    if (live) send(type, object)
    else pending.push([type, object])
  }
  const unwatch = store.watch(resource.collection, start, listener)
  response.writeHead(200)
  response.flushHeaders()
  if (!unwatch) {
    response.write(
      write(
        'ERROR',
        undefined,
        new ApiError('Expired', `too old resource version: ${start} (${store.resourceVersion})`),
      ),
    )
    response.end()
    return
  }
  for (const object of first) send('ADDED', object)
  if (query.sendInitialEvents && query.bookmarks) send('BOOKMARK', bookmark(resource, start, true))
  live = true
  for (const [type, object] of pending) send(type, object)

  const remind = () => send('BOOKMARK', bookmark(resource, store.resourceVersion, false))
  const every = query.bookmarks ? setInterval(remind, server.bookmarkMs) : undefined
  const timeout = setTimeout(end, query.timeoutMs)
  response.on('close', end)
  server.closing.addEventListener('abort', end, { once: true })
  try {
    if (server.closing.aborted || response.destroyed) end()
    await over
    if (query.bookmarks && !response.destroyed) remind()
  } finally {
    unwatch()
    clearInterval(every)
    clearTimeout(timeout)
    server.closing.removeEventListener('abort', end)
    response.end()
  }
}

function bookmark(resource: Resource, version: number, initialEnd: boolean): ApiObject {
  return {
    kind: resource.kind,
    apiVersion: groupVersion(resource),
    metadata: {
      resourceVersion: String(version),
      creationTimestamp: null,
      ...(initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    },
  } as unknown as ApiObject
}

/** What was written last: of the watches of one resource, which all hear of a change in the same moment, most read the same bytes. */
const last: { object?: ApiObject | undefined; as: string; bytes: Buffer } = { as: '', bytes: Buffer.alloc(0) }

function writtenOnce(object: ApiObject, as: string, write: () => string): Buffer {
  if (last.object === object && last.as === as) return last.bytes
  last.bytes = Buffer.from(write())
  last.object = object
  last.as = as
  // Not for longer than this turn: it would keep what is deleted.
  setImmediate(forget)
  return last.bytes
}

const forget = (): void => {
  last.object = undefined
}

type EventWriter = {
  (type: EventType, object: ApiObject): string | Uint8Array
  (type: 'ERROR', object: undefined, error: ApiError): string | Uint8Array
}

function eventWriter(call: Call, how: Representation, resource: Resource): EventWriter {
  const rowObject = how.shape === 'table' ? rowObjectOf(call.query) : 'None'
  let columnsSent = false
  const shaped = (object: ApiObject): unknown => {
    if (how.shape === 'partial') return partialOf(object, how.version)
    if (how.shape !== 'table') return object
    const table = tableOf(resource, [object], {
      version: how.version,
      rowObject,
      nowMs: call.server.clock.now(),
      metadata: { resourceVersion: object.metadata.resourceVersion ?? '' },
      withoutColumns: columnsSent,
    })
    columnsSent = true
    return table
  }
  const isPlain = how.format === 'json' && how.shape === 'object'
  const as = `${resource.group}/${resource.version}/${resource.plural}`
  return (type: EventType | 'ERROR', stored: ApiObject | undefined, error?: ApiError) => {
    if (isPlain && stored)
      return writtenOnce(
        stored,
        `${type} ${as}`,
        () => `${JSON.stringify({ type, object: toVersion(resource, stored) })}\n`,
      )
    const object = stored && toVersion(resource, stored)
    if (how.format === 'protobuf') {
      // A stream cannot change its form on the way: what has no place is left out, as the original does.
      const whole = object ?? (error?.status as unknown as ApiObject)
      return encodeWatchEvent(type, encodeObject(whole, { unknown: 'skip' }))
    }
    const event = { type, object: object ? shaped(object) : error?.status }
    return how.format === 'yaml' ? `---\n${stringify(event)}` : `${JSON.stringify(event)}\n`
  }
}
