/** A span as Go prints it, to the millisecond: `0s`, `500ms`, `1.234s`, `1m1.5s`, `1h0m1s`. */
export function goDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole === 0) return '0s'
  if (whole < 1_000) return `${whole}ms`
  const hours = Math.floor(whole / 3_600_000)
  const minutes = Math.floor((whole % 3_600_000) / 60_000)
  const seconds = `${(whole % 60_000) / 1_000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
