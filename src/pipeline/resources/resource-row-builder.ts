import type { KubeObject } from '#kube'
import { GrowingRows, type RowBuilder } from '#metricsource'
import { type JsonValue, type Table, tableRowId } from '#model'
import { NewestRows } from './newest-rows.ts'

/** Reads the value of one column; null: not known, or nothing. @param kind of the object: items of a list do not say it */
export type Read = (object: KubeObject, kind: string) => JsonValue

type Labels = Readonly<Record<string, string>>
const NO_LABELS: Labels = Object.freeze({})
/** Distinct maps of labels that are looked for; a cluster where every object has its own gains nothing by it. */
const MAX_SHARED = 20_000

interface RowsOf {
  readonly kind: string
  readonly isInKey: boolean
  /** where rows stand; default: where their objects do */
  readonly namespaceOf?: ((object: KubeObject) => string) | undefined
  /** of what ages: rows that are kept; default: all */
  readonly newest?: { readonly column: string; readonly most: number } | undefined
}

const namespaceOf = ({ metadata: { namespace = '' } }: KubeObject): string => namespace

/** Takes objects apart into columns; an object is garbage when `add` returns. */
export class ResourceRowBuilder implements RowBuilder {
  readonly #rows: GrowingRows | NewestRows
  readonly #readers: readonly Read[]
  readonly #kind: string
  /** appended to names, so that two kinds of one table may share a name */
  readonly #suffix: string
  readonly #namespaceOf: (object: KubeObject) => string
  readonly #shared = new Map<string, Labels>()
  /** by namespace and name of the object, where rows do not stand where their objects do */
  readonly #placed: Map<string, string> | undefined

  /** @param of which kind the objects are, whether the key of a row is its name with the kind behind a colon, where rows stand */
  constructor(fields: readonly string[], readers: readonly Read[], of: RowsOf) {
    this.#rows = of.newest ? new NewestRows(fields, of.newest) : new GrowingRows(fields)
    this.#readers = readers
    this.#kind = of.kind
    this.#suffix = of.isInKey ? `:${of.kind}` : ''
    this.#namespaceOf = of.namespaceOf ?? namespaceOf
    this.#placed = of.namespaceOf && new Map()
  }

  get size(): number {
    return this.#rows.size
  }

  get leftOut(): number {
    return this.#rows instanceof NewestRows ? this.#rows.leftOut : 0
  }

  add(object: KubeObject): void {
    const { name, namespace: own = '', labels } = object.metadata ?? {}
    const namespace = name && this.#namespaceOf(object)
    // A slash or a colon would make two rows one; no API server gives such a name.
    if (typeof name !== 'string' || name === '' || /[/:]/.test(name) || typeof namespace !== 'string') return
    if (this.#placed) this.#place(own, name, namespace)
    const values = this.#readers.map((read) => read(object, this.#kind) ?? null)
    this.#rows.add(namespace, name + this.#suffix, this.#sharedLabels(labels), values)
  }

  remove(namespace: string, name: string): void {
    const id = tableRowId(namespace, name)
    this.#rows.remove(this.#placed?.get(id) ?? namespace, name + this.#suffix)
    this.#placed?.delete(id)
  }

  /** One that moved leaves where it stood. */
  #place(own: string, name: string, namespace: string): void {
    const id = tableRowId(own, name)
    const stood = this.#placed?.get(id)
    if (stood !== undefined && stood !== namespace) this.#rows.remove(stood, name + this.#suffix)
    this.#placed?.set(id, namespace)
  }

  rows(): Table {
    return this.#rows.rows()
  }

  /** What a descriptor reads is optional in the API: a value that is not there is no fault of a declaration. */
  reports(): readonly [] {
    return []
  }

  #sharedLabels(given: unknown): Labels {
    if (typeof given !== 'object' || given === null) return NO_LABELS
    let key = ''
    for (const [name, value] of Object.entries(given)) if (typeof value === 'string') key += `${name}=${value}\n`
    const known = this.#shared.get(key)
    if (known) return known
    const entries = Object.entries(given).filter((one): one is [string, string] => typeof one[1] === 'string')
    const labels = Object.fromEntries(entries)
    if (this.#shared.size < MAX_SHARED) this.#shared.set(key, labels)
    return labels
  }
}
