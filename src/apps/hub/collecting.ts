import type { Part } from '#runtime'
import { type GoverningOptions, governing } from './governing.ts'
import { leading } from './leading.ts'
import { type Owning, type OwningOptions, owning } from './owning.ts'
import { RoleGaps } from './role-gaps.ts'

export interface CollectingOptions
  extends Omit<OwningOptions, 'beside' | 'onRoleGaps' | 'place' | 'socketDirectory' | 'catalog'>,
    Omit<GoverningOptions, 'collection'> {
  /** starts before the rest of what only the one that leads may do */
  readonly before?: readonly Part[]
}

export interface Collecting extends Owning {
  /** nothing is owned here while another process leads */
  isLeading(): boolean
  /** why nothing runs although this process leads */
  leadingFault(): string | undefined
}

/** The hub in one process: it owns every cluster, and rules what is about none. What `up` and `manager` have in common. */
export function collecting({ before = [], ...options }: CollectingOptions): Collecting {
  const { election, logger } = options
  const governs = governing(options)
  const agentRoles = new RoleGaps()
  const owns: Owning = owning({
    ...options,
    onRoleGaps: (cluster, gaps) => agentRoles.set(cluster, gaps),
    beside: (signal) =>
      governs.sources({ state: owns.state(), events: owns.events(), ingester: owns.ingester(), agentRoles }, signal),
  })
  const leads = leading({
    parts: [...before, ...owns.parts],
    ...(election && { election: () => election('connections') }),
    logger,
  })
  return {
    ...owns,
    parts: [...governs.parts, ...leads.parts],
    isLeading: () => leads.isLeading(),
    leadingFault: () => leads.fault(),
  }
}
