import type { Condition } from '#controller'
import { type BindingView, WRITER_CONFLICT, WRITTEN_AGAIN } from '../bindings/view.ts'
import type { TargetKey } from '../rows.ts'

/** A condition as it is wanted; when it began is known by who writes it. */
export type WantedCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** What the conditions of an inventory are made of. */
export interface InventoryFacts {
  readonly isSuspended: boolean
  /** why it cannot run as it is declared */
  readonly blocked?: { readonly reason: string; readonly message: string }
  readonly bindings: readonly BindingView[]
  /** undefined: its rows were not looked at yet */
  readonly rows?: {
    readonly itemCount: number
    readonly waitsFor: readonly TargetKey[]
    /** something is in the way of one of them */
    readonly isHindered: boolean
    readonly wasRead: boolean
  }
  /** reason of a roll-up that went well; default that of its exports */
  readonly isRollUp?: boolean
}

/** Names of targets in a message; more are counted. */
const MAX_NAMED = 10

/** What is said of an inventory. `Ready` and `Degraded` are never both true. @param now ms since 1970 */
export function inventoryConditions(facts: InventoryFacts, now: number): readonly WantedCondition[] {
  const { isSuspended, blocked, bindings } = facts
  if (blocked) return [...degraded(blocked.reason, blocked.message), ...completeness(facts)]
  if (isSuspended)
    return [...degraded('Suspended', 'spec.suspend is true: nothing is exported'), ...completeness(facts)]
  if (bindings.length === 0)
    return [...ready('NoExport', 'it names no sinks: its rows are only served'), ...completeness(facts)]
  const failing = bindings.filter(({ state }) => state === 'failing' || state === 'blocked')
  return [...outcome(facts, failing, now), reachable(bindings, failing), ...completeness(facts)]
}

/**
 * Whether all that there is to say is that its rows are read for the first time since the process started, and nothing is known to be
 * wrong.
 */
export function isBeingRead({ isSuspended, blocked, bindings, rows }: InventoryFacts, now: number): boolean {
  const isQuiet = bindings.every(
    ({ state, lateAt }) => (state === 'current' || state === 'pending') && (lateAt === undefined || lateAt > now),
  )
  return !isSuspended && !blocked && isQuiet && rows !== undefined && isUnread(rows) && !rows.isHindered
}

function outcome(facts: InventoryFacts, failing: readonly BindingView[], now: number): readonly WantedCondition[] {
  const { bindings, rows } = facts
  const pending = bindings.filter(({ state }) => state === 'pending')
  const waiting = bindings.filter(({ state }) => state === 'waiting')
  const late = bindings.filter(({ lateAt }) => lateAt !== undefined && lateAt <= now)
  if (failing.length === bindings.length) return degraded(reasonOfAll(failing), said(failing))
  // What earlier starts exported is old by now, or grows old, whatever stands in the sinks.
  if (rows && isUnread(rows) && (late.length > 0 || rows.isHindered)) return degraded('TargetDegraded', waitsFor(rows))
  if (failing.length > 0) {
    const message = said([...failing, ...waiting])
    return [
      condition('Ready', 'True', 'PartiallySynced', message),
      condition('Synced', 'False', 'PartiallySynced', message),
      condition('Degraded', 'False', 'PartiallySynced', 'some sinks take what they are given'),
    ]
  }
  if (pending.length > 0) {
    const message = `nothing was exported yet to ${listed(pending)}`
    return [
      condition('Ready', 'False', 'Progressing', message),
      condition('Synced', 'False', 'Progressing', message),
      condition('Degraded', 'False', 'Progressing', message),
    ]
  }
  if (rows && isUnread(rows)) {
    const message = waitsFor(rows)
    return [
      condition('Ready', 'Unknown', 'Reading', message),
      condition('Synced', 'True', 'UpToDate', holding(bindings)),
      condition('Degraded', 'False', 'Reading', message),
    ]
  }
  if (waiting.length > 0) {
    const message = said(waiting)
    return [
      condition('Ready', 'True', 'DeletionsWait', message),
      condition('Synced', 'False', 'DeletionsWait', message),
      condition('Degraded', 'False', 'DeletionsWait', 'every sink took the rows; some delete later what is gone'),
    ]
  }
  if (late.length > 0) {
    const message = `${listed(late)} lacks changes for longer than it should`
    return [
      condition('Ready', 'True', 'Behind', message),
      condition('Synced', 'False', 'Behind', message),
      condition('Degraded', 'False', 'Behind', message),
    ]
  }
  const unkept = bindings.filter(({ reason }) => reason === WRITTEN_AGAIN)
  if (unkept.length > 0) {
    const message = said(unkept)
    return [
      condition('Ready', 'True', WRITTEN_AGAIN, message),
      condition('Synced', 'False', WRITTEN_AGAIN, message),
      condition('Degraded', 'False', WRITTEN_AGAIN, 'every sink takes what it is given; some do not keep it'),
    ]
  }
  const isNew = bindings.some(({ state }) => state === 'exported')
  return ready(facts.isRollUp ? 'RolledUp' : isNew ? 'Exported' : 'UpToDate', holding(bindings))
}

