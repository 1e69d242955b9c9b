import type { Condition } from '#controller'
import { REPLACED_WRITER, WRITER_CONFLICT, WRITTEN_AGAIN } from '../bindings/view.ts'
import type { InventoryStatus } from '../status/inventory-status.ts'
import type { Said } from './event-recorder.ts'

/** What a new status says that the old one did not: for how soon it is written, and for events. */
export interface News {
  readonly isNews: boolean
  readonly events: readonly Said[]
}

/** Compares two statuses. Counts, times and checksums are no news. */
export function news(before: InventoryStatus, after: InventoryStatus): News {
  const events: Said[] = []
  let isNews = before.observedGeneration !== after.observedGeneration
  for (const one of after.conditions ?? []) {
    const known = before.conditions?.find(({ type }) => type === one.type)
    if (sameState(known, one)) continue
    isNews = true
    const isTrouble = one.type === 'Degraded' && one.status === 'True'
    if (isTrouble && !QUIET.has(one.reason)) events.push({ type: 'Warning', reason: one.reason, message: one.message })
  }
  for (const { name, conditions } of after.sinkExports ?? []) {
    const was = before.sinkExports?.find((other) => other.name === name)?.conditions
    const [now] = conditions ?? []
    const [then] = was ?? []
    if (!now || sameState(then, now)) continue
    isNews = true
    const said = eventOf(name, then, now)
    if (said) events.push(said)
  }
  return { isNews, events }
}

/** Wanted by somebody, over in a moment, or said of the sink: no warning. */
const QUIET = new Set(['Suspended', 'Progressing', 'InvalidSpec', 'CleanupWaits', WRITER_CONFLICT])

const sameState = (a: Condition | undefined, b: Condition) => a?.status === b.status && a.reason === b.reason

/** One event when a sink stops taking what it is given, and one when it does again: not one for each export. */
function eventOf(name: string, before: Condition | undefined, after: Condition): Said | undefined {
  if (after.reason === REPLACED_WRITER || after.reason === WRITTEN_AGAIN)
    return { type: 'Warning', reason: after.reason, message: `${name}: ${after.message}` }
  if (after.status === 'True')
    return before?.status === 'True' || after.reason !== 'Exported'
      ? undefined
      : { type: 'Normal', reason: 'ExportSucceeded', message: `${name} took the rows` }
  if (['Pending', 'Progressing', 'DeletionsWait'].includes(after.reason)) return undefined
  const isClass = ['Transient', 'Forbidden', 'Terminal'].includes(after.reason)
  return { type: 'Warning', reason: isClass ? 'ExportFailed' : after.reason, message: `${name}: ${after.message}` }
}
