import type { ClusterName } from '#model'

/** Our own keys, beside the documented ones. The whole state of the fleet, for the manager's restart and for mirrors. */
export const own = {
  /** form of all that is stored here, and who wrote last: see redis-format.ts */
  format: 'clusterpulse:format',
  /** text, for some seconds: which manager without a lease works on this Redis; see redis-turn.ts */
  turn: 'clusterpulse:turn',
  /** set of every cluster's name */
  clusters: 'clusterpulse:clusters',
  /** hash of one cluster: see stored.ts */
  cluster: (name: ClusterName) => `clusterpulse:cluster:${name}`,
  /**
   * hash: `count`, how many owners write here side by side, and by each one's index random text that marks its share as
   * whole. A share without it is lost, or on its way: then `writing:<index>` says who writes it. `names:<index>`: which
   * clusters the share has; see redis-names.ts
   */
  owners: 'clusterpulse:owners',
  /** set: names of clusters that a reader could not read; their owner writes them again */
  damaged: 'clusterpulse:damaged',
  /** set: names of clusters whose documented keys show a former state; who starts writes them again */
  late: 'clusterpulse:late',
  /** what a sole owner has in `owners` as well: all that former versions know */
  generation: 'clusterpulse:generation',
  /** version of the whole, as one of the owners knows it */
  version: 'clusterpulse:version',
  /** hash: id of a hub's log → index of the last record that is in here */
  positions: 'clusterpulse:positions',
  /**
   * stream of what moved: `c` the cluster, `v` the version then, `op` put, remove or reload, `o` the owner (absent: 1), `g` the
   * generation of its share, `s` its writer and `n` the writer's count of entries, so that a follower notices a hole; what changed
   * beside that: see redis-entry.ts
   */
  changes: 'clusterpulse:changes',
  /** hash: index of an owner → `<writer> <count>` of its newest entry in `changes` */
  writers: 'clusterpulse:writers',
  /** hash: index of an owner → `<writer> <ms since the Unix epoch>` of its last look at Redis; see redis-pulse.ts */
  pulses: 'clusterpulse:pulses',
} as const
