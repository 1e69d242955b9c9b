import { invariant } from '#model'
import {
  type Codec,
  type Decoding,
  type Encoding,
  kinds,
  ROW_COST,
  readColumn,
  writeColumn,
  wrongKind,
} from './column.ts'
import { WireError } from './errors.ts'
import type { Property, Shape } from './shape.ts'

type Row = object

/** One column of a table: a leaf of the rows' shape, named by its path, such as capacity.cpuCores. */
export interface Leaf {
  readonly name: string
  readonly optional: boolean
  readonly codec: Codec
  get(row: Row): unknown
}

/** Columns by the place of their leaf; undefined: not given. */
export type Columns = (readonly unknown[] | undefined)[]

/** Rows of one shape as columns and back. Objects that are always there are laid out flat. */
export class ColumnLayout {
  readonly leaves: readonly Leaf[]
  readonly #places: ReadonlyMap<string, number>
  readonly #make: (columns: Columns, count: number) => Row[]
  /** rows as the given ones, where columns are given with their values */
  readonly patched: (rows: readonly Row[], columns: Columns) => Row[]

  constructor(properties: readonly Property[], codecOf: (shape: Shape) => Codec) {
    const leaves: Leaf[] = []
    const plan = planOf(properties, { path: [], nullable: false }, ({ path, nullable }, { optional, shape }) => {
      invariant(!nullable || !(optional || shape.nullable), 'parts of a flat object are null only all together')
      // Rows are read and made by code generated from our own schemas, never from input: an object literal is ten times as
      // fast as setting each property by name, and keeps large rows out of V8's dictionary mode.
      const get = new Function('row', `return ${valueIn('row', path, nullable)}`) as Leaf['get']
      leaves.push({ name: path.join('.'), optional, codec: codecOf(nullable ? { ...shape, nullable } : shape), get })
      return leaves.length - 1
    })
    this.leaves = leaves
    this.#places = new Map(leaves.map(({ name }, place) => [name, place]))
    invariant(this.#places.size === leaves.length, 'paths of a shape are distinct')
    this.#make = new Function('columns', 'count', makeSource(plan, leaves)) as (
      columns: Columns,
      count: number,
    ) => Row[]
    this.patched = new Function('rows', 'columns', patchSource(plan, leaves)) as (
      rows: readonly Row[],
      columns: Columns,
    ) => Row[]
  }

  /** The place of a column; undefined: a newer writer knows it, we do not. */
  placeOf(name: string): number | undefined {
    return this.#places.get(name)
  }

  write(rows: readonly Row[], into: Encoding): void {
    into.charge(rows.length * ROW_COST)
    into.to.varint(rows.length === 0 ? 0 : this.leaves.length)
    if (rows.length === 0) return
    for (const { name, codec, get } of this.leaves) {
      into.text(name)
      into.to.sized(() => writeColumn(codec, rows.map(get), into))
    }
  }

  /** @throws WireError */
  read(count: number, out: Decoding): Row[] {
    out.charge(count * ROW_COST)
    if (count === 0) {
      for (let left = out.from.varint(); left > 0; left--) readSlot(out, ignore)
      return []
    }
    const columns: Columns = new Array(this.leaves.length).fill(undefined)
    for (let left = out.from.varint(); left > 0; left--) {
      readSlot(out, (name) => {
        const place = this.placeOf(name)
        if (place === undefined) return
        if (columns[place]) throw new WireError(`the column ${name} is there twice`)
        const { codec, optional } = this.leaves[place]!
        columns[place] = readColumn(codec, optional, count, out)
      })
    }
    for (let place = 0; place < columns.length; place++) columns[place] ??= this.#blanks(place, count)
    return this.#make(columns, count)
  }

  #blanks(place: number, count: number): unknown[] {
    const { codec, optional } = this.leaves[place]!
    return new Array(count).fill(optional ? undefined : codec.blank)
  }

  equal(a: Row, b: Row): boolean {
    return a === b || this.leaves.every((leaf) => leafEqual(leaf, a, b))
  }

  key(row: Row): string {
    const keys = this.leaves.map(({ get, codec }) => {
      const value = get(row)
      return value === undefined ? 'u' : value === null ? 'n' : codec.key(value)
    })
    // In brackets: a list of one row without columns is not an empty list.
    return `(${keys.join('')})`
  }

  blank(): Row {
    return this.#make(
      this.leaves.map((_, place) => this.#blanks(place, 1)),
      1,
    )[0]!
  }
}

export function leafEqual({ get, codec }: Leaf, a: Row, b: Row): boolean {
  const [x, y] = [get(a), get(b)]
  return Object.is(x, y) || (x != null && y != null && codec.equal(x, y))
}

const ignore = () => undefined

/** Reads a name and then what stands in its slot; whatever of it was not read is passed over. */
export function readSlot(out: Decoding, read: (name: string) => void): void {
  const { from } = out
  const name = out.text()
  const size = from.varint()
  const outer = from.end
  const end = from.take(size) + size
  from.at = end - size
  from.end = end
  read(name)
  from.at = end
  from.end = outer
}

