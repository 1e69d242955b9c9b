import { parseClusterName } from '#model'
import { createLogger, startParts } from '#runtime'
import { servedMembers } from '../../src/apps/hub/served-members.ts'
import {
  aJoiningHub,
  aMachine,
  type JoiningHub,
  NAMESPACE,
  told,
} from '../../src/control/joining/testing/joining-hub.ts'
import { SomeFleet } from '../../src/control/registration/testing/fleet.ts'
import { aHub } from '../../src/control/registration/testing/hub.ts'

const HOUR_MS = 3_600_000

/** A hub's own API in this process with all that makes members: join tokens, certificates, membership; and what its page is served. */
export async function aMemberHub({ administratorsDecide = true } = {}) {
  const joining: JoiningHub = await aJoiningHub()
  const { kube } = joining
  const registration = await aHub({ kube }, { fleet: new SomeFleet() })
  const logger = createLogger('error', { role: 'test' })
  const { parts, get } = servedMembers({ hub: () => kube, namespace: NAMESPACE, administratorsDecide, logger })
  const running = await startParts(parts, { logger })
  return {
    ...joining,
    served: get(),
    /** A machine with a key of its own asks to be this cluster. @returns its key, as the hub shows it */
    async asks(name: string, address: string) {
      const cluster = parseClusterName(name)
      const token = await joining.tokens.issue(cluster, HOUR_MS)
      const { asked } = aMachine(cluster, token, { address })
      await told(joining, asked, 1)
      return asked
    },
    async [Symbol.asyncDispose]() {
      await running.stop()
      await registration.stop()
      await joining[Symbol.asyncDispose]()
    },
  }
}
export type MembersOfPage = Awaited<ReturnType<typeof aMemberHub>>
