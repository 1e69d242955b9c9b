/** What a sink holds at one moment. */
export interface DocumentTree {
  read(path: string, signal: AbortSignal): Promise<string | undefined>
  /** Which of these there are. */
  existing(paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>
  /** Every set manifest, of anybody; asked where files of others might stand where ours would. */
  manifests(signal: AbortSignal): AsyncIterable<string>
}
