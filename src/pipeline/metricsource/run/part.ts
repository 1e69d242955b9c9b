import { outcomeOf } from '#kube'
import { CUSTOM_ERRORS_KEPT, type CustomError, type CustomPart, FleetError } from '#model'
import type { Collecting, ResourceDescriptor } from '../types.ts'

/** Longest message of a part, UTF-16 units: there may be many, and each is kept. */
const MAX_MESSAGE = 1000

export type Failed = Extract<CustomPart, { readonly message: string }>

interface Said {
  readonly outcome: Failed['outcome']
  readonly code: string
  readonly message: string
}

/** A collection that could not be made: why, for programs and for people. */
export function failedPart({ id, hash }: ResourceDescriptor, durationMs: number, said: Said): Failed {
  return { source: id, hash, durationMs: wholeMs(durationMs), ...said, message: said.message.slice(0, MAX_MESSAGE) }
}

/** What an error says of a read. */
export function saidOf(error: unknown): Said {
  const { code, message } = FleetError.from(error)
  return { outcome: outcomeOf(error), code, message: message.slice(0, MAX_MESSAGE) }
}

export interface Found {
  readonly collecting: Pick<Collecting, 'rows' | 'reports'>
  readonly truncated: boolean
  /** sorted by namespace */
  readonly errors: readonly CustomError[]
}

/** All rows there are now, with everything that is computed from them. */
export function completePart(source: ResourceDescriptor, durationMs: number, found: Found): CustomPart {
  const { collecting, truncated, errors } = found
  const rows = collecting.rows()
  return {
    source: source.id,
    hash: source.hash,
    durationMs: wholeMs(durationMs),
    outcome: 'complete',
    rows,
    aggregations: source.aggregate(rows),
    truncated,
    errors: errors.slice(0, CUSTOM_ERRORS_KEPT),
    errorCount: errors.length,
    reports: collecting.reports(),
  }
}

/** A clock that was set back makes no negative time. */
const wholeMs = (ms: number) => Math.max(0, Math.round(ms))
