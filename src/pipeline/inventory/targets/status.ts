import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { KollectTargetStatus } from '#kinds'
import type { TargetState } from './engine.ts'

/** As many names as a status holds. */
const MAX_NAMES = 1000
const UNHINDERED = 'nothing is in the way'
/** As long as a sentence gets, for people. */
const MAX_LETTERS = 2000

/**
 * What is written about a target; equal to what stands there where nothing is otherwise.
 * @param before the status as it stands
 * @param isOfCluster its status has no counts
 * @param now ms since 1970
 */
export function statusOf(
  state: TargetState,
  before: KollectTargetStatus,
  { isOfCluster, now }: { readonly isOfCluster: boolean; readonly now: number },
): KollectTargetStatus {
  const { generation, degraded, isReading, forbidden, outside, rows, failures, lastFailure, isBlind } = state
  const said = (type: string, status: Condition['status'], reason: string, message: string) => ({
    ...{ type, status, reason, message: cut(message, MAX_LETTERS), observedGeneration: generation },
  })
  // The number that stands there is not the last one that was.
  const collected = isBlind
    ? `nothing of what it reads may be listed: ${rows === undefined ? 'what was collected before is' : `the ${rows} resource(s) collected before are`} kept`
    : `collecting ${rows ?? 'no'} resource(s)${forbidden === undefined ? '' : '; not all of them'}`
  const collecting = isReading
    ? 'its objects are being read'
    : `${collected}${outside === undefined ? '' : `; ${outside}`}`
  const isReady = !degraded && !isReading
  const conditions = [
    degraded
      ? said('Ready', 'False', degraded.reason, degraded.message)
      : said('Ready', isReady ? 'True' : 'False', 'Collecting', collecting),
    degraded
      ? said('Synced', 'False', degraded.reason, degraded.message)
      : forbidden !== undefined
        ? said('Synced', isBlind ? 'False' : 'True', 'ScopeForbidden', forbidden)
        : said('Synced', isReady ? 'True' : 'False', 'Collecting', collecting),
    degraded
      ? said('Degraded', 'True', degraded.reason, degraded.message)
      : said(
          'Degraded',
          'False',
          'Collecting',
          isReading ? notYetWell(before, collecting) : [forbidden ?? [], outside ?? []].flat().join('; ') || UNHINDERED,
        ),
  ].reduce((all, one) => setCondition(all, one, now), (before.conditions ?? []) as readonly Condition[])
  const seen = {
    conditions: [...conditions],
    observedGeneration: generation,
    matchedNamespaces: state.matchedNamespaces.slice(0, MAX_NAMES),
    effectiveNamespaces: state.effectiveNamespaces.slice(0, MAX_NAMES),
    activeResourceRules: state.activeRules,
  }
  if (isOfCluster) return seen
  return {
    ...seen,
    extractionFailures: failures,
    ...(lastFailure !== undefined && { lastExtractionError: cut(lastFailure, MAX_LETTERS) }),
    ...countOf(before, isReading || rows === undefined ? before.collectedCount : rows, now),
  }
}

/** It is well once all is read: until then what was in its way stands in the message of a condition that says there is nothing. */
const OVER = /^(\S+) is over; /

/** What was in the way of a target, as its status says it; undefined: nothing was. */
export function troubleOf({ conditions = [] }: KollectTargetStatus): string | undefined {
  const was = conditions.find(({ type }) => type === 'Degraded')
  const reason = was?.status === 'True' ? was.reason : OVER.exec(was?.message ?? '')?.[1]
  return reason === 'Suspended' ? undefined : reason
}

function notYetWell(before: KollectTargetStatus, collecting: string): string {
  const trouble = troubleOf(before)
  return trouble === undefined ? UNHINDERED : `${trouble} is over; ${collecting}`
}

/** Until its lists are read the number is the one of before, with its age; absent: it was never known. */
function countOf(
  { collectedCount, collectedCountUpdatedAt }: KollectTargetStatus,
  rows: number | undefined,
  now: number,
): Pick<KollectTargetStatus, 'collectedCount' | 'collectedCountUpdatedAt'> {
  if (rows === undefined) return {}
  const isSame = rows === collectedCount && collectedCountUpdatedAt !== undefined
  const updatedAt = isSame ? collectedCountUpdatedAt : `${new Date(now).toISOString().slice(0, 19)}Z`
  return { collectedCount: rows, collectedCountUpdatedAt: updatedAt }
}

const cut = (text: string, letters: number): string =>
  text.length <= letters ? text : `${text.slice(0, letters - 1)}…`

/** Whether two say the same but for how many rows there are, which changes all the time. */
export function differsInCountOnly(a: KollectTargetStatus, b: KollectTargetStatus): boolean {
  const plain = ({
    collectedCount: _,
    collectedCountUpdatedAt: __,
    conditions = [],
    ...rest
  }: KollectTargetStatus) => ({
    ...rest,
    conditions: conditions.map(({ type, status, reason }) => ({ type, status, reason })),
  })
  return isDeepStrictEqual(plain(a), plain(b))
}
