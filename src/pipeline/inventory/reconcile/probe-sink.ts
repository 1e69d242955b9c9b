import { SinkError, type SinkObject, type SinkPool } from '#sinks'

/** What came of looking at a sink. */
export interface ProbeAnswer {
  readonly isVerified: boolean
  /** with its warnings, in a bounded text */
  readonly message: string
  /** what is in the way may be over in a moment */
  readonly isPassing?: boolean
  /** it was not looked at, to spare a sink in trouble, which may be asked after so long, ms */
  readonly sparedMs?: number
}

/** Looks whether the sink can be written to. Throws for the signal only. */
export async function probeSink(pool: SinkPool, object: SinkObject, signal: AbortSignal): Promise<ProbeAnswer> {
  try {
    const {
      verified,
      message,
      warnings,
      isPassing = false,
    } = await pool.use(object, (sink, until) => sink.probe(until), signal)
    // A warning is no reason why a sink fails.
    const besides = verified || warnings.length === 0 ? warnings : [`besides, ${warnings.join('; ')}`]
    return { isVerified: verified, isPassing, message: [message, ...besides].join('; ').slice(0, 4096) }
  } catch (error) {
    signal.throwIfAborted()
    // Anything else than a driver's own words may hold what it must not.
    const message = error instanceof SinkError ? error.message : 'the sink could not be looked at'
    const { errorClass, sparedMs } = error instanceof SinkError ? error : {}
    return {
      ...{ isVerified: false, message: message.slice(0, 4096), isPassing: errorClass === 'transient' },
      ...(sparedMs !== undefined && { sparedMs }),
    }
  }
}
