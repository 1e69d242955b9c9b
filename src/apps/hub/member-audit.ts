import type { WriteObserver } from '#apiserver'
import type { AuditEntry, AuditTrail } from '#audit'
import { AUDITED_GROUPS, auditEntryOfRefusal, auditEntryOfWrite, type ObservedWrite } from '#joining'
import { type Clock, seconds, systemClock } from '#model'
import type { ReviewRequest } from '#webhooks'
import { keptIn } from './joins.ts'

/** The trail, which may be opened later than the first write comes. */
type Trail = () => Pick<AuditTrail, 'record' | 'flush'> | undefined

/** A decision is in the trail when this resolves; nobody waits for what members do themselves, which is as often as they like. */
async function recorded(trail: Trail, entry: AuditEntry | undefined): Promise<void> {
  if (entry?.kind === 'administration') await keptIn(trail)(entry)
  else if (entry) trail()?.record(entry)
}

/**
 * Who writes what about members through the port of the embedded API.
 * @param hub the user the hub itself is there: what it does it records itself
 * @param denied hears of each rule that refused a write
 */
export const observerOfMembers = (trail: Trail, hub: string, denied: (rule: string) => void): WriteObserver => ({
  groups: AUDITED_GROUPS,
  async wrote(write, failure) {
    if (write.user.name !== hub) await recorded(trail, auditEntryOfWrite(write, systemClock.now(), failure))
  },
  refused: (call) => void recorded(trail, auditEntryOfRefusal(call, systemClock.now())),
  denied,
})

/** An API server repeats a write within itself, and asks again about it, where another one came between: within one request, ms. */
const SAME_WITHIN_MS = seconds(10)
const MAX_REMEMBERED = 1000

/** The same of a hub on Kubernetes, whose API server tells it by a webhook, before it stores. What it refuses then it tells nobody. */
export const reviewsOfMembers = (trail: Trail, clock: Clock = systemClock) => {
  const isRepeated = repeatedDecisions()
  return async (review: ReviewRequest): Promise<void> => {
    const { uid, operation, userInfo, resource, subResource, namespace, object, oldObject, dryRun } = review
    if (dryRun || (operation !== 'CREATE' && operation !== 'UPDATE' && operation !== 'DELETE')) return
    const { username = '', groups = [] } = userInfo
    const write: ObservedWrite = {
      ...{ id: uid, user: { name: username, groups }, address: '' },
      operation,
      ...{ group: resource?.group ?? '', resource: resource?.resource ?? '' },
      ...(subResource && { subresource: subResource }),
      ...(namespace && { namespace }),
      name: review.name || (object?.metadata.name ?? ''),
      object: object ?? undefined,
      before: oldObject ?? undefined,
    }
    const entry = auditEntryOfWrite(write, clock.now())
    if (entry && !isRepeated(write, entry)) await recorded(trail, entry)
  }
}

/** Whether a decision is told once more: of one object the same person cannot decide the same twice without another decision between. */
function repeatedDecisions(): (write: ObservedWrite, entry: AuditEntry) => boolean {
  const last = new Map<string, { readonly what: string; readonly at: number }>()
  return ({ resource, name }, { kind, route, username, reason, at }) => {
    if (kind !== 'administration') return false
    const key = `${resource} ${name}`
    const what = JSON.stringify([route, username, reason])
    const before = last.get(key)
    last.delete(key)
    last.set(key, { what, at })
    const [oldest] = last.keys()
    if (last.size > MAX_REMEMBERED && oldest !== undefined) last.delete(oldest)
    return before?.what === what && Math.abs(at - before.at) < SAME_WITHIN_MS
  }
}
