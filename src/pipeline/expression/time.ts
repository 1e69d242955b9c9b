const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/
const LONGEST_TIME = 64
const FIRST = Date.parse('0000-01-01T00:00:00Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

/** Milliseconds since the Unix epoch of an RFC 3339 text, with a fraction where the text has one. NaN where it is none. */
export function parseTime(text: string): number {
  if (text.length > LONGEST_TIME) return Number.NaN
  const match = RFC3339.exec(text)
  if (!match) return Number.NaN
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHour = '0', offsetMinute = '0'] = match
  const moment = new Date(0)
  moment.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  const isDay = moment.getUTCMonth() === Number(month) - 1 && moment.getUTCDate() === Number(day)
  const isTime = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60
  if (!isDay || !isTime || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return Number.NaN
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1)
  const minutes = Number(hour) * 60 + Number(minute) - offset
  return moment.getTime() + minutes * 60_000 + Number(second) * 1000 + Number(fraction ?? 0) * 1000
}

/** RFC 3339, UTC, seconds; undefined outside of the years 0 to 9999. */
export function formatTime(ms: number): string | undefined {
  if (!(ms >= FIRST && ms <= LAST)) return undefined
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
