/** One object as a profile shows it. Keys stand in the order of their canonical JSON. */
export interface ObjectRow {
  /** '' for objects of the whole cluster */
  readonly namespace: string
  readonly name: string
  /** absent for the core group */
  readonly group?: string
  readonly version: string
  readonly kind: string
  readonly uid: string
  readonly attributes: Readonly<Record<string, unknown>>
}

/** A row, and the target that chose the object. */
export interface Row extends ObjectRow {
  readonly targetNamespace: string
  readonly targetName: string
}

const ORDER = ['targetNamespace', 'targetName', 'namespace', 'name', 'uid', 'group', 'version', 'kind'] as const

/** The canonical order of rows: by target, then by object. */
export function compareRows(a: Row, b: Row): number {
  for (const key of ORDER) {
    const order = compareTexts(a[key] ?? '', b[key] ?? '')
    if (order !== 0) return order
  }
  return 0
}

/** By their bytes in UTF-8. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  // Without surrogates UTF-16 orders as UTF-8 does.
  return SURROGATE.test(a) || SURROGATE.test(b) ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : a < b ? -1 : 1
}
const SURROGATE = /[\ud800-\udfff]/

/** A row in its canonical JSON: one text for one meaning, whatever order keys came in. @see docs/guide/collect.md */
export const canonicalRow = (row: Row): string => rowWithAttributes(row, canonicalJson(row.attributes))

/** The same of a row whose attributes are canonical JSON already. */
export function rowWithAttributes(
  { targetNamespace, targetName, namespace, name, group, version, kind, uid }: Omit<Row, 'attributes'>,
  attributes: string,
): string {
  const known = {
    targetNamespace,
    targetName,
    namespace,
    name,
    ...(group && { group }),
    version,
    kind,
    uid,
  }
  return `${escaped(JSON.stringify(known)).slice(0, -1)},"attributes":${attributes}}`
}

/** Compact JSON with the keys of every map in ascending order of their bytes, escaped as Go does. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return escaped(JSON.stringify(value ?? null))
  const map = value as Readonly<Record<string, unknown>>
  const keys = Object.keys(map).filter((key) => map[key] !== undefined)
  return `{${keys
    .sort(compareTexts)
    .map((key) => `${escaped(JSON.stringify(key))}:${canonicalJson(map[key])}`)
    .join(',')}}`
}

const UNSAFE = /[<>&\u2028\u2029]/g
const escaped = (json: string): string =>
  UNSAFE.test(json)
    ? json.replace(UNSAFE, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : json
