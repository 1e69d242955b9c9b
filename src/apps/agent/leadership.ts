import { LeaderElection } from '#controller'
import type { OwnedKubeClient } from '#kube'
import { FleetError } from '#model'
import type { Logger, Part } from '#runtime'
import type { AgentConfig } from './config.ts'

/** Of the Lease that the replicas of one agent hold in turn, in their namespace. */
export const AGENT_LEASE = 'clusterpulse-agent'

/** Which of several replicas collects and writes. Once one leads it leads until its process ends. */
export interface Leadership {
  readonly part: Part
  readonly isLeading: boolean
  /** Resolves when this replica leads, or the signal aborts. */
  won(signal: AbortSignal): Promise<void>
  /** To be asked before anything is written that another replica may write by now. @throws where it leads no more; then the process ends */
  mustLead(): void
  /** Why it does not lead, for people. */
  waitsFor(): string
}

export interface LeadershipOptions {
  readonly config: NonNullable<AgentConfig['leaderElection']>
  /** a client of the cluster, of our own */
  readonly connect: () => Promise<OwnedKubeClient>
  /** of this process: unique among the replicas */
  readonly identity: string
  readonly logger: Logger
  /** The lease is lost: this process has to end at once, before another replica begins. */
  readonly onLost: () => void
}

/** Another replica may lead by now. */
class LeaseLostError extends FleetError {
  readonly code = 'lease_lost'
  readonly retryable = true

  constructor() {
    super('the lease is lost: another replica of this agent may lead by now')
  }
}

/** One leader among the replicas of an agent, by a Lease. Loaded where there may be several. */
export function openLeadership({ config, connect, identity, logger, onLost }: LeadershipOptions): Leadership {
  const { namespace, ...times } = config
  const stop = new AbortController()
  let election: LeaderElection | undefined
  let kube: OwnedKubeClient | undefined
  let running: Promise<void> | undefined
  let isLeading = false
  let lead: () => void = () => undefined
  const leads = new Promise<void>((resolve) => {
    lead = resolve
  })
  return {
    get isLeading() {
      return isLeading
    },
    mustLead() {
      if (election?.leads) return
      if (!stop.signal.aborted) onLost()
      throw new LeaseLostError()
    },
    won: (signal) => Promise.race([leads, aborted(signal)]),
    waitsFor() {
      const { holder, problem } = election?.seen ?? {}
      const lease = `the lease ${namespace}/${AGENT_LEASE}`
      if (problem !== undefined) return `${lease} cannot be taken: ${problem}`
      return holder ? `another replica of this agent leads: ${holder}` : `${lease} is being asked for`
    },
    part: {
      name: 'leadership',
      async start() {
        kube = await connect()
        election = new LeaderElection({ ...times, kube, namespace, name: AGENT_LEASE, identity, logger })
        running = election.run(async (leading) => {
          isLeading = true
          lead()
          await aborted(leading)
          if (!stop.signal.aborted) onLost()
        }, stop.signal)
      },
      async stop() {
        stop.abort()
        await running
        await kube?.[Symbol.asyncDispose]()
      },
    },
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
