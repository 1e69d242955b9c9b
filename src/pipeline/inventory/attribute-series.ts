import type { KollectProfile } from '#kinds'
import type { Series } from '#runtime'
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
/** Of a value as a label, UTF-16 units. */
const MAX_LABEL = 256
const COUNT = 'object_count'
const OWN_LABELS: ReadonlySet<string> = new Set(['profile', 'gvk', 'series'])

interface Divided {
  readonly labels: Readonly<Record<string, string>>
  value: number
}

/** Of one profile and kind. */
class Group {
  count = 0
  readonly sums = new Map<string, number>()
  readonly divided = new Map<string, Map<string, Divided>>()

  add(series: string, value: number): void {
    this.sums.set(series, (this.sums.get(series) ?? 0) + value)
  }

  divide(series: string, labels: Readonly<Record<string, string>>, value: number): void {
    const combinations = this.divided.get(series) ?? new Map<string, Divided>()
    this.divided.set(series, combinations)
    const key = JSON.stringify(labels)
    const known = combinations.get(key)
    if (known) known.value += value
    else combinations.set(key, { labels, value })
  }
}

/**
 * Adds up attributes of rows, by profile and kind: those that `spec.metrics` names, or else every one that is a number. A text that is a
 * number counts as one; what is none is passed over, and a sum of nothing is no series. Pauses after each row: there may be many.
 */
export function* attributeSeries(sources: Iterable<SeriesSource>): Generator<undefined, AttributeSeries> {
  const groups = new Map<string, Group>()
  const groupOf = (profile: string, gvk: string): Group => {
    const key = `${profile}\n${gvk}`
    const group = groups.get(key) ?? new Group()
    groups.set(key, group)
    return group
  }
  for (const { profile, spec, kinds, rows } of sources) {
    for (const kind of kinds) groupOf(profile, kind)
    for (const row of rows) {
      addRow(groupOf(profile, kindOf(row)), spec.metrics ?? [], row)
      yield
    }
  }
  const all = { sums: [] as Series[], divided: [] as Series[], leftOut: [] as Series[] }
  for (const [key, group] of groups) {
    const [profile = '', gvk = ''] = key.split('\n')
    all.sums.push({ labels: { profile, gvk, series: COUNT }, value: group.count })
    for (const [series, value] of group.sums) all.sums.push({ labels: { profile, gvk, series }, value })
    for (const [series, combinations] of group.divided) {
      // By their order, so that each sample has the same ones.
      const sorted = [...combinations].sort(([a], [b]) => (a < b ? -1 : 1))
      for (const [, { labels, value }] of sorted.slice(0, MAX_COMBINATIONS))
        all.divided.push({ labels: { ...labels, profile, gvk, series }, value })
      all.leftOut.push({ labels: { profile, gvk, series }, value: Math.max(0, sorted.length - MAX_COMBINATIONS) })
    }
  }
  return all
}

/** As a row's kind stands in a label: `apps/v1/Deployment`, `v1/Pod`. */
export const kindOf = ({ group, version, kind }: { group?: string; version: string; kind: string }): string =>
  [...(group ? [group] : []), version, kind].join('/')

function addRow(group: Group, metrics: NonNullable<SeriesSource['spec']['metrics']>, row: PackedRow): void {
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
    if (labels.length === 0) continue
    group.divide(
      name,
      Object.fromEntries(labels.map((label) => [labelName(label), labelValue(attributes[label])])),
      number,
    )
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

function labelValue(value: unknown): string {
  if (value === undefined || value === null) return ''
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_LABEL)
}
