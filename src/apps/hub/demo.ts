import type { Logger } from '#runtime'
import { type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import type { Member } from './members.ts'

export interface SimulatedMembers extends AsyncDisposable {
  readonly members: readonly Member[]
}

/** The demo fleet, living; nothing at all where it is not wanted. */
export async function simulatedMembers(wanted: boolean, seed: number, logger: Logger): Promise<SimulatedMembers> {
  if (!wanted) return { members: [], [Symbol.asyncDispose]: () => Promise.resolve() }
  const fleet: SimulatedFleet = await simulateFleet(scenarios.demo, { seed, host: '127.0.0.1' })
  logger.info({ clusters: fleet.clusters.length }, 'simulated fleet lives')
  return {
    members: fleet.clusters.map(({ name, displayName, labels, url, token, caPem }) => ({
      name,
      displayName,
      endpoint: url,
      labels,
      credentials: { token, 'ca.crt': caPem },
      insecureSkipTlsVerify: false,
    })),
    [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
  }
}
