import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openEvents } from '#events'
import { Ingester } from '#ingest'
import { type ClusterName, type ConnectionFacts, ownerOf, parseClusterName } from '#model'
import { openLog, silentLogger } from '#runtime'
import { RedisStateStore } from '#state'
import { redisMissing, startRedis, type TestRedis } from '../../pipeline/state/test/redis-server.ts'
import { type Division, dividedAmong } from './division.ts'

const facts: ConnectionFacts = {
  displayName: '',
  endpoint: '',
  labels: {},
  mode: 'push',
  intervalMs: 30_000,
  timeoutMs: 5_000,
  insecureSkipTlsVerify: false,
  credentialsRef: { name: '', namespace: '' },
}
const clusters = ['west', 'east', 'north', 'south', 'edge-1', 'edge-2'].map(parseClusterName)
const ORIGIN = 'an-agent'

describe.skipIf(redisMissing !== undefined)(
  `clusters divided among owners${redisMissing ? ` (${redisMissing})` : ''}`,
  () => {
    let redis: TestRedis
    let eyes: Redis
    let dataDir: string
    beforeAll(async () => {
      redis = await startRedis()
      eyes = new Redis({ host: redis.host, port: redis.port })
    })
    afterAll(async () => {
      eyes?.disconnect()
      await redis?.[Symbol.asyncDispose]()
    })
    beforeEach(async () => {
      await eyes.flushall()
      dataDir = await mkdtemp(join(tmpdir(), 'division-'))
      return () => rm(dataDir, { recursive: true, force: true })
    })

    const among = (of: number): Promise<Division> =>
      dividedAmong({
        dataDir,
        of,
        redis: { host: redis.host, port: redis.port },
        withHistory: false,
        version: '1.0.0',
        claimFolder: async () => undefined,
        logMaxBytes: 2 ** 30,
        logger: silentLogger,
      })

    /** Runs the owners of a division, one after the other. */
    async function owned(
      { owners }: Division,
      what: (ingester: Ingester, cluster: ClusterName) => Promise<void>,
    ): Promise<void> {
      for (const [i, folders] of owners.entries()) {
        const owner = { index: i + 1, of: owners.length }
        const log = await openLog({ directory: folders.log })
        const state = await RedisStateStore.open({
          connection: { host: redis.host, port: redis.port },
          logId: log.id,
          owner,
        })
        const ingester = await Ingester.open({ log, state, events: openEvents({ kind: 'in-process' }) })
        for (const cluster of clusters)
          if (ownerOf(cluster, owners.length) === owner.index) await what(ingester, cluster)
        await ingester.flushed()
        await ingester[Symbol.asyncDispose]()
        await state[Symbol.asyncDispose]()
        await log[Symbol.asyncDispose]()
      }
    }

    const take = (sequence: number) => async (ingester: Ingester, cluster: ClusterName) => {
      await ingester.connect(cluster, facts)
      const batch = {
        cluster,
        source: 'push' as const,
        origin: ORIGIN,
        sequence,
        collectedAt: Date.now() - 60_000 + sequence,
        durationMs: 1,
        parts: [],
      }
      expect(await ingester.accept({ batch })).toEqual({ sequence, duplicate: false })
    }
    const hasReceived = (upTo: number) => async (ingester: Ingester, cluster: ClusterName) => {
      expect([cluster, ingester.received(cluster, ORIGIN)]).toEqual([cluster, [[1, upTo]]])
      expect(ingester.knows(cluster)).toBe(true)
    }
    const foldersOfOwners = async () => (await readdir(dataDir)).filter((name) => name.startsWith('owners-'))

    it('leave the folder of one process as it is', async () => {
      const { owners } = await among(1)
      expect(owners).toEqual([{ log: join(dataDir, 'log'), history: join(dataDir, 'history') }])
      expect(await readdir(dataDir)).not.toContain('owners.json')
    })

    it('take with them what was received, whatever their number becomes, and leave one folder behind', async () => {
      await owned(await among(1), take(1))
      let upTo = 1
      for (const of of [3, 2, 1, 4]) {
        const division = await among(of)
        expect(division.owners).toHaveLength(of)
        await owned(division, hasReceived(upTo))
        upTo++
        await owned(division, take(upTo))
        expect(await foldersOfOwners()).toHaveLength(1)
        expect(await readdir(dataDir)).not.toContain('log')
        expect(await eyes.hget('clusterpulse:owners', 'count')).toBe(String(of))
        // An owner without a cluster has none.
        expect(await eyes.hlen('clusterpulse:positions')).toBeLessThanOrEqual(of)
      }
      expect((await eyes.smembers('clusterpulse:clusters')).sort()).toEqual([...clusters].sort())
    })

    it('stay as they were where it cannot be said which folder counts, and are divided at the next try', async () => {
      await owned(await among(2), take(1))
      const before = await readFile(join(dataDir, 'owners.json'), 'utf8')
      // A disk that takes logs, and not this one file.
      await mkdir(join(dataDir, 'owners.json.new'))
      await expect(among(3)).rejects.toMatchObject({ code: 'EISDIR' })
      expect(await readFile(join(dataDir, 'owners.json'), 'utf8')).toBe(before)
      // The former number is as good as the new one.
      await owned(await among(2), hasReceived(1))
      await owned(await among(2), take(2))
      await rm(join(dataDir, 'owners.json.new'), { recursive: true })
      await owned(await among(3), hasReceived(2))
      expect(await foldersOfOwners()).toHaveLength(1)
    })

    it('are not looked for where Redis does not answer', async () => {
      await owned(await among(1), take(1))
      await redis.kill()
      await expect(among(2)).rejects.toMatchObject({ code: 'store_unavailable', retryable: true })
      await redis.start()
      // It came back empty: the log says what it still has.
      await owned(await among(2), hasReceived(1))
      expect((await eyes.smembers('clusterpulse:clusters')).sort()).toEqual([...clusters].sort())
    })

    it('are not guessed where the file that names their folders is damaged: nothing is removed', async () => {
      await owned(await among(2), take(1))
      const kept = await foldersOfOwners()
      for (const text of ['{"of":2,', '{"of":2,"folder":"../other"}', '{"of":0,"folder":"owners-00000000"}', 'null']) {
        await writeFile(join(dataDir, 'owners.json'), text)
        await expect(among(3)).rejects.toMatchObject({ code: 'division_unreadable', retryable: false })
        expect(await foldersOfOwners()).toEqual(kept)
      }
    })
  },
)
