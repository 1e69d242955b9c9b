import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHistory } from '../open.ts'
import type { HistoryStore } from '../types.ts'

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
    let current: HistoryStore | undefined
    return {
      async open() {
        current = await openHistory({ kind: 'duckdb', directory })
        return current
      },
      settle: () => Promise.resolve(),
      clear: () => rm(directory, { recursive: true, force: true }),
      [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
    }
  },
}

export const drivers: readonly Driver[] = [embedded]
