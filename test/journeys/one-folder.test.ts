import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { lockDirectory } from '#runtime'
import { clusterpulse } from '../process.ts'

let folder = ''
let calls = 0
const everybody = createServer((socket) => {
  calls++
  socket.destroy()
})
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'one-folder-'))
  await new Promise<void>((resolve) => everybody.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  everybody.close()
  await rm(folder, { recursive: true, force: true })
})

it('a second manager in one data folder ends, and asked neither Redis nor the API of the hub before', async () => {
  const { port } = everybody.address() as AddressInfo
  const kubeconfig = join(folder, 'hub.yaml')
  const named = (what: object) => [{ name: 'hub', ...what }]
  await writeFile(
    kubeconfig,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'hub' },
      clusters: named({ cluster: { server: `https://127.0.0.1:${port}` } }),
      users: named({ user: { token: 'any' } }),
      contexts: named({ context: { cluster: 'hub', user: 'hub' } }),
    }),
  )
  await using _first = await lockDirectory(join(folder, 'data', 'manager'))
  const second = clusterpulse(['manager'], {
    env: {
      ...{ DATA_DIR: join(folder, 'data'), KUBECONFIG: kubeconfig, INGESTER_ENABLED: 'false' },
      ...{ REDIS_HOST: '127.0.0.1', REDIS_PORT: String(port) },
    },
  })
  expect(await second.ended()).toBe(1)
  expect(second.stderr()).toMatch(/data\/manager is in use by process \d+ on \S+: stop that process or choose another/)
  expect(calls).toBe(0)
})
