import type { Finding } from '#metricsource'

/** A finding in one line: where, what, and what was probably meant. Places are counted from 1, as people do. */
export function findingText({ path, message, at, suggestion }: Finding): string {
  const place = at && at.from > 0 ? ` at ${at.from + 1}` : ''
  const meant = suggestion !== undefined && !message.includes(suggestion) ? `; did you mean "${suggestion}"?` : ''
  return `${path ? `${path}: ` : ''}${message}${place}${meant}`
}
