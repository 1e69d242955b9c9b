import type { KollectSinkStatus } from '#kinds'
import { REPLACED_WRITER, WRITER_CONFLICT, WRITTEN_AGAIN } from '../bindings/view.ts'
import type { WantedCondition } from './inventory-conditions.ts'
import type { InventoryStatus } from './inventory-status.ts'

/** What the status of an inventory says of one sink. */
export type SinkExport = NonNullable<InventoryStatus['sinkExports']>[number] & {
  /** as people call it */
  readonly inventory: string
}

/** What all inventories that are written to one sink say of it. */
export interface SinkExports {
  readonly counts: Pick<KollectSinkStatus, 'inventories' | 'itemCount' | 'lastExportTime' | 'behindSince'>
  /** absent: none is written there */
  readonly synced?: WantedCondition
}

/** Reasons of a sink that fails in nothing: it got nothing yet, or all but deletions. */
const WAITING = ['Pending', 'DeletionsWait']
/** Which of several reasons is said of the sink. */
const WORST_FIRST = [WRITER_CONFLICT, 'Terminal', 'Forbidden', 'Transient']

/** Times are compared as texts: all of them are of one form. */
export function sinkExports(exports: readonly SinkExport[]): SinkExports {
  const counts = exports.flatMap(({ itemCount }) => itemCount ?? [])
  const last = exports.flatMap(({ lastExportTime }) => lastExportTime ?? []).sort()
  const behind = exports.flatMap(({ behindSince }) => behindSince ?? []).sort()
  const synced = syncedOf(exports)
  return {
    counts: {
      inventories: exports.length,
      ...(counts.length > 0 && { itemCount: counts.reduce((sum, count) => sum + count, 0) }),
      ...(last.length > 0 && { lastExportTime: last.at(-1) as string }), // there is one
      ...(behind[0] !== undefined && { behindSince: behind[0] }),
    },
    ...(synced && { synced }),
  }
}

/** The worst that is said, with the words of all that say so. */
function syncedOf(exports: readonly SinkExport[]): WantedCondition | undefined {
  if (exports.length === 0) return undefined
  const all = exports.map(({ inventory, conditions }) => {
    const synced = conditions?.find(({ type }) => type === 'Synced')
    return {
      ...{ inventory, isTrue: synced?.status === 'True', reason: synced?.reason ?? 'Pending' },
      message: synced?.message ?? 'nothing was exported yet',
    }
  })
  const lacking = all.filter(({ isTrue }) => !isTrue)
  const rank = ({ reason }: { readonly reason: string }) => {
    const at = WORST_FIRST.indexOf(reason)
    if (at >= 0) return at
    return WORST_FIRST.length + (WAITING.includes(reason) ? 1 : 0)
  }
  const [worst] = [...lacking].sort((a, b) => rank(a) - rank(b))
  const told =
    worst?.reason ??
    [WRITTEN_AGAIN, REPLACED_WRITER].find((one) => all.some(({ reason }) => reason === one)) ??
    'Exported'
  const said = (worst ? lacking : all).filter(({ reason }) => reason === told)
  if (said.length === 0)
    return { type: 'Synced', status: 'True', reason: 'Exported', message: 'it holds what was exported' }
  const message = said.map(({ inventory, message: why }) => `${inventory}: ${why}`).join('; ')
  return { type: 'Synced', status: worst ? 'False' : 'True', reason: told, message: message.slice(0, 4096) }
}
