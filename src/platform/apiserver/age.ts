/** How long something lasted, as kubectl shows ages: `45s`, `3m5s`, `2d4h`, `3y20d`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(minutes / 60)
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 24 * 8) return two(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  return days < 365 * 8 ? two(years, 'y', days % 365, 'd') : `${years}y`
}

const two = (major: number, unit: string, minor: number, small: string): string =>
  minor === 0 ? `${major}${unit}` : `${major}${unit}${minor}${small}`

/** The age of what happened at a timestamp; `<unknown>` without one, `<invalid>` where it cannot be read. */
export function ageSince(timestamp: unknown, nowMs: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>'
  const at = Date.parse(timestamp)
  return Number.isNaN(at) ? '<invalid>' : humanDuration(nowMs - at)
}
