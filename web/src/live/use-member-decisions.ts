import { useCallback } from 'react'
import type { MemberDecisionsView } from '../contract.ts'
import { useHub, useNow } from './hooks.ts'
import { type Answer, useAnswer } from './use-answer.ts'

/** Rights at the hub's API change without a word to the page. */
const everyMs = 15_000

/** What whoever looks may decide about members, or about one; asked again while it is shown. */
export function useMemberDecisions(member?: string): [decisions: Answer<MemberDecisionsView>, again: () => void] {
  const { client } = useHub()
  const turn = useNow(everyMs)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn asks again
  const ask = useCallback((signal: AbortSignal) => client.memberDecisions(member, signal), [client, member, turn])
  return useAnswer(ask)
}
