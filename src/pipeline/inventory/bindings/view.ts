import type { SinkErrorClass, SinkFamily } from '#sinks'

/** Reason of a binding: another agent writes there under the same name. */
export const WRITER_CONFLICT = 'WriterConflict'
/** Reason of a binding: another agent wrote there under the same name until ours came. */
export const REPLACED_WRITER = 'ReplacedWriter'
/** Reason of a binding: the sink does not keep what it takes, so that it is written at each look. */
export const WRITTEN_AGAIN = 'WrittenAgain'

/** How a binding stands, for status and metrics. Times are ms since 1970. */
export interface BindingView {
  /** `family/name` */
  readonly name: string
  readonly family: SinkFamily
  /** of the sink */
  readonly namespace: string
  /**
   * `pending`: nothing was exported yet; `exported`: the sink took what this process gave it; `current`: it held the content already;
   * `waiting`: it took all but deletions, which it makes later; `failing`: the last attempt failed; `blocked`: nothing can be tried
   */
  readonly state: 'pending' | 'exported' | 'current' | 'waiting' | 'failing' | 'blocked'
  readonly reason: string
  readonly message: string
  readonly errorClass?: SinkErrorClass
  readonly lastExportAt?: number
  /** of the last export, where it was complete */
  readonly lastChecksum?: string
  /** how many rows the last export had */
  readonly rows?: number
  /** what the last export went to */
  readonly identity?: string
  /** since when the sink lacks something */
  readonly behindSince?: number
  /** from then on that is late, by the pace of the binding */
  readonly lateAt?: number
  /** path of the list of its documents in the sink */
  readonly listedAt?: string
}

/** How the taking away of what a binding wrote stands. */
export type RemovalView =
  | { readonly kind: 'running' | 'done' }
  | { readonly kind: 'waiting'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string; readonly errorClass: SinkErrorClass }
