/** Fields whose names are data of a cluster, not ours. */
const named = new Set(['labels', 'annotations', 'data', 'byNamespace', 'aggregations', 'values'])
const isTime = (key: string): boolean => /At$|^(at|since)$/.test(key)

/** A row as programs are given it, in the manner of the documented HTTP API: names in snake_case, times in RFC 3339. */
export function apiForm(value: unknown, key = ''): unknown {
  if (typeof value === 'number' && isTime(key)) return new Date(value).toISOString()
  if (Array.isArray(value)) return value.map((item) => apiForm(item))
  if (typeof value !== 'object' || value === null || named.has(key)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [snakeCase(name), apiForm(item, name)]))
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
