const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/

/**
 * Reads a time of RFC 3339 with `T` and `Z` or an offset, the only form bounds of a policy have.
 * @returns ms since the Unix epoch, what is below a millisecond cut off; undefined where the text is no such time
 */
export function parseTime(text: string): number | undefined {
  const match = RFC3339.exec(text)
  if (!match) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const [fraction = '', sign = '+', offsetHours = '0', offsetMinutes = '0'] = match.slice(7)
  const isClock = hour < 24 && minute < 60 && second < 60 && Number(offsetHours) < 24 && Number(offsetMinutes) < 60
  // Written this way, years before 100 are not taken for those of the last century.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that its month does not have has become one of the next.
  if (!isClock || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  const offsetMs = (sign === '-' ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000
  const ms = Number(fraction.slice(0, 3).padEnd(3, '0'))
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 + ms - offsetMs
}

/** RFC 3339 in whole seconds, as the documents have it. */
export const writeTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`
