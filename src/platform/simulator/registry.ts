import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a simulated registry holds, and how it behaves. */
export interface SimulatedRegistryOptions {
  /** names of its repositories, in order */
  readonly repositories: readonly string[]
  /** how long an answer takes, ms */
  readonly delayMs?: () => number
}

/** A registry that answers the API of container registries. */
export interface SimulatedRegistry extends AsyncDisposable {
  /** such as http://127.0.0.1:40123 */
  readonly url: string
}

const PAGE = 100

/** A container registry as far as a probe asks: its version and its catalogue in pages, without images. On loopback. */
export async function simulateRegistry({
  repositories,
  delayMs = () => 3 + Math.random() * 12,
}: SimulatedRegistryOptions): Promise<SimulatedRegistry> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://registry')
    response.setHeader('docker-distribution-api-version', 'registry/2.0')
    setTimeout(() => {
      if (pathname === '/v2/' || pathname === '/v2') json(response, 200, {})
      else if (pathname === '/v2/_catalog') catalogue(response, repositories, searchParams)
      else json(response, 404, { errors: [{ code: 'NOT_FOUND', message: 'there are no images here' }] })
    }, delayMs())
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function catalogue(response: ServerResponse, all: readonly string[], query: URLSearchParams): void {
  const count = Math.min(Number(query.get('n')) || PAGE, PAGE)
  const after = query.get('last')
  const start = after === null ? 0 : all.indexOf(after) + 1
  const page = all.slice(start, start + count)
  const last = page.at(-1)
  if (last !== undefined && start + count < all.length) {
    response.setHeader('link', `</v2/_catalog?n=${count}&last=${encodeURIComponent(last)}>; rel="next"`)
  }
  json(response, 200, { repositories: page })
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
