import { documentText } from '#model'
import type { Command, SetLayout } from '#redis'
import type { PolicyDocument } from './types.ts'

/*
 * How policies lie in Redis: a hash per policy, sets and sorted sets of the hashes' names per subject and type, and the
 * sets of all. Documented in docs/spec/access.md; existing readers rely on it.
 */

export const ALL = 'policies:all'
const ENABLED = 'policies:enabled'
const BY_PRIORITY = 'policies:by:priority'
const EFFECTS: Readonly<Record<string, string>> = { Allow: 'policies:effect:allow', Deny: 'policies:effect:deny' }

const CHANGES_CHANNEL = 'policy-changes'
const EVENTS_CHANNEL = 'policy-events'

/** Names are those of the hashes. Only `data` takes part in decisions. */
export const LAYOUT: SetLayout = {
  what: 'access policies',
  members: ALL,
  generation: 'policies:generation',
  seal: 'policies:digest',
  channel: CHANGES_CHANNEL,
  documentKey: (hash) => hash,
  field: 'data',
  script: "redis.pcall('HGET', name, 'data')",
}

/** Decisions that APIs of the original keep for `RBAC_CACHE_TTL`, by person; and what only its older versions kept. */
export const DECISION_CACHES: readonly string[] = ['rbac:decision:', 'rbac:custom:']
export const OLD_CACHES: readonly string[] = ['policy:eval:']

type Status = Readonly<Record<string, unknown>>

/** `<namespace>/<name>` of a document. */
export const keyOf = ({ namespace, policy_name }: Pick<PolicyDocument, 'namespace' | 'policy_name'>): string =>
  `${namespace}/${policy_name}`

/** The hash of a policy, from `<namespace>/<name>`. */
export const hashKey = (key: string): string => `policy:${key.replace('/', ':')}`

/** The way back; text that is no name of a policy's hash stays as it is. */
export const keyOfHash = (hash: string): string => (hash.startsWith('policy:') ? hash.slice(7).replace(':', '/') : hash)

/** The fields of a policy's hash, without `status`. */
export function fieldsOf(document: PolicyDocument): Readonly<Record<string, string>> {
  return {
    data: documentText(document),
    priority: String(document.priority),
    effect: document.effect,
    enabled: String(document.enabled),
    hash: document.hash,
    compiled_at: document.compiled_at,
  }
}

/** Membership of one policy in one index; with a score where the index is sorted. */
export interface Entry {
  readonly index: string
  readonly score?: number
}

/** Those that are not about one subject or type. */
export const GLOBAL_ENTRIES: readonly Entry[] = [
  ...[ALL, ENABLED, ...Object.values(EFFECTS)].map((index) => ({ index })),
  { index: BY_PRIORITY, score: 0 },
]

/** Every index the document stands in. */
export function entriesOf(document: PolicyDocument): readonly Entry[] {
  const { namespace, priority, effect, enabled } = document
  const effectSet = EFFECTS[effect]
  const entries: Entry[] = [
    { index: ALL },
    { index: BY_PRIORITY, score: priority },
    ...(effectSet ? [{ index: effectSet }] : []),
  ]
  if (!enabled) return entries
  entries.push({ index: ENABLED })
  const subjects: readonly [kind: string, names: readonly string[] | null][] = [
    ['user', document.users],
    ['group', document.groups],
    ['sa', document.service_accounts],
    ['customtype', document.custom_resource_types],
  ]
  for (const [kind, names] of subjects) {
    // In a namespace called like a kind of index, the key of a policy and that of an index could be the same.
    if (kind === namespace) continue
    for (const name of new Set(names)) {
      const index = `policy:${kind}:${name}`
      // The set of one name would be the sorted set of another; decisions were made by the sorted ones.
      if (!name.endsWith(':sorted')) entries.push({ index })
      entries.push({ index: `${index}:sorted`, score: priority })
    }
  }
  return entries
}

/** Takes the policy out of an index. */
export const withdraw = ({ index, score }: Entry, hash: string): Command => [
  score === undefined ? 'SREM' : 'ZREM',
  index,
  hash,
]

/** Puts the policy into an index; again does no harm. */
export const enter = ({ index, score }: Entry, hash: string): Command =>
  score === undefined ? ['SADD', index, hash] : ['ZADD', index, score, hash]

export type Action = 'compiled' | 'deleted' | 'expired' | 'activated'

/** One transition on both channels. @param now ms since the Unix epoch */
export function announce(action: Action, key: string, now: number): readonly Command[] {
  const timestamp = `${new Date(now).toISOString().slice(0, 19)}Z`
  return [
    ['PUBLISH', CHANGES_CHANNEL, documentText({ action, policy: key, timestamp })],
    ['PUBLISH', EVENTS_CHANNEL, documentText({ type: `policy.${action}`, policy: key, timestamp })],
  ]
}

/** What the clock did to a policy since its stored status: it expired, or it came into force. */
export function transitionOf(before: Status, after: Status): Action | undefined {
  if (before.state === undefined || before.state === after.state) return undefined
  if (after.state === 'Expired') return 'expired'
  return before.state === 'Inactive' && after.state === 'Active' ? 'activated' : undefined
}

/** The stored status; what cannot be read counts as none. */
export function readStatus(text: string | null | undefined): Status {
  if (!text) return {}
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Status) : {}
  } catch {
    return {} // a note for people, written anew
  }
}

/** `changes` over `stored`; null takes a field away. */
export function mergedStatus(stored: Status, changes: Status): Status {
  return Object.fromEntries(Object.entries({ ...stored, ...changes }).filter(([, value]) => value !== null))
}
