import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onPostgres, postgresMissing } from '../../src/pipeline/sinks/testing/postgres-server.ts'
import { InventoryCluster, nameOf } from '../inventory-cluster.ts'
import { noRealApiServer } from '../real-apiserver.ts'
import { SilentProxy } from '../silent-proxy.ts'

/* One agent as built, whose API server is away for a while: a real kube-apiserver, a real PostgreSQL. */

const ROWS = 20
/** As long as a control plane of one takes to start anew, ms. */
const AWAY_MS = 19_000
/** A watch that found nobody is tried again within 5 s; the rest is for slow machines. */
const SOON_MS = 15_000
const PATIENCE_MS = 120_000

const missing = noRealApiServer() ?? postgresMissing
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(skip)(onPostgres(`an agent whose API server was away${skip ? ` (not run: ${missing})` : ''}`), () => {
  let cluster: InventoryCluster
  let proxy: SilentProxy
  const port = randomInt(10_000, 32_000)
  beforeAll(async () => {
    cluster = await InventoryCluster.open(ROWS)
    await cluster.installKinds()
    await cluster.declare()
    const { server } = cluster.api.access
    proxy = await SilentProxy.before(Number(new URL(server).port))
    const throughProxy = join(cluster.folder, 'through-proxy')
    await writeFile(throughProxy, cluster.api.kubeconfig.replace(server, `https://127.0.0.1:${proxy.port}`))
    cluster.startAgent({ HEALTH_ADDRESS: `127.0.0.1:${port}`, KUBECONFIG: throughProxy })
  }, PATIENCE_MS)
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
  })

  const health = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`)
    return (await answer.json()) as { readonly inventory?: { readonly message?: string } }
  }
  const imageOf = async (n: number) => {
    const [row] = await cluster.postgres.query<{ image: string }>(
      `select payload->'attributes'->>'image' as image from inventory where name = '${nameOf(n)}'`,
    )
    return row?.image
  }

  it(
    'follows what changes within seconds of its return, and says no longer that it is away',
    async () => {
      await expect.poll(() => cluster.written(), { timeout: PATIENCE_MS }).toMatchObject({ rows: ROWS, complete: true })
      const comeBack = await proxy.leave()
      await sleep(AWAY_MS)
      expect((await health()).inventory?.message).toContain('cannot be followed since')
      await comeBack()
      const backAt = Date.now()
      await cluster.change(7, 'later')
      await expect.poll(() => imageOf(7), { timeout: PATIENCE_MS }).toBe('shop/web:later')
      const followedMs = Date.now() - backAt
      await expect.poll(async () => (await health()).inventory, { timeout: PATIENCE_MS }).toEqual({ phase: 'running' })
      const saidMs = Date.now() - backAt
      expect(Math.max(followedMs, saidMs)).toBeLessThan(SOON_MS)
    },
    3 * PATIENCE_MS,
  )
})
