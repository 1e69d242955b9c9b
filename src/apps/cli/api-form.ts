import type { FleetRowView, SourceView } from '#http'
import { momentOf } from '#model'

/** Fields whose names are data of a cluster, not ours. */
const named = new Set(['labels', 'annotations', 'byNamespace', 'aggregations', 'values'])
const isTime = (key: string): boolean => /At$|^(at|since|from|to)$/.test(key)

/** A row as programs are given it, in the manner of the documented HTTP API: names in snake_case, times in RFC 3339. */
export function apiForm(value: unknown, key = ''): unknown {
  if (typeof value === 'number' && isTime(key)) return new Date(value).toISOString()
  if (Array.isArray(value)) return value.map((item) => apiForm(item))
  if (typeof value !== 'object' || value === null || named.has(key)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [snakeCase(name), apiForm(item, name)]))
}

/** A row of a kind. Its values have names of ours where the kind is compiled in, and those of the MetricSource elsewhere. */
export function rowForm(row: FleetRowView, { columns, isDeclared }: SourceView): unknown {
  const values: Record<string, unknown> = { ...row.values }
  for (const { name, unit } of columns) {
    const of = values[name]
    const at = unit === 'time' && typeof of === 'number' ? momentOf(of) : undefined
    if (at !== undefined) values[name] = new Date(at).toISOString()
  }
  return { ...(apiForm(row) as object), values: isDeclared ? values : apiForm(values) }
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
