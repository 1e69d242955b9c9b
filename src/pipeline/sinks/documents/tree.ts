import { SinkError } from '../sink.ts'

/** What a sink holds at one moment. */
export interface DocumentTree {
  /** @throws SinkError, that of `tooLarge` where it has more bytes than that */
  read(path: string, maxBytes: number, signal: AbortSignal): Promise<string | undefined>
  /** Which of these there are. */
  existing(paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>
  /** Every set manifest up to this size, of anybody; asked where files of others might stand where ours would. */
  manifests(maxBytes: number, signal: AbortSignal): AsyncIterable<string>
}

/** Whoever may write to the sink put something else where documents are. */
export const tooLarge = (path: string, maxBytes: number): SinkError =>
  new SinkError('terminal', `${path} in the sink has more than ${maxBytes} bytes: it is none of ours; move it away`)
