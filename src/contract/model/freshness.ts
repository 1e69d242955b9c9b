/** Who collected: the hub itself, or an agent beside the cluster. */
export type Source = 'pull' | 'push'

/** When a value was seen where it lives, when the hub had it, and how it came. Ages are computed from `observedAt`. */
export interface Freshness {
  /** by the collector's clock, ms since the Unix epoch */
  readonly observedAt: number
  /** by the hub's clock, ms since the Unix epoch */
  readonly receivedAt: number
  readonly source: Source
}

/**
 * How a read ended. Empty is `complete` with no items; the others are not empty:
 * `absent` the cluster does not serve it, `forbidden` we may not read it, `unreachable` no usable answer came.
 */
export type Outcome = 'complete' | 'absent' | 'forbidden' | 'unreachable'
