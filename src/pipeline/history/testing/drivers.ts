import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHistory } from '../open.ts'
import type { HistoryStore } from '../types.ts'
import { VictoriaHistory } from '../victoria.ts'
import { VictoriaMetrics, victoriaMissing } from './victoria-metrics.ts'

/** Where a store of one driver lives during a suite. */
export interface Place extends AsyncDisposable {
  open(): Promise<HistoryStore>
  /** resolves when what was appended can be read */
  settle(): Promise<void>
  /** an empty place again; no store is open */
  clear(): Promise<void>
  /** how many numbers of pods_total are stored, repeats counted */
  samples?(cluster: string): Promise<number>
}

export interface Driver {
  readonly name: string
  /** why it is not run here */
  readonly missing: string | undefined
  place(): Promise<Place>
}

const embedded: Driver = {
  name: 'DuckDB',
  missing: undefined,
  async place() {
    const directory = await mkdtemp(join(tmpdir(), 'history-'))
    return {
      open: () => openHistory({ kind: 'duckdb', directory }),
      settle: () => Promise.resolve(),
      clear: () => rm(directory, { recursive: true, force: true }),
      [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
    }
  },
}

const victoria: Driver = {
  name: 'VictoriaMetrics',
  missing: victoriaMissing(),
  async place() {
    const server = await VictoriaMetrics.start()
    const directory = await mkdtemp(join(tmpdir(), 'history-'))
    let settle = (): Promise<void> => Promise.resolve()
    return {
      // What is sent counts as safe at once: these tests kill nobody.
      open: async () => {
        const store = await VictoriaHistory.open({
          endpoint: server.endpoint,
          directory,
          durableAfterMs: 0,
          settleEveryMs: 60_000,
        })
        settle = () => store.settle()
        return store
      },
      async settle() {
        await settle()
        await server.flush()
      },
      async clear() {
        await server.deleteAll()
        await rm(directory, { recursive: true, force: true })
      },
      async samples(cluster) {
        const series = await server.export(`clusterpulse_cluster_pods_total{cluster="${cluster}"}`)
        return series.reduce((sum, { timestamps }) => sum + timestamps.length, 0)
      },
      async [Symbol.asyncDispose]() {
        await server[Symbol.asyncDispose]()
        await rm(directory, { recursive: true, force: true })
      },
    }
  },
}

export const drivers: readonly Driver[] = [embedded, victoria]
