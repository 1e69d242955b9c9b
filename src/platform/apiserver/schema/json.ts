export type Json = Record<string, unknown>

export const isMap = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value of an own field; what an object inherits is never data. */
export const own = (map: Json, key: string): unknown => (Object.hasOwn(map, key) ? map[key] : undefined)

/** Sets a field as data even where its name is `__proto__`, which an assignment would take for the prototype. */
export function setOwn(map: Json, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
  else map[key] = value
}

/** Whether two JSON values say the same; the order of fields does not matter. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => equalJson(item, b[at]))
  if (!isMap(a) || !isMap(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key], b[key]))
  )
}

/** The same of values in memory: a field that is undefined is none. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => sameJson(item, b[at]))
  if (!isMap(a) || !isMap(b)) return false
  for (const key of Object.keys(a)) if (!sameJson(a[key], own(b, key))) return false
  for (const key of Object.keys(b)) if (b[key] !== undefined && !Object.hasOwn(a, key)) return false
  return true
}

/** JSON with sorted keys, so that equal values are equal texts. */
export function stableText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join(',')}]`
  if (!isMap(value)) return JSON.stringify(value) ?? 'null'
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${stableText(value[key])}`)
  return `{${fields.join(',')}}`
}
