/** Names of the consumers that a record of the hub's log is for. */
export type Audience = ReadonlySet<string>

/** Consumers whose rules the ingester itself knows: what is true now, and what was. */
export const STATE = 'state'
export const HISTORY = 'history'

/** A record that names no audience is for everyone. */
export const isFor = (audience: Audience | undefined, consumer: string): boolean => audience?.has(consumer) ?? true

/** In the log: of state and history in a word, which every version reads; of others their names beside it. */
export type AudienceWord = keyof typeof words
export interface StoredAudience {
  readonly into?: AudienceWord
  readonly also?: readonly string[]
}

const words = {
  both: new Set([STATE, HISTORY]),
  state: new Set([STATE]),
  history: new Set([HISTORY]),
  none: new Set<string>(),
} satisfies Record<string, Audience>

/** @param audience undefined: everyone */
export function storedAudience(audience: Audience | undefined): StoredAudience {
  if (!audience) return {}
  const also = [...audience].filter((name) => name !== STATE && name !== HISTORY).sort()
  return { into: wordOf(audience), ...(also.length > 0 && { also }) }
}

/** @param audience of which only state and history are told */
export function wordOf(audience: Audience): AudienceWord {
  if (audience.has(STATE)) return audience.has(HISTORY) ? 'both' : 'state'
  return audience.has(HISTORY) ? 'history' : 'none'
}

/** @returns undefined: everyone. A word that is none of ours means nobody. */
export function audienceOf({ into, also }: StoredAudience): Audience | undefined {
  if (into === undefined) return undefined
  const known: Audience = words[into] ?? words.none
  return also ? new Set([...known, ...also]) : known
}
