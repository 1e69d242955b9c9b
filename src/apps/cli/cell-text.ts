import type { JsonValue } from '#model'

/**
 * A list or an object in the cell of a table: `a,b`, `key=value,…`, and of conditions `type=status,…`. What its items hold besides
 * is for `-o yaml`.
 * @returns null where there is nothing in it
 */
export function cellText(value: JsonValue): string | null {
  if (Array.isArray(value)) return value.map(itemText).filter(Boolean).join(',') || null
  if (!isObject(value)) return scalarText(value) || null
  const pairs = Object.entries(value).map(
    ([name, of]) => `${name}=${isObject(of) ? `(${cellText(of) ?? ''})` : itemText(of)}`,
  )
  return pairs.join(',') || null
}

type JsonObject = Readonly<Record<string, JsonValue>>
const isObject = (value: JsonValue): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const scalarText = (value: JsonValue): string => (value === null ? '' : String(value))

function itemText(item: JsonValue): string {
  if (Array.isArray(item)) return item.map(itemText).join('/')
  if (!isObject(item)) return scalarText(item)
  const { type, status } = item
  if (typeof type === 'string' && typeof status === 'string') return `${type}=${status}`
  const values = Object.values(item).map(itemText)
  return values.length === 2 ? values.join('=') : values.filter(Boolean).join('/')
}
