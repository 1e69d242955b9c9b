import type { RegistrationOptions } from '#registration'
import type { ConfigReader } from '#runtime'

/** How clusters become members of the hub, and when they are lost. */
export type MembersConfig = Required<
  Pick<RegistrationOptions, 'autoApproveUsers' | 'leaseClock' | 'streamLoss' | 'removalPatienceMs' | 'massLossPauseMs'>
>

const MEANING =
  'ManagedClusters are looked after: who is accepted gets a namespace and rights, and is judged by its lease or stream; `api` shows them. On a Kubernetes hub it needs the component `members` of deploy/'

/** Whether `api` shows members. */
export const showsMembers = (read: ConfigReader): boolean => read.flag('MEMBERS', { default: false, meaning: MEANING })

/** @returns undefined: ManagedClusters are not looked after */
export function membership(read: ConfigReader, role: 'up' | 'manager'): MembersConfig | undefined {
  const isOn = read.flag('MEMBERS', {
    default: role === 'up',
    meaning: MEANING,
  })
  const config: MembersConfig = {
    autoApproveUsers: read.list('MEMBERS_AUTO_APPROVE_USERS', {
      meaning:
        'users whose certificate requests are approved, and whose clusters are accepted once, without a person; whoever has the credentials of such a user can bring in clusters. None by default',
    }),
    leaseClock: read.text('MEMBERS_LEASE_CLOCK', {
      default: 'hub',
      oneOf: ['hub', 'member'],
      meaning:
        'by whose clock the lease of an agent is old: hub counts from when the renewal was seen; member trusts the time written in it, as Open Cluster Management does',
    }) as 'hub' | 'member',
    streamLoss: read.flag('MEMBERS_STREAM_LOSS', {
      default: true,
      meaning:
        'a member whose agent is on our stream is Unknown within 15 s without a sign of life; false: after five lease durations',
    }),
    removalPatienceMs: read.duration('MEMBERS_REMOVAL_PATIENCE', {
      default: '5m',
      min: '0s',
      meaning:
        'how long works and add-ons of a deleted member that is away, or has an agent that applies none, are kept for it to clean up; after that the hub lets go of them itself',
    }),
    massLossPauseMs: read.duration('MEMBERS_MASS_LOSS_PAUSE', {
      default: '1m',
      min: '0s',
      meaning:
        'how long no member that is Unknown is tainted after many were lost at once, and, where it is more than 90s, after the hub itself was away; 0s: never held back',
    }),
  }
  return isOn ? config : undefined
}
