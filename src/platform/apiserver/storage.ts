import type { ApiObject } from './types.ts'

/** One object put under its key, or removed (`null`). */
export interface StoredChange {
  readonly key: string
  readonly object: ApiObject | null
}

export interface StoredState {
  readonly resourceVersion: number
  readonly objects: Iterable<readonly [key: string, object: ApiObject]>
}

/** Why nothing can be written now: what was stored was moved or deleted while running, or the disk is full. */
export type StorageFault = 'lost' | 'full'

/**
 * Where objects outlive the process. The store keeps every object in memory; a storage only has to give them back at
 * the next start. Written by memory (below) and journal.ts.
 */
export interface ObjectStorage extends AsyncDisposable {
  /** What was there at the start; called once. */
  load(): StoredState
  /**
   * Writes all changes and the new version, or nothing. A promise resolves when they are on disk; undefined means
   * that nothing has to be waited for.
   * @throws ApiError InsufficientStorage, ServiceUnavailable or InternalError when nothing was written.
   */
  write(changes: readonly StoredChange[], resourceVersion: number): Promise<void> | undefined
  /** Looks whether a write could be kept now; absent: always. */
  fault?(): Promise<StorageFault | undefined>
}

/** Keeps nothing: for simulated clusters and tests. */
export const memoryStorage = (): ObjectStorage => ({
  load: () => ({ resourceVersion: 0, objects: [] }),
  write: () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
})
