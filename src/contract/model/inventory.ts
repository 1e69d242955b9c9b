import { isJson, type JsonValue } from './json.ts'
import type { SourceId } from './rows.ts'

/** Rows of inventory: what targets chose of any kind, a row for each object and target. */
export const INVENTORY: SourceId = 'inventory'

/** What a row of inventory holds besides its place. `note` says why a row has no attributes here. */
export const inventoryFields = ['kind', 'apiVersion', 'target', 'attributes', 'note', 'uid'] as const

/** No name of an object has this letter, whatever its kind. */
const BETWEEN = '%'

/**
 * Unique for each object and target; nothing in it is a slash.
 * @param mark of the target, without its name: who sees the object need not see the target
 */
export const inventoryKey = (name: string, mark: string, uid: string): string =>
  [name, mark, uid.replaceAll('/', '_')].join(BETWEEN)

/** What the object is called whose row has this key. */
export function inventoryName(key: string): string {
  const end = key.indexOf(BETWEEN)
  return end < 0 ? key : key.slice(0, end)
}

/** Longest attributes of a row, as JSON in UTF-16 units: a hub refuses a batch with more. */
export const MAX_ATTRIBUTES = 16_000

/** The attributes of a row, of their JSON; undefined: a hub does not take them. */
export function attributesOf(json: string): JsonValue | undefined {
  if (json.length > MAX_ATTRIBUTES) return undefined
  const value: unknown = JSON.parse(json)
  return isJson(value) ? value : undefined
}
