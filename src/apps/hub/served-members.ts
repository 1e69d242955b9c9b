import type { ServedMembers } from '#api'
import { AgentCredentials } from '#connections'
import { ApiPulse } from '#controller'
import { accept, DecisionRights, detach, JoinTokens, RequestIndex, refuse, revokeMember } from '#joining'
import type { KubeClient } from '#kube'
import { type DecideMember, parseClusterName, systemClock } from '#model'
import { type Authorities, type Judgement, MemberIndex } from '#registration'
import { silentLogger } from '#runtime'
import { trustedRoots } from './joins.ts'
import { type HubLogger, part } from './run.ts'
import { unanswered } from './unanswered.ts'

interface ServedMembersOptions {
  readonly hub: () => KubeClient
  /** of the hub's own objects */
  readonly namespace: string
  /** of the hub; undefined: they are not known here */
  readonly authorities?: Authorities
  /** undefined: this process judges members */
  readonly judgement?: Judgement
  /** the hub is its own API: its administrators may decide without rights there */
  readonly administratorsDecide: boolean
  readonly logger: HubLogger
}

/** Who is a member, who asks to be one, and how that is decided by whom, for the page and the API; none of it waits for the hub's objects. */
export function servedMembers(options: ServedMembersOptions) {
  const { hub, namespace, authorities, judgement, administratorsDecide, logger } = options
  const started = <T extends { start(): void }>(made: T): Promise<T> => {
    made.start()
    return Promise.resolve(made)
  }
  // Who judges members in this process asks that API all the time.
  const pulse = judgement
    ? part<ApiPulse>('hub-pulse', () => started(new ApiPulse({ kube: hub(), clock: systemClock })))
    : undefined
  const shared = (name: string) => ({
    ...{ hub: hub(), logger: logger.child({ part: name }), clock: systemClock },
    ...(pulse && { pulse: pulse.get() }),
  })
  const index = part<MemberIndex>('member-index', (signal) => {
    const made = new MemberIndex({
      ...shared('member-index'),
      ...(authorities && { authorities }),
      ...(judgement && { judgement }),
    })
    void noteLostAuthority(made, logger, signal)
    return started(made)
  })
  const requests = part<RequestIndex>('member-requests', () => started(new RequestIndex(shared('member-requests'))))
  const get = (): ServedMembers => ({
    ...{ members: index.get(), requests: requests.get(), administratorsDecide },
    decide: memberDecisions(hub, namespace),
    lackedRights: new DecisionRights({ hub: hub(), namespace, requests: requests.get(), clock: systemClock }).lacked,
  })
  return { parts: [...(pulse ? [pulse] : []), index, requests], get }
}

/** Members named in the log at most. */
const MOST_NAMES = 20

/** Says at the start that members were locked out with the CA that signed them: none of them can say so itself. */
async function noteLostAuthority(index: MemberIndex, logger: HubLogger, signal: AbortSignal): Promise<void> {
  try {
    await index.synced(signal)
  } catch {
    return // the hub stops
  }
  const names = index.ofLostAuthority()
  if (names.length === 0) return
  logger.error(
    { members: names.length, names: names.slice(0, MOST_NAMES) },
    'members hold certificates of an authority that this hub no longer has, and are refused: let each of them join anew (clusterpulse connect NAME), or, where that authority was lost and not ended, put it back from the backup (docs/guide/backup.md) and start the hub again',
  )
}

/** Carries decisions out as the commands of the same names do. */
function memberDecisions(hub: () => KubeClient, namespace: string): DecideMember {
  const decide: DecideMember = async (decision, { cluster: name, request, by }, did) => {
    const what = {
      ...{ hub: hub(), cluster: parseClusterName(name), by },
      ...(did && { did }),
      ...(request !== undefined && { request }),
    }
    switch (decision) {
      case 'accept':
        return accept({ ...what, trusted: () => trustedRoots(what.hub, namespace) })
      case 'deny':
        return refuse(what)
      case 'detach':
        return detach(what)
      case 'revoke': {
        await using credentials = new AgentCredentials({ hub: what.hub, namespace, logger: silentLogger })
        return await revokeMember({
          ...what,
          tokens: new JoinTokens({ hub: what.hub, namespace, clock: systemClock }),
          credentials,
        })
      }
    }
  }
  return (...what) =>
    decide(...what).catch((error: unknown) => {
      throw unanswered(error)
    })
}
