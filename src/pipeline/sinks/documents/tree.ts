import { SinkError, type Writing } from '../sink.ts'

/** What is known of a file without reading it, where that is kept with it. */
export interface StandingFile {
  /** key of the inventory that wrote it */
  readonly owner?: string | undefined
  /** equal for equal content */
  readonly mark?: string | undefined
}

/** Files that are there, by path. */
export type Standing = ReadonlyMap<string, StandingFile>

/** What a sink holds at one moment. */
export interface DocumentTree {
  /** @throws SinkError, that of `tooLarge` where it has more bytes than that */
  read(path: string, maxBytes: number, signal: AbortSignal): Promise<string | undefined>
  /** Which of these there are. */
  existing(paths: readonly string[], signal: AbortSignal): Promise<Standing>
  /**
   * Every set manifest up to this size, of anybody, as path and text; asked where files of others might stand where ours would. None
   * where owners are kept with files.
   */
  manifests(maxBytes: number, signal: AbortSignal): AsyncIterable<readonly [string, string]>
  /** Paths of the lists that an inventory has anywhere. Absent where `manifests` are all there are. */
  listsOf?(owner: string, signal: AbortSignal): Promise<readonly string[]>
  /** Paths of all parts of a document, of any number of them. Absent where a file that no list names cannot be ours. */
  partsOf?(path: string, signal: AbortSignal): Promise<readonly string[]>
}

/** An inventory as a key of ASCII. */
export const ownerKey = ({ cluster, namespace, inventory }: Writing): string =>
  [cluster, namespace, inventory].map(encodeURIComponent).join('/')

/** @returns undefined for what is no such key */
export function ownerOf(key: string): Writing | undefined {
  const [cluster, namespace, inventory, ...rest] = key.split('/').map(decoded)
  if (cluster === undefined || namespace === undefined || inventory === undefined || rest.length > 0) return undefined
  return { cluster, namespace, inventory }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whoever may write to the sink put something else where documents are. */
export const tooLarge = (path: string, maxBytes: number): SinkError =>
  new SinkError('terminal', `${path} in the sink has more than ${maxBytes} bytes: it is none of ours; move it away`)
