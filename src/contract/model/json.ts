/** Any JSON. Numbers are finite; 0 and -0 are one number. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [name: string]: JsonValue }

/** Lists and objects in each other, at most; a value nested deeper is refused. */
export const MAX_JSON_DEPTH = 32

/** Whether it is JSON of finite numbers, without holes, nested at most MAX_JSON_DEPTH deep. */
export function isJson(value: unknown, depth = 0): value is JsonValue {
  if (typeof value === 'string' || value === null || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth === MAX_JSON_DEPTH) return false
  const values = Array.isArray(value) ? value : Object.values(value)
  // Not `every`, which passes over holes.
  for (let i = 0; i < values.length; i++) if (!isJson(values[i], depth + 1)) return false
  return true
}

/** Deep equality of two values of JSON's shapes; the order of names does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!sameJson(a[i], b[i])) return false
    return true
  }
  return sameMembers(a as Members, b as Members)
}

// Every node of every round passes here: no lists of names are made.
function sameMembers(a: Members, b: Members): boolean {
  let more = 0
  for (const name in a) {
    const other = b[name]
    // Nothing else that objects inherit equals what JSON holds.
    if ((other === undefined || name === '__proto__') && !Object.hasOwn(b, name)) return false
    if (!sameJson(a[name], other)) return false
    more++
  }
  for (const _ in b) more--
  return more === 0
}

type Members = Readonly<Record<string, unknown>>

/** Bytes it keeps on the heap of V8 (64 bit), about, besides the place that points at it. */
export function bytesOfJson(value: JsonValue): number {
  if (typeof value === 'string') return 16 + Math.ceil(value.length / 8) * 8
  if (typeof value !== 'object' || value === null) return 0
  let bytes = 32
  for (const one of Object.values(value)) bytes += 8 + bytesOfJson(one)
  return bytes
}

/** The value where it is a scalar; a list or an object is its compact JSON. */
export const scalarOf = (value: JsonValue): string | number | boolean | null =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : value

/** JSON that is no scalar as people read it in a line: fields of an object behind their names; what is nested deeper is compact JSON. */
export function lineOf(value: object): string {
  if (Array.isArray(value)) return JSON.stringify(value)
  const text = (one: unknown) => (typeof one === 'string' ? one : JSON.stringify(one))
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${text(one)}`)
    .join(', ')
}
