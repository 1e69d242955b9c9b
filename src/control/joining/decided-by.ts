import { DECIDED_ANNOTATION, notedDecisionIn } from '#kinds'
import type { MemberDecider, MemberDecision } from '#model'

interface Annotated {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}

/** An API tells of a deletion right after it was said whose it is, ms. */
const DELETED_WITHIN_MS = 60_000
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,100}$/

/** For the annotations of a merge patch: a decision that no page took says so by none. */
export const decidedAnnotation = (
  decision: MemberDecision,
  by: MemberDecider | undefined,
  at: number,
): Readonly<Record<string, string | null>> => ({
  [DECIDED_ANNOTATION]: by ? JSON.stringify({ decision, by: by.username, request: by.requestId, at }) : null,
})

/** Said in the condition of a request. */
export const decidedWords = (verb: string, command: MemberDecision, by: MemberDecider | undefined): string =>
  by ? `${verb} ${onPage(by)} (request ${by.requestId})` : `${verb} by clusterpulse ${command}`

export const onPage = ({ username }: MemberDecider): string => `by ${username} on the page`

/** As a machine that asked is told it: it may be a stranger's, and persons are not its to know. */
export const withoutPerson = (words: string): string =>
  words.replace(/ by .* on the page \(request [^)]*\)/, " on the hub's page")

/** The person whom a write about a ManagedCluster names. undefined: it names none, or one of an earlier write */
export function deciderIn(
  { before, object }: { readonly before: Annotated | undefined; readonly object: Annotated | undefined },
  now: number,
): MemberDecider | undefined {
  const textOf = (one: Annotated | undefined) => one?.metadata.annotations?.[DECIDED_ANNOTATION]
  const text = textOf(object ?? before)
  if (text === undefined || (object && text === textOf(before))) return undefined
  const said = notedDecisionIn(text)
  if (!said || !REQUEST_ID.test(said.request)) return undefined
  // A deletion changes no annotation: it is told just before.
  if (!object && !(said.decision === 'detach' && Math.abs(now - said.at) <= DELETED_WITHIN_MS)) return undefined
  return { username: said.by, requestId: said.request }
}
