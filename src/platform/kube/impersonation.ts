import type { Impersonation } from './types.ts'

/** Header values are bytes: names that are not ASCII travel as UTF-8. */
const asBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** The headers that say as whom a call is made. */
export function impersonationHeaders({
  user,
  groups = [],
  uid,
  extra = {},
}: Impersonation): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = { 'impersonate-user': asBytes(user) }
  if (groups.length > 0) headers['impersonate-group'] = groups.map(asBytes)
  if (uid !== undefined) headers['impersonate-uid'] = asBytes(uid)
  // The server reads keys in small letters and undoes the percent encoding.
  for (const [key, values] of Object.entries(extra))
    headers[`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`] = values.map(asBytes)
  return headers
}
