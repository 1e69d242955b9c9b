import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { stringify } from 'yaml'
import type { ObjectPage } from '../list.ts'
import { encodeList, encodeObject, UnencodableFieldError } from '../protobuf/index.ts'
import type { Resource } from '../served.ts'
import { groupVersion } from '../served.ts'
import { ApiError } from '../status.ts'
import { tableOf } from '../tables.ts'
import type { ApiObject } from '../types.ts'
import type { Representation } from './accept.ts'
import type { Call } from './call.ts'

const compress = promisify(gzip)

/** Answers shorter than this are not worth the time to shrink them. */
const COMPRESS_FROM_BYTES = 128 * 1024

const TYPES = {
  json: 'application/json',
  yaml: 'application/yaml',
  protobuf: 'application/vnd.kubernetes.protobuf',
} as const

/** Writes an answer whole; warnings go along, long ones are compressed for those who can read it. */
export async function send(call: Call, code: number, type: string, body: Buffer | string): Promise<void> {
  const { request, response } = call
  for (const warning of call.warnings.slice(0, 20))
    response.appendHeader('warning', `299 - ${JSON.stringify(warning.replace(/[^\x20-\x7e]/g, '?'))}`)
  let bytes = typeof body === 'string' ? Buffer.from(body) : body
  response.setHeader('content-type', type)
  response.setHeader('cache-control', 'no-cache, private')
  if (bytes.length >= COMPRESS_FROM_BYTES && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
    bytes = await compress(bytes, { level: constants.Z_BEST_SPEED })
    response.setHeader('content-encoding', 'gzip')
    response.setHeader('vary', 'accept-encoding')
  }
  response.setHeader('content-length', bytes.length)
  response.writeHead(code)
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

export function sendJson(call: Call, code: number, value: unknown): Promise<void> {
  return send(call, code, TYPES.json, JSON.stringify(value))
}

export function sendText(call: Call, code: number, text: string): Promise<void> {
  return send(call, code, 'text/plain; charset=utf-8', text)
}

/** A value of no resource (a Status, a review, a Table) in the format asked for. */
export function sendValue(call: Call, code: number, representation: Representation, value: unknown): Promise<void> {
  return representation.format === 'yaml' ? send(call, code, TYPES.yaml, stringify(value)) : sendJson(call, code, value)
}

export function sendError(call: Call, error: ApiError): Promise<void> {
  const { retryAfterSeconds } = error.details ?? {}
  if (retryAfterSeconds !== undefined || error.reason === 'TooManyRequests')
    call.response.setHeader('retry-after', String(retryAfterSeconds ?? 1))
  return sendJson(call, error.httpCode, error.status)
}

export const partialOf = (object: ApiObject, version: string) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: object.metadata,
})

/** What of each object goes along with its row of a table. */
export type RowObject = 'None' | 'Metadata' | 'Object'

export function rowObjectOf(query: URLSearchParams): RowObject {
  const asked = query.get('includeObject') ?? 'Metadata'
  if (asked === 'None' || asked === 'Metadata' || asked === 'Object') return asked
  throw new ApiError('BadRequest', `unrecognized includeObject value: ${JSON.stringify(asked)}`)
}

export function sendObject(
  call: Call,
  code: number,
  how: Representation,
  resource: Resource,
  object: ApiObject,
): Promise<void> {
  if (how.shape === 'table')
    return sendValue(
      call,
      code,
      how,
      tableOf(resource, [object], {
        version: how.version,
        rowObject: rowObjectOf(call.query),
        nowMs: call.server.clock.now(),
        metadata: { resourceVersion: object.metadata.resourceVersion ?? '' },
      }),
    )
  if (how.shape === 'partial') return sendValue(call, code, how, partialOf(object, how.version))
  if (how.format === 'protobuf')
    return sendBinary(
      call,
      code,
      () => encodeObject(object),
      () => sendJson(call, code, object),
    )
  return sendValue(call, code, how, object)
}

/** An object with a field that has no number goes as JSON, to those who take it. */
function sendBinary(call: Call, code: number, encode: () => Uint8Array, otherwise: () => Promise<void>): Promise<void> {
  let bytes: Uint8Array
  try {
    bytes = encode()
  } catch (error) {
    if (!(error instanceof UnencodableFieldError) || !/json|\*\/\*/.test(String(call.request.headers.accept)))
      throw error
    call.server.logger.debug({ err: error, path: call.path }, 'an object has no binary form')
    return otherwise()
  }
  return send(call, code, TYPES.protobuf, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
}

const listMetadata = (page: ObjectPage) => ({
  resourceVersion: page.resourceVersion,
  ...(page.continue ? { continue: page.continue } : {}),
  ...(page.remaining ? { remainingItemCount: page.remaining } : {}),
})

export function sendList(call: Call, how: Representation, resource: Resource, page: ObjectPage): Promise<void> {
  const metadata = listMetadata(page)
  if (how.shape === 'table')
    return sendValue(
      call,
      200,
      how,
      tableOf(resource, page.items, {
        version: how.version,
        rowObject: rowObjectOf(call.query),
        nowMs: call.server.clock.now(),
        metadata,
      }),
    )
  if (how.shape === 'partial')
    return sendValue(call, 200, how, {
      kind: 'PartialObjectMetadataList',
      apiVersion: `meta.k8s.io/${how.version}`,
      metadata,
      items: page.items.map((object) => partialOf(object, how.version)),
    })
  if (how.format === 'protobuf')
    return sendBinary(
      call,
      200,
      () => encodeList(groupVersion(resource), resource.kind, page.items, metadata),
      () => sendList(call, { ...how, format: 'json' }, resource, page),
    )
  const head = { kind: `${resource.kind}List`, apiVersion: groupVersion(resource), metadata }
  if (how.format === 'yaml') return sendValue(call, 200, how, { ...head, items: page.items })
  // Piece by piece: the objects are the bulk, and joining texts is cheaper than one tree.
  const items = page.items.map((object) => JSON.stringify(resource.builtIn ? untyped(object) : object))
  return send(call, 200, TYPES.json, `${JSON.stringify(head).slice(0, -1)},"items":[${items.join(',')}]}\n`)
}

/** Items of built-in kinds do not repeat their type, as the API has it. */
function untyped({ apiVersion: _, kind: __, ...object }: ApiObject): object {
  return object
}
