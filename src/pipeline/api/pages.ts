import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Body, bufferBody } from './bodies.ts'
import { pagePolicy } from './gate.ts'
import { RefusedError } from './problem.ts'
import { acceptsGzip } from './route.ts'

interface PageFile {
  readonly type: string
  readonly body: Body
  /** its name holds a hash of its content */
  readonly immutable: boolean
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.txt': 'text/plain; charset=utf-8',
}

const maxBytes = 64 * 2 ** 20
const hashed = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/

/** The built page, held in memory: a path that is no key of this map reaches no disk. */
type Files = ReadonlyMap<string, PageFile>

/** At once: a hundred files, read in turns with what a start writes to disk, would take half a minute on a busy machine. */
function readFiles(root: string): Files {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
  const contents = new Map<string, Buffer>()
  let total = 0
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const content = readFileSync(path)
    total += content.length
    if (total > maxBytes) throw new Error(`${root} holds more than ${maxBytes} bytes: this is no built page`)
    contents.set(`/${relative(root, path).split(sep).join('/')}`, content)
  }
  const files = new Map<string, PageFile>()
  for (const [path, content] of contents) {
    const type = types[extname(path)]
    if (!type) continue
    files.set(path, {
      type,
      body: fileBody(content, contents.get(`${path}.gz`)),
      immutable: hashed.test(path) && !path.endsWith('.html'),
    })
  }
  return files
}

function fileBody(content: Buffer, packed: Buffer | undefined): Body {
  const body = bufferBody(content)
  return packed ? { ...body, gzipped: async () => packed } : body
}

const missing = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>ClusterPulse</title>
<h1>The page is not built yet</h1>
<p>The API answers under <a href="/api/v1/openapi.json">/api/v1</a>. To build the page, run:</p>
<pre>npm run build</pre>
</html>
`

/** Answers everything that is no route of the API. */
export class Pages {
  readonly #root: string | undefined
  #files: Files | undefined

  constructor(root: string | undefined) {
    this.#root = root
  }

  /** @throws RefusedError where there is no such file and the path names one */
  async serve(request: FastifyRequest, reply: FastifyReply, path: string): Promise<FastifyReply> {
    reply.header('content-security-policy', pagePolicy).header('vary', 'Accept-Encoding')
    const files = this.#read()
    if (!files) {
      reply.header('cache-control', 'no-store').type('text/html; charset=utf-8')
      return reply.code(path === '/' ? 200 : 404).send(missing)
    }
    const file = files.get(path) ?? (isPage(path) ? files.get('/index.html') : undefined)
    if (!file) throw new RefusedError('route_not_found', `there is no ${path} here`)
    return send(request, reply, file)
  }

  /** Read once; looked for again as long as there is none, so that a build needs no restart. */
  #read(): Files | undefined {
    if (this.#root === undefined || (!this.#files && !existsSync(join(this.#root, 'index.html')))) return undefined
    this.#files ??= readFiles(this.#root)
    return this.#files
  }
}

// The page has routes of its own (/clusters/west); what ends like a file is a file. Cluster names hold dots, so only
// endings that we serve count as such.
const isPage = (path: string): boolean => types[extname(path)] === undefined || path.startsWith('/clusters/')

async function send(request: FastifyRequest, reply: FastifyReply, { type, body, immutable }: PageFile) {
  reply.header('cache-control', immutable ? 'public, max-age=31536000, immutable' : 'no-cache').type(type)
  const packed = body.plain.length > 1024 && acceptsGzip(request.headers['accept-encoding'])
  const etag = `"${body.etag}${packed ? '-gzip' : ''}"`
  reply.header('etag', etag)
  if (request.headers['if-none-match'] === etag) return reply.code(304).send()
  if (!packed) return reply.send(body.plain)
  return reply.header('content-encoding', 'gzip').send(await body.gzipped())
}
