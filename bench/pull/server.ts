/** The API server of the bench: pages rendered once, held as buffers, over TLS, in a process of its own. */
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { identity } from '../../src/platform/kube/testing/scripted-server.ts'
import { type RenderedPage, renderPages } from './fleet.ts'

const PAGE = 500
const [nodeCount, podCount] = [Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 10_000)]
const pages = renderPages(nodeCount, podCount, PAGE)
const tls = await identity()
const server = createServer({ cert: tls.cert, key: tls.key }, (request, response) => {
  const url = new URL(request.url ?? '/', 'https://x')
  const list: RenderedPage[] = url.pathname.endsWith('/pods') ? pages.pods : pages.nodes
  const page = list[Number(url.searchParams.get('continue') ?? 0) / PAGE]
  const encoding = request.headers.accept?.includes('protobuf') ? 'protobuf' : 'json'
  if (!page) return response.writeHead(404).end()
  const body = page[encoding]
  const type = encoding === 'json' ? 'application/json' : 'application/vnd.kubernetes.protobuf'
  response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body)
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  const size = (encoding: keyof RenderedPage) =>
    pages.pods.reduce((sum, page) => sum + page[encoding].length, 0) / podCount
  process.send?.({
    url: `https://127.0.0.1:${port}`,
    ca: tls.ca,
    jsonBytes: size('json'),
    protobufBytes: size('protobuf'),
  })
})
process.on('disconnect', () => process.exit(0))
