import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export interface GitServer {
  /** port on the loopback */
  readonly port: number
  /** PEM of its CA; absent for http */
  readonly ca?: string
  /** folder of the bare repository */
  readonly repository: string
  /** address of the repository; each `alias` is another address of the same one */
  url(alias?: string): string
  /** git in the repository itself */
  git(...args: readonly string[]): string
  /** the text of a file of the branch, undefined where there is none */
  show(path: string, branch?: string): string | undefined
  files(branch?: string): readonly string[]
  /** answers a request itself; returns whether it did */
  intercept: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>
  /** paths and methods of what was asked */
  readonly requests: { readonly method: string; readonly url: string; readonly authorization: string | undefined }[]
}

/** `git http-backend` behind a server that asks for a name and a password, on the loopback, with an empty repository. */
export async function startGitServer(options: {
  readonly user: string
  readonly password: string
  /** key and certificate; absent: without encryption */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** reading needs no password */
  readonly isPublic?: boolean
}): Promise<GitServer> {
  const root = await mkdtemp(join(tmpdir(), 'git-server-'))
  const repository = join(root, 'inventory.git')
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', repository, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', repository])
  git('config', 'http.receivepack', 'true')
  const expected = `Basic ${Buffer.from(`${options.user}:${options.password}`).toString('base64')}`
  const state: GitServer = {
    port: 0,
    repository,
    url: () => '',
    git,
    show: (path, branch = 'main') => {
      try {
        return execFileSync('git', ['-C', repository, 'show', `${branch}:${path}`], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
          maxBuffer: 2 ** 28,
        })
      } catch {
        return undefined
      }
    },
    files: (branch = 'main') =>
      git('ls-tree', '-r', '--name-only', branch)
        .split('\n')
        .filter((path) => path !== ''),
    intercept: () => false,
    requests: [],
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://git.test')
    const { authorization } = request.headers
    state.requests.push({ method: request.method ?? '', url: request.url ?? '', authorization })
    if (await state.intercept(request, response)) return
    const isWrite = `${url.pathname}${url.search}`.includes('git-receive-pack')
    if (authorization !== expected && (isWrite || !options.isPublic)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      return
    }
    await backend(root, url, request, response)
  }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    answer(request, response).catch(() => response.destroy())
  }
  const server = options.tls ? createServer(options.tls, listener) : createPlainServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
  })
  const { port } = server.address() as AddressInfo
  const origin = `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  return Object.assign(state, { port, url: (alias = 'git') => `${origin}/${alias}/inventory.git` })
}

/** Runs the backend for one request. The first segment of the path is of the address alone. */
async function backend(root: string, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const child = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      PATH_INFO: url.pathname.replace(/^\/[^/]+/, ''),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REMOTE_USER: 'somebody',
      REMOTE_ADDR: '127.0.0.1',
    },
  })
  request.pipe(child.stdin)
  child.stdin.on('error', () => request.resume())
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    if (head === undefined) {
      response.write(chunk)
      continue
    }
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) continue
    const lines = head.subarray(0, end).toString().split('\r\n')
    const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s) as [string, string]))
    const { Status: status = '200', ...rest } = headers
    response.writeHead(Number.parseInt(status, 10), rest)
    response.write(head.subarray(end + 4))
    head = undefined
  }
  response.end()
}
