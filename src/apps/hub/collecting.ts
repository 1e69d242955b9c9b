import type { LeaderElection } from '#controller'
import { type ControllerName, type GoverningOptions, governing } from './governing.ts'
import { type Owning, type OwningOptions, owning } from './owning.ts'

/** `election` is of the controllers of that name; without it they lead from the start. */
export type CollectingOptions = Omit<OwningOptions, 'election' | 'beside' | 'place' | 'socketDirectory'> &
  GoverningOptions & { readonly election?: (name: ControllerName) => LeaderElection }

/** The hub in one process: it owns every cluster, and rules what is about none. What `up` and `manager` have in common. */
export function collecting({ election, ...options }: CollectingOptions): Owning {
  const governs = governing({ ...options, ...(election && { election }) })
  const owns: Owning = owning({
    ...options,
    ...(election && { election: () => election('connections') }),
    beside: (signal) =>
      governs.sources({ state: owns.state(), events: owns.events(), ingester: owns.ingester() }, signal),
  })
  return { ...owns, parts: [...governs.parts, ...owns.parts] }
}
