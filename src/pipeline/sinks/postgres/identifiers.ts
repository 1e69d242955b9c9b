import { createHash } from 'node:crypto'

/** Longest name in bytes; a longer one would be cut without a word. */
const LONGEST = 63

/** A name as it stands in a statement, whatever is in it. */
export const quoted = (name: string): string => `"${name.replaceAll('\0', '').replaceAll('"', '""')}"`

/** The relations of a sink, quoted and with their schema. */
export interface Tables {
  readonly schema: string
  /** names without quotes, as the catalogue has them */
  readonly names: {
    readonly resources: string
    readonly claims: string
    readonly writers: string
    readonly view: string
  }
  readonly resources: string
  readonly claims: string
  readonly writers: string
  readonly view: string
}

/** All relations of a sink are named after the one that its spec names. */
export function tablesOf(schema: string, table: string): Tables {
  const names = {
    resources: table,
    claims: suffixed(table, '_claims'),
    writers: suffixed(table, '_writers'),
    view: suffixed(table, '_view'),
  }
  const full = (name: string) => `${quoted(schema)}.${quoted(name)}`
  return {
    schema,
    names,
    resources: full(names.resources),
    claims: full(names.claims),
    writers: full(names.writers),
    view: full(names.view),
  }
}

/** A name that would be too long is cut, and told from others that begin alike by a hash. */
export function suffixed(name: string, suffix: string): string {
  const whole = `${name}${suffix}`
  if (Buffer.byteLength(whole) <= LONGEST) return whole
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return `${name.slice(0, LONGEST - suffix.length - 9)}_${hash}${suffix}`
}
