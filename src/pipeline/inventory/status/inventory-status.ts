import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { KollectClusterInventoryStatus } from '#kinds'
import { type BindingView, WRITTEN_AGAIN } from '../bindings/view.ts'
import type { Shard } from '../compose.ts'
import { type InventoryFacts, inventoryConditions, type WantedCondition } from './inventory-conditions.ts'

/** The status of an inventory of either kind. */
export type InventoryStatus = KollectClusterInventoryStatus

export interface StatusFacts extends InventoryFacts {
  readonly generation: number
  readonly rollUp?: { readonly targetCount: number; readonly shards: readonly Shard[] }
}

/** Namespaces of a roll-up that its status lists; all are counted. */
const MAX_SHARDS = 1000

/** The status as it should be; the very same values where nothing differs. @param now ms since 1970 */
export function inventoryStatus(stored: InventoryStatus, facts: StatusFacts, now: number): InventoryStatus {
  const { bindings, rows, rollUp } = facts
  // Until all was read once since the start, what is there is no count: the number of before stays.
  const itemCount = rows?.wasRead ? rows.itemCount : stored.itemCount
  // What stands there may be of a clock that was wrong then: nothing was exported in the future.
  const exportedAt = [...bindings.map(({ lastExportAt: at }) => at ?? 0), timeOf(stored.lastExportTime)]
  const lastExportAt = Math.max(0, ...exportedAt.filter((at) => at <= now))
  return {
    ...(stored.epoch !== undefined && { epoch: stored.epoch }),
    observedGeneration: facts.generation,
    conditions: withConditions(stored.conditions, inventoryConditions(facts, now), facts.generation, now, [
      'SinkReachable',
    ]),
    ...(itemCount !== undefined && { itemCount }),
    ...(lastExportAt > 0 && { lastExportTime: timeText(lastExportAt) }),
    // Where it cannot even be planned, what was exported before still holds.
    sinkExports: bindings.length === 0 && facts.blocked ? (stored.sinkExports ?? []) : exportsOf(stored, bindings, now),
    ...(rollUp && {
      targetCount: rollUp.targetCount,
      namespaceShardCount: rollUp.shards.length,
      namespaceShards: rollUp.shards.slice(0, MAX_SHARDS).map((shard) => ({ ...shard })),
    }),
  }
}

export const exportsOf = (
  stored: InventoryStatus,
  bindings: readonly BindingView[],
  now: number,
): NonNullable<InventoryStatus['sinkExports']> => bindings.map((binding) => exportOf(stored, binding, now))

/** What was said of this binding stays where nothing newer is known. */
function exportOf({ sinkExports = [] }: InventoryStatus, view: BindingView, now: number) {
  const before = sinkExports.find(({ name }) => name === view.name)
  const { namespace, lastExportAt, behindSince, lateAt, listedAt = before?.manifest } = view
  const isLate = lateAt !== undefined && now >= lateAt
  const own = bindingCondition(view, isLate)
  return {
    name: view.name,
    namespace,
    ...(lastExportAt === undefined
      ? before && kept(before)
      : {
          lastExportTime: timeText(lastExportAt),
          ...(view.lastChecksum !== undefined && { lastChecksum: view.lastChecksum }),
          ...(view.identity !== undefined && { sinkIdentity: view.identity }),
          ...(view.rows !== undefined && { itemCount: view.rows }),
        }),
    ...(listedAt !== undefined && { manifest: listedAt }),
    // Only where it is late: else each change would write a status before its export does.
    ...(isLate && behindSince !== undefined && { behindSince: timeText(behindSince) }),
    conditions: withConditions(before?.conditions, [own], undefined, now),
  }
}

const kept = ({
  lastExportTime,
  lastChecksum,
  sinkIdentity,
  itemCount,
}: NonNullable<InventoryStatus['sinkExports']>[number]) => ({
  ...(lastExportTime !== undefined && { lastExportTime }),
  ...(lastChecksum !== undefined && { lastChecksum }),
  ...(sinkIdentity !== undefined && { sinkIdentity }),
  ...(itemCount !== undefined && { itemCount }),
})

function bindingCondition({ state, reason, message, behindSince }: BindingView, isLate: boolean): WantedCondition {
  const isSynced = (state === 'exported' || state === 'current') && reason !== WRITTEN_AGAIN
  const lacks = behindSince === undefined ? '' : `it lacks what changed since ${timeText(behindSince)}`
  if (isSynced && isLate) return { type: 'Synced', status: 'False', reason: 'Behind', message: lacks }
  const isFailing = state === 'failing' || state === 'blocked'
  const behind = isFailing && lacks !== '' ? `; ${lacks}` : ''
  return { type: 'Synced', status: isSynced ? 'True' : 'False', reason, message: `${message}${behind}`.slice(0, 4096) }
}

/**
 * The conditions with what is wanted of them. Those of other types stay, as others may write them.
 * @param ours types that go where they are not wanted
 */
export function withConditions(
  stored: readonly Condition[] | undefined,
  wanted: readonly WantedCondition[],
  observedGeneration: number | undefined,
  now: number,
  ours: readonly string[] = [],
): Condition[] {
  const gone = ours.filter((one) => !wanted.some(({ type }) => type === one))
  let conditions: readonly Condition[] = (stored ?? []).filter(({ type }) => !gone.includes(type))
  for (const one of wanted)
    conditions = setCondition(
      conditions,
      { ...one, ...(observedGeneration !== undefined && { observedGeneration }) },
      now,
    )
  return [...conditions]
}

/** The merge patch from the stored status to the wanted one; undefined where they say the same. */
export function statusPatch(
  stored: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(wanted))
    if (!isDeepStrictEqual(plain(stored[field]), plain(value))) patch[field] = value
  for (const field of Object.keys(stored))
    if (wanted[field] === undefined && stored[field] !== undefined) patch[field] = null
  return Object.keys(patch).length > 0 ? patch : undefined
}

/** As the API server would give it back: without what is undefined. */
const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))

/** To the second, as Kubernetes has times. */
export const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** ms since 1970; 0 where there is none. */
export const timeOf = (text: string | undefined): number => (text === undefined ? 0 : Date.parse(text) || 0)
