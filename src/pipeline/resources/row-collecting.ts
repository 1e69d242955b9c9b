import type { KubeObject } from '#kube'
import type { Collecting } from '#metricsource'
import { type CustomRow, type CustomValue, customRowId, invariant, Table } from '#model'
import type { Read } from './define.ts'

type Labels = Readonly<Record<string, string>>
const NO_LABELS: Labels = Object.freeze({})
/** Distinct maps of labels that are looked for; a cluster where every object has its own gains nothing by it. */
const MAX_SHARED = 20_000

/** Takes objects apart into columns; an object is garbage when `add` returns. */
export class RowCollecting implements Collecting {
  readonly #fields: readonly string[]
  readonly #readers: readonly Read[]
  readonly #kind: string
  /** appended to names, so that two kinds of one table may share a name */
  readonly #suffix: string
  readonly #namespaces: string[] = []
  readonly #names: string[] = []
  readonly #labels: Labels[] = []
  readonly #values: CustomValue[][]
  readonly #shared = new Map<string, Labels>()
  readonly #removed = new Set<string>()
  #rows: Table | undefined

  /** @param of which kind the objects are, and whether the key of a row is its name with the kind behind a colon */
  constructor(fields: readonly string[], readers: readonly Read[], of: { kind: string; isInKey: boolean }) {
    this.#fields = fields
    this.#readers = readers
    this.#kind = of.kind
    this.#suffix = of.isInKey ? `:${of.kind}` : ''
    this.#values = fields.map(() => [])
  }

  get size(): number {
    return this.#names.length - this.#removed.size
  }

  add(object: KubeObject): void {
    const { name, namespace = '', labels } = object.metadata ?? {}
    // A slash or a colon would make two rows one; no API server gives such a name.
    if (typeof name !== 'string' || name === '' || /[/:]/.test(name) || typeof namespace !== 'string') return
    this.#rows = undefined
    this.#namespaces.push(namespace)
    this.#names.push(name + this.#suffix)
    this.#labels.push(this.#sharedLabels(labels))
    for (const [place, read] of this.#readers.entries()) this.#values[place]?.push(read(object, this.#kind))
  }

  remove(namespace: string, name: string): void {
    this.#rows = undefined
    this.#removed.add(customRowId(namespace, name + this.#suffix))
  }

  rows(): Table {
    if (this.#rows) return this.#rows
    const rows = Table.from({
      fields: this.#fields,
      namespaces: this.#namespaces,
      names: this.#names,
      labels: this.#labels,
      values: this.#values,
    })
    invariant(rows, 'columns are of equal length and hold scalars')
    this.#rows = this.#removed.size === 0 ? rows : rows.patch(Table.empty, this.#removed)
    return this.#rows
  }

  /** What a descriptor reads is optional in the API: a value that is not there is no fault of a declaration. */
  reports(): readonly [] {
    return []
  }

  row(object: KubeObject): CustomRow {
    const values = this.#fields.map(
      (field, place) => [field, this.#readers[place]?.(object, this.#kind) ?? null] as const,
    )
    const { name, namespace = '', labels = NO_LABELS } = object.metadata
    return { namespace, name: name + this.#suffix, labels, values: Object.fromEntries(values) }
  }

  #sharedLabels(given: unknown): Labels {
    if (typeof given !== 'object' || given === null) return NO_LABELS
    const labels = Object.fromEntries(
      Object.entries(given).filter((one): one is [string, string] => typeof one[1] === 'string'),
    )
    const key = JSON.stringify(labels)
    const known = this.#shared.get(key)
    if (known) return known
    if (this.#shared.size < MAX_SHARED) this.#shared.set(key, labels)
    return labels
  }
}
