import { useEffect, useMemo } from 'react'
import { ApiProblem, type PartView } from '../contract.ts'
import { type Member, type MemberRequest, memberOf, requestOf } from '../model/members.ts'
import { useNow } from './hooks.ts'
import type { ShownRow } from './row-list.ts'
import { useRows } from './use-rows.ts'

/** As many rows of members as a stream carries. */
const mostMembers = 50_000

export type Listed<T> =
  | { readonly state: 'waiting' }
  | { readonly state: 'failed'; readonly problem: ApiProblem; readonly again: () => void }
  /** the hub looks after no members */
  | { readonly state: 'off' }
  /** the hub does not know them yet, and why */
  | { readonly state: 'unread'; readonly part: Omit<PartView, 'count'> }
  | {
      readonly state: 'here'
      readonly items: readonly T[]
      /** how many there are, where not all of them are here yet */
      readonly total: number
      /** why the last look brought nothing new, or why what it brought is old */
      readonly problem: ApiProblem | null
      /** of when it is, where the hub has heard nothing of members since, ms; null: of now */
      readonly asOf: number | null
      readonly again: () => void
    }

const everyone = {}
const all = { unpacked: true }

/** Members that may be seen, and clusters that ask to be one; they move as the stream tells them. */
export const useMembers = (): Listed<Member> => useListed('members', memberOf, everyone)

/** One of them; `here` with none: there is no such member, or not for whoever looks. */
export function useMember(name: string): Listed<Member> {
  const query = useMemo(() => ({ where: [`name=${name}`] }), [name])
  return useListed('members', memberOf, query)
}

/** Who asks to be a member: for administrators. */
export const useMemberRequests = (): Listed<MemberRequest> => useListed('memberrequests', requestOf, everyone)

/** Between two looks at which certificates ought to have been renewed. */
const lateEveryMs = 600_000
const lost = { where: ['accepted=true', 'state=lost||state=unreachable'] }

/** Members that need somebody: lost or unreachable ones, and those that did not renew their certificate in time. */
export function useTroubledMembers(): { readonly members: readonly Member[]; readonly unknown: string | null } {
  const now = useNow(lateEveryMs)
  const late = useMemo(() => ({ where: ['accepted=true', `renewBy<${now + lateEveryMs}`] }), [now])
  const answers = [useListed('members', memberOf, lost), useListed('members', memberOf, late)]
  const found = answers.flatMap((one) => (one.state === 'here' ? one.items : []))
  const why = answers.map((one) => {
    if (one.state === 'failed') return one.problem
    if (one.state === 'unread') return one.part
    return one.state === 'here' && one.asOf !== null ? one.problem : null
  })
  return {
    members: [...new Map(found.map((member) => [member.name, member])).values()],
    unknown: why.find((one) => one !== null)?.message ?? null,
  }
}

function useListed<T>(type: string, of: (row: ShownRow) => T, query: { readonly where?: string[] }): Listed<T> {
  const { paged, pending, want, again } = useRows(null, type, query, all)
  useEffect(() => want(mostMembers), [want])
  return useMemo((): Listed<T> => {
    if (paged.state === 'waiting' || pending) return { state: 'waiting' }
    // An unknown type: nobody told that there are members.
    if (paged.state === 'failed')
      return paged.problem.code === 'type_not_found' ? { state: 'off' } : { ...paged, again }
    const { page, rows, problem } = paged
    const [on] = page.on
    const here = { state: 'here' as const, items: [...rows.values()].map(of), total: page.total, again }
    if (!on || on.part.outcome === 'complete') return { ...here, problem, asOf: null }
    const { freshness, code, message } = on.part
    if (!freshness) return { state: 'unread', part: on.part }
    return {
      ...here,
      problem: new ApiProblem(503, { error: message, code, requestId: '' }),
      asOf: freshness.observedAt,
    }
  }, [paged, pending, again, of])
}