/** Objects that are not always there, and those in lists and records: a table of their own. */
export function objectCodec(nullable: boolean, layout: ColumnLayout): Codec {
  return {
    nullable,
    blank: nullable ? null : layout.blank(),
    equal: (a, b) => layout.equal(a as Row, b as Row),
    key: (value) => layout.key(value as Row),
    write(values, into) {
      layout.write(values as Row[], into)
      return kinds.rows
    },
    read(kind, count, out) {
      if (kind !== kinds.rows) throw wrongKind(kind)
      return layout.read(count, out)
    },
  }
}

/** The properties of a row in order: leaves by their place, or objects. */
type Plan = readonly (LeafPlan | ObjectPlan)[]
type LeafPlan = Place & { readonly name: string; readonly leaf: number; readonly optional: boolean }
type ObjectPlan = Place & { readonly name: string; readonly plan: Plan }

/** Where something is in a row, and whether it, or what holds it, is null where its columns are. */
interface Place {
  readonly path: readonly string[]
  readonly nullable: boolean
}

function planOf(
  properties: readonly Property[],
  above: Place,
  leaf: (place: Place, property: Property) => number,
): Plan {
  return properties.map((property) => {
    const { name, optional, shape } = property
    const path = [...above.path, name]
    if (shape.kind === 'object' && !optional && (!shape.nullable || shape.flat)) {
      const place = { path, nullable: above.nullable || shape.nullable }
      return { name, ...place, plan: planOf(shape.properties, place, leaf) }
    }
    const place = { path, nullable: above.nullable }
    return { name, ...place, leaf: leaf(place, property), optional }
  })
}

const valueIn = (row: string, path: readonly string[], nullable: boolean) =>
  nullable ? `(${row}${path.map((name) => `?.[${JSON.stringify(name)}]`).join('')} ?? null)` : `${row}${access(path)}`
const access = (path: readonly string[]) => path.map((name) => `[${JSON.stringify(name)}]`).join('')
const declared = (leaves: readonly Leaf[]) =>
  leaves.map((_, place) => `const c${place} = columns[${place}];`).join('\n')
const leavesIn = (plan: Plan): LeafPlan[] => plan.flatMap((one) => ('plan' in one ? leavesIn(one.plan) : [one]))
const optionalIn = (plan: Plan): LeafPlan[] => leavesIn(plan).filter(({ optional }) => optional)

function makeSource(plan: Plan, leaves: readonly Leaf[]): string {
  const literal = (plan: Plan): string =>
    `{${plan
      .flatMap((one) => {
        const name = JSON.stringify(one.name)
        if ('plan' in one) return [`${name}: ${orNull(one, ({ leaf }) => `c${leaf}[i]`, literal(one.plan))}`]
        return one.optional ? [] : [`${name}: c${one.leaf}[i]`]
      })
      .join(', ')}}`
  return `${declared(leaves)}
    const made = new Array(count);
    for (let i = 0; i < count; i++) {
      const row = ${literal(plan)};
      ${optionalIn(plan)
        .map(({ path, leaf }) => `if (c${leaf}[i] !== undefined) row${access(path)} = c${leaf}[i];`)
        .join('\n')}
      made[i] = row;
    }
    return made;`
}

/** An object that may be null is so where one of its columns is. */
function orNull({ nullable, plan }: ObjectPlan, value: (leaf: LeafPlan) => string, literal: string): string {
  if (!nullable) return literal
  const areNull = leavesIn(plan).map((leaf) => `${value(leaf)} === null`)
  return `(${areNull.join(' || ')} ? null : ${literal})`
}

/** An object none of whose columns is given stays the very object it was. */
function patchSource(plan: Plan, leaves: readonly Leaf[]): string {
  const old = ({ path, nullable }: Place) => valueIn('old', path, nullable)
  const value = (one: LeafPlan) => `(c${one.leaf} === undefined ? ${old(one)} : c${one.leaf}[i])`
  const isKept = (plan: Plan) =>
    optionalIn(plan).length > 0
      ? 'false'
      : leavesIn(plan)
          .map(({ leaf }) => `c${leaf} === undefined`)
          .join(' && ') || 'true'
  const literal = (plan: Plan): string =>
    `{${plan
      .flatMap((one) => {
        const name = JSON.stringify(one.name)
        if ('plan' in one)
          return [`${name}: (${isKept(one.plan)}) ? ${old(one)} : ${orNull(one, value, literal(one.plan))}`]
        return one.optional ? [] : [`${name}: ${value(one)}`]
      })
      .join(', ')}}`
  return `${declared(leaves)}
    const made = new Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      const old = rows[i];
      const row = ${literal(plan)};
      ${optionalIn(plan)
        .map((one) => `if (${value(one)} !== undefined) row${access(one.path)} = ${value(one)};`)
        .join('\n')}
      made[i] = row;
    }
    return made;`
}
