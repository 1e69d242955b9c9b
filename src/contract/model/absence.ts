/**
 * Why there is no value: it was read and there is none; it was not read, measured or computed; or it is kept from whoever looks.
 * A whole list that was not read says why: it is refused, not served, or was not reached.
 */
export type Absence = 'none' | 'unknown' | 'hidden' | 'forbidden' | 'absent' | 'unreachable'

/** One word for each, wherever a value would stand: on the page, in a file, in a terminal. */
export const absenceWord: Readonly<Record<Absence, string>> = {
  none: 'none',
  unknown: 'unknown',
  hidden: 'hidden',
  forbidden: 'forbidden',
  absent: 'not served',
  unreachable: 'unreachable',
}

/** What must be known of a column to say what its null means. */
export interface AbsenceRule {
  /** what null means where nothing is hidden: of an object that was read */
  readonly absence: 'none' | 'unknown'
  /** null, too, where policies hide what it is taken from */
  readonly restricted: boolean
  /** names of nodes are hidden with them */
  readonly refersTo: 'node' | 'object' | null
  /** taken from measurements of the cluster, which are told as a whole or not at all */
  readonly measured?: boolean
}

/**
 * What a null of this column means.
 * @param filtered policies hide something of the cluster from whoever looks
 * @param hasUsage measurements of the cluster are for whoever looks
 */
export function absenceOf(
  { absence, restricted, refersTo, measured = false }: AbsenceRule,
  filtered: boolean,
  hasUsage = false,
): Absence {
  if (measured && hasUsage) return absence
  return filtered && (restricted || refersTo === 'node') ? 'hidden' : absence
}

/** Of a number about a cluster that is null, by how the last read of its list ended. */
export function absenceOfRead(
  part: { readonly outcome: string; readonly freshness: unknown } | null | undefined,
  filtered: boolean,
): Absence {
  if (!part) return 'unknown'
  if (filtered && part.freshness !== null) return 'hidden'
  const { outcome } = part
  return outcome === 'forbidden' || outcome === 'absent' || outcome === 'unreachable' ? outcome : 'unknown'
}
