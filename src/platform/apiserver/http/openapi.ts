import { createHash } from 'node:crypto'
import { openapiV2, openapiV2Protobuf, openapiV3, openapiV3Index } from '../openapi/index.ts'
import type { ServerParts } from '../server-parts.ts'
import { ApiError } from '../status.ts'
import type { Call } from './call.ts'
import { send, sendText } from './respond.ts'

interface Document {
  readonly bytes: Buffer
  readonly etag: string
}

interface Format {
  readonly type: string
  readonly binary: boolean
  /** how clients ask for it */
  readonly asked: readonly string[]
}

const JSON_FORMAT: Format = {
  type: 'application/json',
  binary: false,
  asked: ['application/json', 'application/*', '*/*'],
}
/** Clients say `@` where the type itself has a dot. */
const BINARY_V2: Format = {
  type: 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  binary: true,
  asked: [
    'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
    'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  ],
}

/** The first format the client asks for that there is. @throws ApiError NotAcceptable */
function formatFor(accept: string | undefined, formats: readonly Format[]): Format {
  if (!accept) return JSON_FORMAT
  for (const part of accept.split(',')) {
    const type = part.split(';')[0]?.trim().toLowerCase() ?? ''
    const found = formats.find(({ asked }) => asked.includes(type))
    if (found) return found
  }
  throw new ApiError('NotAcceptable', `only ${formats.map(({ type }) => type).join(' and ')} are offered`, {})
}

/** Answers below /openapi. A client that has the document already is told so. */
export function handleOpenapi(call: Call, rest: readonly string[]): Promise<void> {
  const [kind, ...path] = rest
  const format = formatFor(call.request.headers.accept, kind === 'v2' ? [JSON_FORMAT, BINARY_V2] : [JSON_FORMAT])
  const document = documentOf(call.server, call.prefix, kind ?? '', path, format)
  if (!document) return sendText(call, 404, '404 page not found\n')
  call.response.setHeader('etag', document.etag)
  call.response.setHeader('vary', 'accept')
  if (call.request.headers['if-none-match'] === document.etag) {
    call.response.writeHead(304)
    call.response.end()
    return Promise.resolve()
  }
  return send(call, 200, format.type, document.bytes)
}

/** The documents of one set of resources are made once: they are long, and clients ask for them again and again. */
const documents = new WeakMap<ServerParts, { revision: number; readonly kept: Map<string, Document> }>()

function documentOf(
  server: ServerParts,
  prefix: string,
  kind: string,
  path: readonly string[],
  { binary }: Format,
): Document | undefined {
  const { revision } = server.served
  let current = documents.get(server)
  if (current?.revision !== revision) {
    current = { revision, kept: new Map() }
    documents.set(server, current)
  }
  const id = [kind, prefix, binary, ...path].join(' ')
  const known = current.kept.get(id)
  if (known) return known
  const made = make(server, prefix, kind, path)
  if (!made) return undefined
  const bytes = binary ? openapiV2Protobuf(made) : Buffer.from(JSON.stringify(made))
  const document = { bytes, etag: `"${createHash('sha256').update(bytes).digest('hex').toUpperCase()}"` }
  current.kept.set(id, document)
  return document
}

function make(server: ServerParts, prefix: string, kind: string, path: readonly string[]): object | undefined {
  const resources = server.served.all()
  const [root, ...names] = path
  const [group = '', version = '', more] = root === 'api' ? ['', ...names] : names
  if (kind === 'v2' && root === undefined) return openapiV2(resources)
  if (kind !== 'v3') return undefined
  if (root === undefined) return openapiV3Index(resources, prefix)
  return (root === 'api' || root === 'apis') && more === undefined ? openapiV3(group, version, resources) : undefined
}
