import { createReadStream, existsSync } from 'node:fs'
import { request as ask, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

/** The page as it was just built, before the API of a real hub: what a hub that was built with it would serve. */
export async function pageBefore(hub: string, root: string): Promise<{ readonly address: string } & AsyncDisposable> {
  const { hostname, port } = new URL(hub)
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    if (!path.startsWith('/api/')) {
      const file = join(root, path.split('?')[0]?.replaceAll('..', '') ?? '')
      const found = extname(file) !== '' && existsSync(file) ? file : join(root, 'index.html')
      response.writeHead(200, { 'content-type': types[extname(found)] ?? 'application/octet-stream' })
      createReadStream(found).pipe(response)
      return
    }
    const { origin: _origin, referer: _referer, ...headers } = request.headers
    const onward = ask(
      { hostname, port, path, method: request.method, headers: { ...headers, host: `${hostname}:${port}` } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
