/** A record of a durable log. */
export interface LogRecord {
  readonly index: number
  readonly payload: Buffer
}

/** How large a log is, and what was done to it. */
export interface LogStats {
  readonly bytes: number
  readonly appendedRecords: number
  /** times records were made durable; many share one */
  readonly syncs: number
  readonly refusedRecords: number
  /** records deleted before every consumer had passed them (`drop-oldest` only) */
  readonly droppedRecords: number
  readonly damagedPlaces: number
  readonly damagedBytes: number
  readonly tornBytes: number
}

/**
 * Records in one order. A record is durable when its append resolves; its index only rises, with gaps. Consumers name how far
 * they got, and what all of them have passed may be trimmed. One process at a time has a log open.
 */
export interface Log extends AsyncDisposable {
  /** names this log's numbering: a position means nothing in another log */
  readonly id: string
  /** index of the oldest record that may still be here; the next one where there is none */
  firstIndex(): number
  /** index of the newest durable record; -1 before the first */
  lastIndex(): number
  /** The next record gets this index at least. For a consumer that is ahead of a log that was lost. */
  advance(index: number): void
  /**
   * Resolves with the record's index when the record is durable.
   * @param onDurable called at that moment, in the order of indices over all appends; promises make no such promise
   * @throws LogFullError, LogWriteError when nothing was kept, RecordTooLargeError
   */
  append(payload: Uint8Array, onDurable?: (index: number) => void): Promise<number>
  /** What is appended from now on stands apart from what came before, so that all of that is trimmed once it is passed. */
  beginSegment(): Promise<void>
  /** Every record from this index to the newest durable one, in order; damaged ones are left out and reported. */
  read(from: number, signal?: AbortSignal): AsyncGenerator<LogRecord>
  /** Position of this consumer; -1 for a new one. From now on nothing beyond it is trimmed. */
  checkpoint(consumer: string): number
  /** Positions of all consumers that were ever asked for or kept. */
  checkpoints(): ReadonlyMap<string, number>
  /** A consumer that will not come back: nothing waits for it any more. @throws LogWriteError */
  forget(consumer: string): Promise<void>
  /** Keeps the position of a consumer, durable, and trims what all have passed. Never goes back. */
  setCheckpoint(consumer: string, index: number): Promise<void>
  /** A small text of a consumer beside the records; undefined where there is none. What it holds is the caller's to check. */
  kept(name: string): Promise<string | undefined>
  /** Replaces that text as a whole, durable. @throws LogFullError, LogWriteError: then the former one is still there */
  keep(name: string, text: string): Promise<void>
  stats(): LogStats
}
