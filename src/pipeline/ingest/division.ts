import { FleetError } from '#model'
import type { Logger, SegmentLog } from '#runtime'

/** A log as a former division left it. Nobody else has it open. */
export interface FormerLog {
  readonly log: SegmentLog
  /** index of its last record that is in state, that is in history; -1: none. Without a history: its last index */
  readonly statePosition: number
  readonly historyPosition: number
}

export interface DivisionOptions {
  readonly from: readonly FormerLog[]
  /** new and empty, in the order of their owners */
  readonly to: readonly SegmentLog[]
  readonly logger: Logger
  readonly signal?: AbortSignal
}

/** What was carried over, for logs. */
export interface Divided {
  readonly clusters: number
  /** that a store had not taken yet */
  readonly records: number
  /** of the former logs that could not be read; they are named in the log of the process */
  readonly unreadable: number
}

/**
 * Divides logs anew among owners: what was received of each cluster goes to the log of its owner (`ownerOf`), and with it the
 * records that state or history has not taken, each for whom it lacks. All of it is synced when this resolves. The former
 * logs stay as they are: until the new ones are put in their place, nothing has happened.
 */
export function divideLogs(_options: DivisionOptions): Promise<Divided> {
  return Promise.reject(new NotDividedError())
}

class NotDividedError extends FleetError {
  override readonly name = 'NotDividedError'
  readonly code = 'not_divided'
  readonly retryable = false
  constructor() {
    super('logs cannot be divided yet')
  }
}
