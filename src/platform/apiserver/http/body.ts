import { finished } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { isScalar, type Pair, parseDocument, visit } from 'yaml'
import { chunksOf, readBounded } from '#runtime'
import { decodeObject, ProtobufError } from '../protobuf/index.ts'
import { ApiError } from '../status.ts'
import type { ApiRequest } from './call.ts'

/** Of a request. Objects have a tighter limit; a patch may be longer than what it makes. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024

/** @throws ApiError RequestEntityTooLarge beyond the limit; the rest is not read. */
export async function readBody(request: ApiRequest): Promise<Buffer> {
  const tooLarge = () => new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`)
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge()
  const source = request.headers['content-encoding'] === 'gzip' ? inflated(request) : chunksOf(request)
  return readBounded(source, MAX_BODY_BYTES, tooLarge)
}

/** Fails with BadRequest where it is no gzip, and ends with the connection. */
function inflated(request: ApiRequest): AsyncIterable<Buffer> {
  const gunzip = createGunzip()
  finished(request, (error) => void (error && gunzip.destroy(error)))
  const refuse = (cause: Error): never => {
    throw new ApiError('BadRequest', `the body is no gzip: ${cause.message}`, undefined, { cause })
  }
  return (async function* () {
    try {
      yield* request.pipe(gunzip) as AsyncIterable<Buffer>
    } catch (error) {
      refuse(error as Error)
    } finally {
      gunzip.destroy()
    }
  })()
}

/** The media type of a request's body, without parameters. */
export const mediaType = (request: ApiRequest): string =>
  (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''

export function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new ApiError('BadRequest', `couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
}

/** JSON is YAML too. One document, with the aliases of an object of reasonable size. */
export function parseYaml(bytes: Buffer): unknown {
  const text = bytes.toString('utf8')
  const json = jsonOf(text)
  if (json) return json.value
  try {
    // The library compares each key with each other: a body full of keys would keep everybody waiting for minutes.
    const document = parseDocument(text, { uniqueKeys: false, logLevel: 'silent' })
    const [fault] = document.errors
    if (fault) throw fault
    visit(document, { Map: (_, { items }) => refuseDoubled(items) })
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new ApiError('BadRequest', `error parsing YAML: ${(error as Error).message}`)
  }
}

/** Clients send JSON as YAML, which is read far faster as what it is. */
function jsonOf(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined // YAML of another form
  }
}

function refuseDoubled(items: readonly Pair[]): void {
  const seen = new Set<unknown>()
  for (const { key } of items) {
    const name = isScalar(key) ? key.value : key
    if (seen.has(name) && name !== '<<') throw new Error(`the key ${JSON.stringify(name)} stands twice`)
    seen.add(name)
  }
}

/**
 * An object sent to be created or to replace another.
 * @throws ApiError UnsupportedMediaType, BadRequest, RequestEntityTooLarge.
 */
export async function readObject(request: ApiRequest): Promise<unknown> {
  const type = mediaType(request)
  if (type === 'application/vnd.kubernetes.protobuf') return readBinary(await readBody(request))
  if (!['', 'application/json', 'application/yaml', 'text/yaml', 'application/x-yaml'].includes(type))
    throw new ApiError(
      'UnsupportedMediaType',
      'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    )
  const bytes = await readBody(request)
  if (bytes.length === 0) return {}
  return type === '' || type === 'application/json' ? parseJson(bytes) : parseYaml(bytes)
}

/**
 * The fields of an object that is no resource, such as a question or options; none is the same as no fields.
 * @throws ApiError as `readObject`, and BadRequest for what is no object
 */
export async function readFields(request: ApiRequest): Promise<Readonly<Record<string, unknown>>> {
  const body = (await readObject(request)) ?? {}
  if (typeof body !== 'object' || Array.isArray(body)) throw new ApiError('BadRequest', 'the body is no object')
  return body as Readonly<Record<string, unknown>>
}

function readBinary(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  try {
    return decodeObject(bytes)
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error
    throw new ApiError('BadRequest', `the body is no message this server knows: ${error.message}`, undefined, {
      cause: error,
    })
  }
}
