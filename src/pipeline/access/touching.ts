import type { PreparedGeneration, PreparedPolicy } from './prepare.ts'
import type { Principal, Semantics, SkippedPolicy } from './types.ts'

/** The policies that are about somebody, in order, and through what. */
export function touching(
  prepared: PreparedGeneration,
  principal: Principal,
  semantics: Semantics,
): readonly PreparedPolicy[] {
  const found = new Set<PreparedPolicy>(prepared.everybody)
  const add = (policies: readonly PreparedPolicy[] | undefined) => {
    for (const policy of policies ?? []) found.add(policy)
  }
  add(prepared.byUser.get(principal.username))
  const email = verifiedEmail(principal, semantics)
  if (email) add(prepared.byUser.get(email))
  for (const group of principal.groups) add(prepared.byGroup.get(group))
  if (principal.isServiceAccount) add(prepared.byServiceAccount.get(principal.username))
  return [...found].sort((a, b) => a.order - b.order)
}

/** The original knew users by their canonical name alone (RBAC-Q25). */
export const verifiedEmail = ({ email, emailVerified }: Principal, semantics: Semantics): string =>
  semantics === 'strict' && emailVerified === true ? email : ''

/** Everything about a principal that policies can be about. */
export const principalKey = (principal: Principal, semantics: Semantics): string =>
  JSON.stringify([
    principal.username,
    verifiedEmail(principal, semantics),
    principal.isServiceAccount,
    [...new Set(principal.groups)].sort(),
  ])

type Skip = Pick<SkippedPolicy, 'why' | 'detail'>

/** Why a policy says nothing at this time, whatever is asked; null where it counts. */
export function skipNow(policy: PreparedPolicy, now: number): Skip | null {
  const { bounds, isEnabled, fault, effect, stored } = policy
  if (!isEnabled) return { why: 'disabled', detail: 'it is not enabled' }
  if (fault) return { why: 'faulty', detail: fault }
  // A Deny whose bounds cannot be read denies (RBAC-Q29); nothing else is granted by what cannot be read.
  if (!bounds.areReadable) {
    return effect === 'Deny' && policy.deniesWithoutBounds
      ? null
      : { why: 'bounds_unreadable', detail: 'its validity cannot be read' }
  }
  if (now < bounds.from) return { why: 'not_yet_valid', detail: `valid from ${stored.document.not_before}` }
  if (now > bounds.to) return { why: 'expired', detail: `valid until ${stored.document.not_after}` }
  return null
}

/** The span around `now` in which nothing begins or ends by the clock alone: `from` is in it, `until` is not. */
export function stableSpan(
  policies: readonly PreparedPolicy[],
  now: number,
): { readonly from: number; readonly until: number } {
  let from = Number.NEGATIVE_INFINITY
  let until = Number.POSITIVE_INFINITY
  for (const { bounds, isEnabled, fault } of policies) {
    if (!isEnabled || fault || !bounds.areReadable) continue
    for (const turn of [bounds.from, bounds.to + 1]) {
      if (turn <= now) from = Math.max(from, turn)
      else until = Math.min(until, turn)
    }
  }
  return { from, until }
}
