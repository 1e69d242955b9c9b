/** Units of declared fields, as files and pages write them. */

/** How a unit is named in the heading of a file; none: the number has no unit, or the value is written as a moment. */
export const unitText: Readonly<Partial<Record<string, string>>> = {
  bytes: 'bytes',
  cores: 'cores',
  percent: '%',
  seconds: 's',
}

/** ms since the Unix epoch, of a text or of Unix seconds or milliseconds; undefined where it is no moment. */
export function momentOf(value: string | number | boolean | null): number | undefined {
  if (typeof value === 'number') return value > 0 ? (value < 1e11 ? value * 1000 : value) : undefined
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d/.test(value)) return undefined
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : at
}
