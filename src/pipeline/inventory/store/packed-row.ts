import { createHash } from 'node:crypto'
import { canonicalJson, compareTexts, type Row, rowWithAttributes } from '#extract'
import type { RowKey } from '#sinks'

/**
 * A row as it is kept: its attributes as one canonical text, which is compared and hashed at once and takes about what the objects would.
 * Never changed: a row that differs is another one.
 */
export interface PackedRow extends RowKey {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** canonical JSON */
  readonly attributes: string
  /** of the store, when it came or changed */
  readonly sequence: number
  /** SHA-256 as a text of 32 letters, made when it is first asked for */
  hash?: string
}

/** Texts that many rows share, kept once. Bounded: beyond, what comes is kept as it came. */
export class SharedTexts {
  static readonly #max = 10_000
  readonly #texts = new Map<string, string>()

  of(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size < SharedTexts.#max) this.#texts.set(text, text)
    return text
  }
}

/** The row as it is kept, since this sequence. */
export function packRow(row: Row, sequence: number, texts: SharedTexts): PackedRow {
  return {
    targetNamespace: texts.of(row.targetNamespace),
    targetName: texts.of(row.targetName),
    namespace: texts.of(row.namespace),
    name: row.name,
    uid: row.uid,
    group: texts.of(row.group ?? ''),
    version: texts.of(row.version),
    kind: texts.of(row.kind),
    attributes: canonicalJson(row.attributes),
    sequence,
  }
}

/** The row that was packed. */
export function unpackRow(packed: PackedRow): Row {
  const { group, version, kind, uid } = packed
  return {
    targetNamespace: packed.targetNamespace,
    targetName: packed.targetName,
    namespace: packed.namespace,
    name: packed.name,
    ...(group !== '' && { group }),
    version,
    kind,
    uid,
    attributes: JSON.parse(packed.attributes) as Row['attributes'], // we wrote it
  }
}

/** The row in its canonical JSON. */
export const packedJson = (row: PackedRow): string => rowWithAttributes(row, row.attributes)

/** Only the key of a row, which may hold more. */
export const rowKeyOf = ({ targetNamespace, targetName, namespace, name, uid }: RowKey): RowKey => ({
  targetNamespace,
  targetName,
  namespace,
  name,
  uid,
})

const KEY = ['targetNamespace', 'targetName', 'namespace', 'name', 'uid'] as const

/** The canonical order of rows, as far as it needs to go: no two rows of a target share all of these. */
export function compareKeys(a: RowKey, b: RowKey): number {
  for (const field of KEY) {
    const order = compareTexts(a[field], b[field])
    if (order !== 0) return order
  }
  return 0
}

/** Whether two rows of one key say the same. */
export const sameContent = (a: PackedRow, b: PackedRow): boolean =>
  a.attributes === b.attributes && a.version === b.version && a.kind === b.kind && a.group === b.group

/** SHA-256 of all that the row says, as a text with a letter per byte. */
export function hashOf(row: PackedRow): string {
  row.hash ??= createHash('sha256')
    .update(JSON.stringify([...KEY.map((field) => row[field]), row.group, row.version, row.kind]))
    .update(row.attributes)
    .digest('binary')
  return row.hash
}
