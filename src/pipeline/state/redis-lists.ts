import { createHash } from 'node:crypto'
import {
  type ClusterState,
  documentText,
  type Freshness,
  LISTED_KINDS,
  type ListedKind,
  type ListName,
  listsOf,
  type ResourceListSettings,
  type RowsState,
  resourceLists,
  resourceMetadataDocument,
} from '#model'
import type { Command } from '#redis'

/*
 * The documented lists `cluster:<c>:pods|deployments|services|statefulsets|daemonsets` and `resource_metadata`. Rows are looked at
 * once a minute at most, with a write of their cluster; a list whose text stayed the same is not written, and lives on where its
 * rows were read again. An empty list has no key, as documented.
 */

/** What Redis was given of the lists of one kind of row. */
interface WrittenKind extends ListedKind {
  /** when rows were made lists, by the hub's clock, ms */
  readonly lookedAt: number
  readonly renewedAt: number
  readonly ttlMs: number
  /** rows changed since */
  readonly isBehind: boolean
  /** of each list that is there */
  readonly digests: Readonly<Partial<Record<ListName, string>>>
}

export interface WrittenLists {
  readonly kinds: ReadonlyMap<string, WrittenKind>
  /** of `resource_metadata` */
  readonly metadataAt: number
}

const NOTHING: WrittenLists = { kinds: new Map(), metadataAt: Number.NEGATIVE_INFINITY }
const LOOK_EVERY_MS = 60_000
const RENEWALS_PER_LIFETIME = 3

type Read = RowsState & { readonly freshness: Freshness }

interface Step {
  readonly now: number
  /** of the cluster's documents, ms */
  readonly lifetimeMs: number
  /** undefined: no lists are written */
  readonly settings: ResourceListSettings | undefined
  /** what was written of `before` by this process */
  readonly known?: WrittenLists | undefined
}

/** @param before what Redis has; absent: nothing, or nobody knows */
export function listCommands(
  before: ClusterState | undefined,
  after: ClusterState,
  { now, lifetimeMs, settings, known = NOTHING }: Step,
): { readonly commands: Command[]; readonly written: WrittenLists } {
  if (!settings) return { commands: [], written: NOTHING }
  const commands: Command[] = []
  const kinds = new Map<string, WrittenKind>()
  // Read every minute at the earliest, so a lifetime below three of them would let lists run out in between.
  const ttlMs = Math.max(lifetimeMs, 3 * LOOK_EVERY_MS)
  for (const kind of LISTED_KINDS) {
    const state = after.tables.get(kind)
    const old = before?.tables.get(kind)
    if (!state && old) commands.push(['DEL', ...listsOf(kind).map((name) => keyOf(after, name))])
    if (!state || !isRead(state) || now - state.freshness.receivedAt > ttlMs) continue
    const last = known.kinds.get(kind)
    const isAlive = last !== undefined && now - last.renewedAt < last.ttlMs
    const step = {
      after,
      state,
      now,
      ttlMs,
      settings,
      last: isAlive ? last : undefined,
      hasNewRows: old?.rows !== state.rows,
    }
    const done = kindCommands(kind, step)
    commands.push(...done.commands)
    kinds.set(kind, done.written)
  }
  const isChanged = commands.length > 0
  const isAnyRead = [...kinds].some(([kind, { observedAt }]) => observedAt !== known.kinds.get(kind)?.observedAt)
  const isDue = isChanged || (isAnyRead && now - known.metadataAt >= LOOK_EVERY_MS)
  if (!isDue) return { commands, written: { kinds, metadataAt: known.metadataAt } }
  commands.push(
    kinds.size > 0
      ? set(
          `cluster:${after.name}:resource_metadata`,
          documentText(resourceMetadataDocument([...kinds.values()])),
          ttlMs,
        )
      : ['DEL', `cluster:${after.name}:resource_metadata`],
  )
  return { commands, written: { kinds, metadataAt: now } }
}

const isRead = (state: RowsState): state is Read => state.outcome === 'complete' && state.freshness !== null

const keyOf = ({ name }: ClusterState, list: ListName) => `cluster:${name}:${list}`
const set = (key: string, text: string, ms: number): Command => ['SET', key, text, 'EX', Math.ceil(ms / 1000)]

interface KindStep {
  readonly after: ClusterState
  readonly state: Read
  readonly now: number
  readonly ttlMs: number
  readonly settings: ResourceListSettings
  readonly last: WrittenKind | undefined
  readonly hasNewRows: boolean
}

function kindCommands(kind: string, step: KindStep): { readonly commands: Command[]; readonly written: WrittenKind } {
  const { after, state, now, ttlMs, settings, last, hasNewRows } = step
  const { observedAt } = state.freshness
  const seen = { observedAt, durationMs: state.durationMs }
  const isBehind = hasNewRows || last === undefined || last.isBehind
  const isLookDue = last === undefined || now - last.lookedAt >= LOOK_EVERY_MS
  const isRenewalDue = last === undefined || now - last.renewedAt >= last.ttlMs / RENEWALS_PER_LIFETIME
  if (!isLookDue || !isBehind) {
    const isRenewed = isRenewalDue && last?.observedAt !== observedAt
    return {
      commands: isRenewed ? expiries(after, last, ttlMs) : [],
      written: { ...(last as WrittenKind), ...seen, isBehind, ...(isRenewed && { renewedAt: now, ttlMs }) },
    }
  }
  const lists = resourceLists(kind, state.rows, settings)
  const commands = lists.flatMap(({ name, text, count }): Command[] => {
    if (count === 0) return last && last.digests[name] === undefined ? [] : [['DEL', keyOf(after, name)]]
    if (last?.digests[name] !== digestOf(text)) return [set(keyOf(after, name), text, ttlMs)]
    return isRenewalDue ? [['EXPIRE', keyOf(after, name), Math.ceil(ttlMs / 1000)]] : []
  })
  return {
    commands,
    written: {
      ...seen,
      truncated: state.truncated || lists.some(({ truncated }) => truncated),
      counts: Object.fromEntries(lists.map(({ name, count }) => [name, count])),
      lookedAt: now,
      renewedAt: isRenewalDue || last === undefined ? now : last.renewedAt,
      ttlMs,
      isBehind: false,
      digests: Object.fromEntries(
        lists.filter(({ count }) => count > 0).map(({ name, text }) => [name, digestOf(text)]),
      ),
    },
  }
}

const expiries = ({ name }: ClusterState, last: WrittenKind | undefined, ttlMs: number): Command[] =>
  Object.keys(last?.digests ?? {}).map((list) => ['EXPIRE', `cluster:${name}:${list}`, Math.ceil(ttlMs / 1000)])

const digestOf = (text: string) => createHash('sha1').update(text).digest('base64')
