import { documentTime, type Health } from '#model'
import { staleAt } from './board.ts'
import type { RegistryMeasurement, RegistryState } from './types.ts'

/** A registry as one reader sees it at one moment. */
export interface SeenRegistry extends Pick<RegistryState, 'facts' | 'last' | 'since'> {
  /** a health that nobody has confirmed for so long is not known, whatever it was */
  readonly health: Health
  readonly message: string
  /** no probe for three intervals */
  readonly stale: boolean
  /** oldest first, of the last 24 h */
  readonly measurements: readonly RegistryMeasurement[]
}

export interface Reader {
  readonly now: number
  /** where credentials lie is for those who may change that */
  readonly administrator: boolean
}

export function seenRegistry(
  { facts, last, since }: RegistryState,
  measurements: readonly RegistryMeasurement[],
  { now, administrator }: Reader,
): SeenRegistry {
  const stale = now >= staleAt({ facts, last })
  const ref = facts.credentialsRef
  const say = (text: string) =>
    administrator || !ref ? text : text.replaceAll(` of Secret ${ref.namespace}/${ref.name}`, '')
  const told = last && {
    ...last,
    message: say(last.message),
    error: say(last.error),
    warnings: last.warnings.map(({ code, message }) => ({ code, message: say(message) })),
  }
  return {
    facts,
    last: told,
    since,
    health: last && !stale ? last.health : 'unknown',
    message: messageOf(told, stale),
    stale,
    measurements,
  }
}

function messageOf(last: RegistryState['last'], stale: boolean): string {
  if (!last) return 'Registry was not checked yet'
  return stale ? `no news since ${documentTime(last.at)}; before that: ${last.message}` : last.message
}