/** What its sinks hold is of an earlier start, as its targets were not all read since. */
const isUnread = ({ waitsFor: targets, wasRead }: NonNullable<InventoryFacts['rows']>): boolean =>
  !wasRead && targets.length > 0

const holding = ({ length }: readonly BindingView[]): string =>
  `${length === 1 ? 'its sink holds' : `all ${length} sinks hold`} what was exported`

function reasonOfAll(failing: readonly BindingView[]): string {
  const [first] = failing
  const isOne = failing.every(({ reason }) => reason === first?.reason)
  if (first && isOne && (first.state === 'blocked' || first.reason === WRITER_CONFLICT)) return first.reason
  return failing.every(({ errorClass }) => errorClass === 'terminal') ? 'ExportTerminal' : 'Progressing'
}

/** Who refuses was reached, and one is enough to say no: which, stands in the message. What somebody has to change may never have been sent. */
function reachable(bindings: readonly BindingView[], failing: readonly BindingView[]): WantedCondition {
  const away = failing.filter(({ errorClass }) => errorClass === 'transient')
  if (away.length > 0) return condition('SinkReachable', 'False', 'SinkUnreachable', listed(away))
  const unsent = failing.filter(({ state, errorClass }) => state === 'blocked' || errorClass === 'terminal')
  if (unsent[0])
    return condition(
      'SinkReachable',
      'Unknown',
      unsent[0].reason,
      `${listed(unsent)}: something has to be changed first, as Synced says`,
    )
  const [refusing] = failing
  if (refusing) return condition('SinkReachable', 'True', refusing.reason, `${listed(failing)} answered, and refused`)
  const hasAnswered = bindings.some(({ state }) => state === 'exported' || state === 'waiting')
  if (hasAnswered) return condition('SinkReachable', 'True', 'Exported', '')
  const isUnasked = bindings.length > 0 && bindings.every(({ state }) => state === 'current')
  return isUnasked
    ? condition('SinkReachable', 'Unknown', 'UpToDate', 'no sink had to be asked since the agent started')
    : condition('SinkReachable', 'Unknown', 'Progressing', 'no sink has answered yet')
}

/** Whether what is missing from its rows may be deleted in sinks. */
function completeness({ rows }: InventoryFacts): readonly WantedCondition[] {
  if (!rows) return []
  if (rows.waitsFor.length === 0)
    return [condition('Complete', 'True', 'Complete', 'every target has read all that it chooses')]
  return [condition('Complete', 'False', rows.wasRead ? 'TargetDegraded' : 'Collecting', waitsFor(rows))]
}

function waitsFor({ waitsFor: targets, wasRead }: NonNullable<InventoryFacts['rows']>): string {
  const names = targets.slice(0, MAX_NAMED).map(({ name }) => name)
  const more = targets.length > MAX_NAMED ? ` and ${targets.length - MAX_NAMED} more` : ''
  const consequence = wasRead
    ? 'until then rows are added and changed in sinks, and none is deleted'
    : 'until then nothing is exported'
  return `waits for the targets ${names.join(', ')}${more}; ${consequence}`
}

const ready = (reason: string, message: string): readonly WantedCondition[] => [
  condition('Ready', 'True', reason, message),
  condition('Synced', 'True', reason, message),
  condition('Degraded', 'False', reason, message),
]

const degraded = (reason: string, message: string): readonly WantedCondition[] => [
  condition('Ready', 'False', reason, message),
  condition('Synced', 'False', reason, message),
  condition('Degraded', 'True', reason, message),
]

const condition = (type: string, status: Condition['status'], reason: string, message: string): WantedCondition => ({
  type,
  status,
  reason,
  message,
})

const listed = (bindings: readonly BindingView[]): string => bindings.map(({ name }) => name).join(',')

/** Each that failed, with what it said, in a bounded text. */
const said = (failing: readonly BindingView[]): string =>
  failing
    .map(({ name, message }) => `${name}: ${message}`)
    .join('; ')
    .slice(0, 4096)
