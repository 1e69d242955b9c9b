import type { ClusterName } from '#model'

/** Our own keys, beside the documented ones. The whole state of the fleet, for the manager's restart and for mirrors. */
export const own = {
  /** set of every cluster's name */
  clusters: 'clusterpulse:clusters',
  /** hash of one cluster: see stored.ts */
  cluster: (name: ClusterName) => `clusterpulse:cluster:${name}`,
  /** random text that marks the data as whole; missing: Redis lost its memory */
  generation: 'clusterpulse:generation',
  /** version of the whole */
  version: 'clusterpulse:version',
  /** hash: id of a hub's log → index of the last record that is in here */
  positions: 'clusterpulse:positions',
  /**
   * stream of what moved: `c` the cluster, `v` the version then, `op` put, remove or reload, `g` the generation,
   * `s` the writer and `n` its count of entries, so that a follower notices a hole
   */
  changes: 'clusterpulse:changes',
} as const
