import type { Logger } from '#runtime'
import { type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import type { Member } from './members.ts'
import { SimulatedAgents } from './simulated-agents.ts'

export interface SimulatedMembers extends AsyncDisposable {
  readonly members: readonly Member[]
}

/** The cluster of the demo whose facts an agent pushes. */
const PUSHES = 'edge-paris'

export interface SimulatedMembersOptions {
  readonly seed: number
  /** where agents of simulated clusters keep their buffers */
  readonly directory: string
  /** our executable: program, then its first arguments */
  readonly executable: readonly string[]
  /** one of them pushes: only where agents are received */
  readonly withAgent: boolean
  readonly logger: Logger
}

/** The demo fleet, living; nothing at all where it is not wanted. */
export async function simulatedMembers(
  wanted: boolean,
  { seed, directory, executable, withAgent, logger }: SimulatedMembersOptions,
): Promise<SimulatedMembers> {
  if (!wanted) return { members: [], [Symbol.asyncDispose]: () => Promise.resolve() }
  const fleet: SimulatedFleet = await simulateFleet(scenarios.demo, { seed, host: '127.0.0.1' })
  logger.info({ clusters: fleet.clusters.length }, 'simulated fleet lives')
  const agents = new SimulatedAgents({
    clusters: fleet.clusters,
    serverOf: (name) => fleet.server(name),
    directory,
    executable,
    logger,
  })
  return {
    members: fleet.clusters.map(({ name, displayName, labels, url, token, caPem }) => ({
      name,
      displayName,
      endpoint: url,
      labels,
      credentials: { token, 'ca.crt': caPem },
      insecureSkipTlsVerify: false,
      push: withAgent && name === PUSHES,
    })),
    async [Symbol.asyncDispose]() {
      await agents[Symbol.asyncDispose]()
      await fleet[Symbol.asyncDispose]()
    },
  }
}
