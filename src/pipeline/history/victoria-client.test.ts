import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { VictoriaClient } from './victoria-client.ts'

it.each([401, 403])('a VictoriaMetrics that asks who the hub is refuses it (%d), and is not away', async (status) => {
  const server = createServer((_, response) => response.writeHead(status).end('missing credentials\n'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const client = new VictoriaClient(`http://127.0.0.1:${port}`, { gzip: false, importTimeoutMs: 5_000 })
    const words = new RegExp(`it refuses the hub \\(${status} missing credentials\\); the hub shows no credentials`)
    await expect(client.import('x 1')).rejects.toThrow(words)
    await expect(client.askJson('/api/v1/query', {})).rejects.toThrow(words)
    await expect(client.export('x', 0, 1).next()).rejects.toThrow(words)
  } finally {
    server.close()
  }
})
