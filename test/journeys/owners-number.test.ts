import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { victoriaMissing } from '../../src/pipeline/history/testing/victoria-metrics.ts'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { type ManagerRun, OwnedFleet, ownerIn, SLOW_MS } from '../owned-fleet.ts'
import { eventually } from '../process.ts'

const missing = redisMissing ?? victoriaMissing()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

/** The same data folder under managers of 3, 2, 1 and 3 processes; agents push all the while. */
describe.skipIf(why !== undefined)(
  `a hub whose owners become fewer and more${why === undefined ? '' : ` (not run: ${why})`}`,
  { tags: ['long'] },
  () => {
    let fleet: OwnedFleet
    let manager: ManagerRun

    beforeAll(async () => {
      fleet = await OwnedFleet.open({ realApi: false, withHistory: true })
      manager = await fleet.manager({ processes: 3 })
      await manager.ready()
      fleet.startAgent()
      fleet.beginPushing()
    })
    afterEach(({ task }) => {
      if (task.result?.state === 'fail')
        process.stderr.write(`the manager at "${task.name}":\n${manager?.run.stderr().slice(-8000)}\n`)
    })
    afterAll(async () => {
      await fleet?.[Symbol.asyncDispose]()
    })

    /** Ends the manager and starts one with so many owners, who take all that is pushed, and say that it is theirs. */
    const become = async (of: number, signal: 'SIGTERM' | 'SIGKILL') => {
      const code = await manager.run.kill(signal)
      if (signal === 'SIGTERM') expect(code, manager.run.stderr().slice(-4000)).toBe(0)
      const made = madeSoFar()
      manager = await fleet.manager({ processes: of })
      await manager.ready()
      await taken(made)
      await fleet.whole(of)
      await fleet.statusesSay(of)
      const owners = [...(await manager.owners()).keys()].sort()
      expect(owners).toEqual(of === 1 ? [] : Array.from({ length: of }, (_, i) => `owner-${i + 1}`))
      await divisionIs(of)
    }
    const madeSoFar = () => new Map([...fleet.pushers].map(([name, { numbers }]) => [name, numbers.length]))
    const taken = (made: ReadonlyMap<string, number>) =>
      eventually(
        async () =>
          [...fleet.pushers].flatMap(([name, { unsafe }]) =>
            unsafe.filter((number) => number <= (made.get(name) ?? 0)).map((number) => `${name} ${number}`),
          ),
        (left) => left.length === 0,
        SLOW_MS,
      )
    /** One division is on disk, and it is this one. */
    const divisionIs = async (of: number) => {
      const data = join(fleet.folder, 'manager')
      const manifest = JSON.parse(await readFile(join(data, 'owners.json'), 'utf8')) as { of: number; folder: string }
      expect(manifest.of).toBe(of)
      expect((await readdir(data)).filter((name) => name.startsWith('owners-'))).toEqual([manifest.folder])
      expect((await readdir(join(data, manifest.folder))).sort()).toEqual(
        Array.from({ length: of }, (_, i) => String(i + 1)),
      )
      expect(await fleet.eyes.hget('clusterpulse:owners', 'count')).toBe(String(of))
    }

    it('begins with three', async () => {
      await fleet.whole(3)
      await fleet.statusesSay(3)
      await taken(madeSoFar())
    })

    it('is two after a kill, while VictoriaMetrics is away', async () => {
      await fleet.victoria?.kill()
      const made = madeSoFar()
      await eventually(
        async () => madeSoFar(),
        (now) => [...now].every(([name, count]) => count > (made.get(name) ?? 0) + 20),
        SLOW_MS,
      )
      await become(2, 'SIGKILL')
      // What history lacked was carried over.
      const [, records] = /"records":(\d+).*every cluster has its owner/.exec(manager.run.stderr()) ?? []
      expect(Number(records)).toBeGreaterThan(3 * 20)
      // Some move, some stay: both sorts are there.
      const moved = fleet.clusters.filter((name) => ownerIn(name, 2) !== ownerIn(name, 3))
      expect(moved.length).toBeGreaterThan(0)
      expect(moved.length).toBeLessThan(fleet.clusters.length)
    })

    it('is one after an orderly end, VictoriaMetrics is away still, and nobody names an owner', async () => {
      await become(1, 'SIGTERM')
      const seen = await fleet.client.clusters({ limit: 1000 })
      expect(seen.items.filter(({ owner }) => owner !== undefined)).toEqual([])
      expect(Object.values(await fleet.ownersInStatus()).filter((owner) => owner !== undefined)).toEqual([])
    })

    it('is three again after a kill, with VictoriaMetrics back only a moment before', async () => {
      await fleet.victoria?.start()
      await become(3, 'SIGKILL')
    })

    it('is killed in the middle of dividing, and divides again', async () => {
      await manager.run.kill('SIGKILL')
      for (const [of, patienceMs] of [
        [2, 0],
        [1, 10],
        [2, 30],
        [1, 100],
      ] as const) {
        manager = await fleet.manager({ processes: of })
        await eventually(
          async () => manager.run.stderr(),
          (said) => /are divided anew|a process of the hub runs|manager runs/.test(said),
          SLOW_MS,
        )
        await new Promise((resolve) => setTimeout(resolve, patienceMs)) // whatever it is at by then
        await manager.run.kill('SIGKILL')
      }
      await become(2, 'SIGKILL')
    })

    it('has every batch that it acknowledged, once, and every cluster', async () => {
      fleet.stopPushing()
      await fleet.allSafe()
      await fleet.keptOnce()
      for (const name of fleet.pulled) {
        const found = (await fleet.victoria?.export(`clusterpulse_cluster_nodes_total{cluster="${name}"}`)) ?? []
        const times = found.flatMap(({ timestamps }) => timestamps)
        expect(times.length, name).toBeGreaterThan(0)
        expect(new Set(times).size, `${name}: rounds that are doubled`).toBe(times.length)
      }
      const objects = (await fleet.client.clusters({ limit: 1000 })).items
      expect(objects.filter(({ agent }) => (agent?.lostBatches ?? 0) > 0)).toEqual([])
      expect(await manager.run.kill('SIGTERM'), manager.run.stderr().slice(-4000)).toBe(0)
    })
  },
)
