import { createHash } from 'node:crypto'
import type { KollectProfile } from '#kinds'
import type { Series } from '#runtime'
import { cutText } from './cut-text.ts'
import type { PackedRow } from './store/index.ts'

/** Rows of one target, and what its profile says of series. */
export interface SeriesSource {
  /** `namespace/name` of the profile */
  readonly profile: string
  readonly spec: Pick<KollectProfile['spec'], 'metrics'>
  /** kinds that count although they have no row, as group/version/Kind */
  readonly kinds: readonly string[]
  readonly rows: readonly PackedRow[]
}

/** All series of a moment. */
export interface AttributeSeries {
  readonly sums: readonly Series[]
  /** the same sums, divided by the values of attributes */
  readonly divided: readonly Series[]
  /** by profile, gvk and series that are divided: how many combinations of values have none of their own */
  readonly leftOut: readonly Series[]
}

/** Combinations of values of one sum; of more the first in order have a series. */
const MAX_COMBINATIONS = 200
/** Those without a series are counted up to here. */
const MAX_LEFT_OUT = 1000
/** Series of all profiles of a namespace; of more sums the first in order have theirs. */
const MAX_SERIES = 5000
/** For dividing all sums of a namespace, ms of each sample: where that is not enough none of it is divided. */
const MAX_DIVIDING_MS = 1000
/** The same of all namespaces, which have equal parts of it: a scraper waits ten seconds. */
const ALL_DIVIDING_MS = 4000
/** Of combinations of a namespace that are held at once, UTF-16 units; and of all namespaces. */
const MAX_TEXT = 2 * 2 ** 20
const ALL_TEXT = 16 * 2 ** 20
/** What a combination takes besides its text, and one that is but counted, in such units. */
const HELD = 60
const COUNTED = 10
/** Of a value as a label, UTF-16 units. */
const MAX_LABEL = 256
const COUNT = 'object_count'
const OWN_LABELS: ReadonlySet<string> = new Set(['profile', 'gvk', 'series'])

interface Divided {
  readonly values: readonly string[]
  value: number
}

/** What one of so many namespaces may take for dividing its sums. */
class Share {
  #ms: number
  #text: number
  #isOver = false

  constructor(namespaces: number) {
    this.#ms = Math.min(MAX_DIVIDING_MS, ALL_DIVIDING_MS / namespaces)
    this.#text = Math.min(MAX_TEXT, ALL_TEXT / namespaces)
  }

  /** Once it was too much it stays so. */
  get isOver(): boolean {
    return this.#isOver
  }

  took(ms: number): void {
    this.#ms -= ms
    this.#isOver ||= this.#ms < 0
  }

  /** @param units less than 0 gives some back */
  holds(units: number): void {
    this.#text -= units
    this.#isOver ||= this.#text < 0
  }
}

/** One sum by the values of its labels: of ever more combinations those that come first in order. */
class Combinations {
  readonly labels: readonly string[]
  readonly #share: Share
  readonly #first = new Map<string, Divided>()
  /** of those that have no place, by digest */
  readonly #leftOut = new Set<number>()
  /** the last in order that has a place, once some have none */
  #last: string | undefined

  constructor(labels: readonly string[], share: Share) {
    this.labels = labels
    this.#share = share
  }

