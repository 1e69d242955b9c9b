import type { Part } from '#runtime'
import { createHubControllers, type HubControllersOptions } from './hub-controllers.ts'
import { createLeader } from './leader.ts'
import { createOwner, type Owner, type OwnerOptions } from './owner.ts'
import { RoleGaps } from './role-gaps.ts'

export interface SingleProcessHubOptions
  extends Omit<OwnerOptions, 'beside' | 'onRoleGaps' | 'place' | 'socketDirectory' | 'catalog'>,
    Omit<HubControllersOptions, 'collection'> {
  /** starts before the rest of what only the one that leads may do */
  readonly before?: readonly Part[]
}

export interface SingleProcessHub extends Owner {
  /** nothing is owned here while another process leads */
  isLeading(): boolean
  /** why nothing runs although this process leads */
  leaderFault(): string | undefined
}

/** The hub in one process: it owns every cluster, and rules what is about none. What `up` and `manager` have in common. */
export function createSingleProcessHub({ before = [], ...options }: SingleProcessHubOptions): SingleProcessHub {
  const { election, logger } = options
  const controllers = createHubControllers(options)
  const agentRoles = new RoleGaps()
  const owner: Owner = createOwner({
    ...options,
    onRoleGaps: (cluster, gaps) => agentRoles.set(cluster, gaps),
    beside: (signal) =>
      controllers.ofFleet(
        { state: owner.state(), events: owner.events(), ingester: owner.ingester(), agentRoles },
        signal,
      ),
  })
  const leader = createLeader({
    parts: [...before, ...owner.parts],
    ...(election && { election: () => election('connections') }),
    logger,
  })
  return {
    ...owner,
    parts: [...controllers.parts, ...leader.parts],
    isLeading: () => leader.isLeading(),
    leaderFault: () => leader.fault(),
  }
}
