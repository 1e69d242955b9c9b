import { setTimeout as sleep } from 'node:timers/promises'
import { parseClusterName, systemClock } from '../../src/contract/model/index.ts'
import { AgentCredentials } from '../../src/control/connections/index.ts'
import { JoinTokens, revokeMember } from '../../src/control/joining/index.ts'
import { silentLogger } from '../../src/platform/runtime/index.ts'
import { messagesOf } from '../ingest/messages.ts'
import { FollowedMembers } from './followed-members.ts'
import { NAMESPACE, namesOf, startHub } from './hub.ts'
import { MemberStream } from './member-stream.ts'
import { BenchAuthority, makeMembers } from './membership.ts'

/* From the command that revokes a member to the end of its stream, as the member sees it. */

export interface Revoked {
  /** ms from the call, and from its return; 0: the stream had ended by then */
  readonly fromCall: readonly number[]
  readonly fromReturn: readonly number[]
}

const PAUSE_MS = 50

export async function measureRevoke(bin: string, directory: string, count: number): Promise<Revoked> {
  const authority = await BenchAuthority.make(directory)
  await using hub = await startHub(bin, directory, authority.env)
  const identities = await Promise.all(namesOf('gone', 0, count).map((name) => authority.identity(name)))
  await using members = new FollowedMembers(hub.kube)
  await makeMembers(hub.kube, identities)
  await members.settled(count)
  const messages = messagesOf('quiet', 1)
  const { address, kube } = hub
  const { key } = authority
  const streams = await Promise.all(
    identities.map(async (identity) => {
      const stream = await MemberStream.open({ ...identity, address, key, messages })
      await stream.delivered
      return { name: parseClusterName(identity.name), stream }
    }),
  )
  await members.availables(count)
  const tokens = new JoinTokens({ hub: kube, namespace: NAMESPACE, clock: systemClock })
  await using credentials = new AgentCredentials({ hub: kube, namespace: NAMESPACE, logger: silentLogger })
  const fromCall: number[] = []
  const fromReturn: number[] = []
  for (const { name: cluster, stream } of streams) {
    const calledAt = performance.now()
    await revokeMember({ hub: kube, cluster, tokens, credentials })
    const returnedAt = performance.now()
    const endedAt = await stream.ended
    fromCall.push(endedAt - calledAt)
    fromReturn.push(Math.max(0, endedAt - returnedAt))
    stream.close()
    await sleep(PAUSE_MS)
  }
  return { fromCall, fromReturn }
}