  add(values: readonly string[], value: number): void {
    const key = values.join('\0')
    const known = this.#first.get(key)
    if (known) known.value += value
    else if (this.#last !== undefined && key > this.#last) this.#leaveOut(key)
    else {
      this.#first.set(key, { values, value })
      this.#share.holds(key.length + HELD)
      // Now and then, as sorting takes longer than adding.
      if (this.#first.size > 2 * MAX_COMBINATIONS) this.sorted()
    }
  }

  /** Those that have a series, in order. */
  sorted(): readonly Divided[] {
    const keys = [...this.#first.keys()].sort()
    for (const key of keys.splice(MAX_COMBINATIONS)) {
      this.#first.delete(key)
      this.#share.holds(-key.length - HELD)
      this.#leaveOut(key)
    }
    if (this.#leftOut.size > 0) this.#last = keys.at(-1)
    return keys.map((key) => this.#first.get(key) as Divided) // they are its keys
  }

  /** How many have none, at most as many as are counted. */
  get leftOut(): number {
    return this.#leftOut.size
  }

  /** How many there are, of those without a series at most as many as are counted. */
  get size(): number {
    return this.#first.size + this.#leftOut.size
  }

  #leaveOut(key: string): void {
    if (this.#leftOut.size >= MAX_LEFT_OUT) return
    this.#leftOut.add(digestOf(key))
    this.#share.holds(COUNTED)
  }
}

const digestOf = (text: string): number => createHash('sha256').update(text).digest().readUIntBE(0, 6)

/** Of one profile and kind. */
class Group {
  count = 0
  readonly sums = new Map<string, number>()
  readonly #share: Share
  #divided = new Map<string, Combinations>()
  #undivided: readonly (readonly [series: string, combinations: number])[] = []

  constructor(share: Share) {
    this.#share = share
  }

  add(series: string, value: number): void {
    this.sums.set(series, (this.sums.get(series) ?? 0) + value)
  }

  divide(series: string, labels: readonly string[], values: readonly string[], value: number): void {
    const combinations = this.#divided.get(series) ?? new Combinations(labels, this.#share)
    this.#divided.set(series, combinations)
    combinations.add(values, value)
  }

  /** Lets go of what is divided. */
  giveUp(): void {
    if (this.#divided.size === 0) return
    this.#undivided = [...this.#divided].map(([series, { size }]) => [series, size])
    this.#divided = new Map()
  }

  get divided(): Iterable<readonly [series: string, Combinations]> {
    return this.#divided
  }

  /** Sums that are not divided, and how many combinations they had until then. */
  get undivided(): Iterable<readonly [series: string, combinations: number]> {
    return this.#undivided
  }
}

/**
 * Adds up attributes of rows, by profile and kind: those that `spec.metrics` names, or else every one that is a number. A text that is a
 * number counts as one; what is none is passed over, and a sum of nothing is no series. Pauses after each row: there may be many.
 */
export function* attributeSeries(sources: Iterable<SeriesSource>): Generator<undefined, AttributeSeries> {
  const byNamespace = new Map<string, SeriesSource[]>()
  const dividing = new Set<string>()
  for (const source of sources) {
    const namespace = source.profile.slice(0, source.profile.indexOf('/'))
    byNamespace.set(namespace, [...(byNamespace.get(namespace) ?? []), source])
    if (source.spec.metrics?.some(({ labels = [] }) => labels.length > 0)) dividing.add(namespace)
  }
  const all = { sums: [] as Series[], divided: [] as Series[], leftOut: [] as Series[] }
  // One after the other: what is held for dividing is that of one namespace.
  for (const [, own] of [...byNamespace].sort(inOrder)) yield* addNamespace(all, own, new Share(dividing.size))
  return all
}

const inOrder = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

function* addNamespace(
  all: { readonly sums: Series[]; readonly divided: Series[]; readonly leftOut: Series[] },
  sources: readonly SeriesSource[],
  share: Share,
): Generator<undefined, void> {
  const groups = new Map<string, Group>()
  const groupOf = (profile: string, gvk: string): Group => {
    const key = `${profile}\n${gvk}`
    const group = groups.get(key) ?? new Group(share)
    groups.set(key, group)
    return group
  }
  const giveUp = () => {
    if (share.isOver) for (const group of groups.values()) group.giveUp()
  }
  for (const { profile, spec, kinds, rows } of sources) {
    for (const kind of kinds) groupOf(profile, kind)
    for (const row of rows) {
      const began = performance.now()
      const isDivided = !share.isOver
      addRow(groupOf(profile, kindOf(row)), spec.metrics ?? [], row, isDivided)
      share.took(performance.now() - began)
      if (isDivided) giveUp()
      yield
    }
  }
  let room = MAX_SERIES
  for (const [key, group] of [...groups].sort(inOrder)) {
    const [profile = '', gvk = ''] = key.split('\n')
    all.sums.push({ labels: { profile, gvk, series: COUNT }, value: group.count })
    for (const [series, value] of group.sums) all.sums.push({ labels: { profile, gvk, series }, value })
    for (const [series, value] of group.undivided) all.leftOut.push({ labels: { profile, gvk, series }, value })
    for (const [series, combinations] of group.divided) {
      const sorted = combinations.sorted()
      const isDivided = sorted.length <= room
      if (isDivided) room -= sorted.length
      for (const { values, value } of isDivided ? sorted : [])
        all.divided.push({ labels: { ...labelsOf(combinations.labels, values), profile, gvk, series }, value })
      const value = isDivided ? combinations.leftOut : combinations.size
      all.leftOut.push({ labels: { profile, gvk, series }, value })
      yield
    }
  }
}

const labelsOf = (names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']))

/** As a row's kind stands in a label: `apps/v1/Deployment`, `v1/Pod`. */
export const kindOf = ({ group, version, kind }: { group?: string; version: string; kind: string }): string =>
  [...(group ? [group] : []), version, kind].join('/')

function addRow(
  group: Group,
  metrics: NonNullable<SeriesSource['spec']['metrics']>,
  row: PackedRow,
  isDivided: boolean,
): void {
  group.count++
  const attributes = JSON.parse(row.attributes) as Readonly<Record<string, unknown>> // we wrote it
  if (metrics.length === 0) {
    for (const [name, value] of Object.entries(attributes)) {
      const number = numberOf(value)
      if (number !== undefined && name !== COUNT) group.add(name, number)
    }
    return
  }
  for (const { name, path, labels = [] } of metrics) {
    const number = numberOf(attributes[path])
    if (number === undefined || name === COUNT) continue
    group.add(name, number)
    if (labels.length === 0 || !isDivided) continue
    const { names, attributes: taken } = columnsOf(labels)
    const values = taken.map((attribute) => labelValue(attributes[attribute]))
    group.divide(name, names, values, number)
  }
}

const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/

function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && NUMBER.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** The name of an attribute as Prometheus lets a label be called, and as none of ours is. */
function labelName(attribute: string): string {
  const name = attribute.replace(/\W/g, '_')
  return OWN_LABELS.has(name) || /^(?:\d|__)/.test(name) ? `attribute_${name}` : name
}

interface Columns {
  readonly names: readonly string[]
  readonly attributes: readonly string[]
}
/** Of the labels of a metric, which stay the same list. */
const known = new WeakMap<readonly string[], Columns>()

/** Labels and the attributes they are of: of two that are called alike the last one. */
function columnsOf(labels: readonly string[]): Columns {
  const columns = known.get(labels) ?? columnsMade(labels)
  known.set(labels, columns)
  return columns
}

function columnsMade(labels: readonly string[]): Columns {
  const byName = new Map(labels.map((label) => [labelName(label), label]))
  return { names: [...byName.keys()], attributes: [...byName.values()] }
}

function labelValue(value: unknown): string {
  if (value === undefined || value === null) return ''
  return cutText(typeof value === 'string' ? value : JSON.stringify(value), MAX_LABEL)
}
