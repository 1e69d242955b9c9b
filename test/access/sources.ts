import type { ObjectsOfEvents } from '#access'
import type { SourceCatalog } from '#catalog'
import { type CompiledSource, compileMetricSource, type ResourceDescriptor } from '#metricsource'
import { type Aggregated, invariant, type JsonValue, type Table } from '#model'
import { resources } from '#resources'

/** Types that the worlds collect. Names are those that policies use, also where no declaration could be called so. */
export const declaredTypes = ['__proto__', 'deployments', 'pvc', 'vm']

/** Names of kinds that are compiled in and that a MetricSource may take; `pods` is reserved. */
export const takeable = resources.filter(({ access }) => access !== 'pods').map(({ typeName }) => typeName)

/** What events may be about, each under its own name or where a MetricSource has that. */
export const objectsOfEvents = (taken: readonly string[]): readonly ObjectsOfEvents[] =>
  resources.flatMap(({ id, typeName, access, targets }) =>
    access === 'pods' || access === 'namespaced'
      ? [
          {
            ...{ name: typeName, rule: access, isTaken: taken.includes(typeName) },
            ...{ rows: id, kinds: targets.map(({ kind }) => kind) },
          },
        ]
      : [],
  )

/** Everybody gets the whole numbers of this one. */
export const openType = 'vm'

function aSource(typeName: string): CompiledSource {
  const { source } = compileMetricSource(
    {
      metadata: { name: `source-${typeName.replaceAll('_', '0')}`, namespace: 'test' },
      spec: {
        source: { apiVersion: 'v1', kind: 'Thing' },
        fields: [
          { name: 'amount', path: '.amount', type: 'float' },
          { name: 'phase', path: '.phase' },
          { name: 'size', path: '.size' },
          { name: 'note', path: '.note' },
        ],
        aggregations: [
          { name: 'count', function: 'count' },
          { name: 'total', function: 'sum', field: 'amount' },
          { name: 'cost', function: 'max', field: 'amount' },
          { name: 'by_phase', function: 'count', groupBy: 'phase' },
        ],
        rbac: { resourceTypeName: 'things', filterAggregations: typeName !== openType },
      },
    },
    0,
  )
  invariant(source, 'the declaration of the worlds compiles')
  return { ...source, typeName }
}

/** Also those that take the name of a kind that is compiled in. */
export const allSources: readonly CompiledSource[] = [...declaredTypes, ...takeable].map(aSource)

/** @param taken names of kinds that are compiled in and that MetricSources have here */
export const sourcesIn = (taken: readonly string[]): readonly CompiledSource[] =>
  allSources.filter(({ typeName }) => declaredTypes.includes(typeName) || taken.includes(typeName))

/** Every name that a policy or a question may have for what is collected. */
export const typeNames: readonly string[] = [
  ...declaredTypes,
  ...resources.flatMap(({ typeName }) => [typeName, `core/${typeName}`]),
]

/** What the counts of a kind that is compiled in come to: slowly, one after the other. */
export function countsOf({ aggregations }: ResourceDescriptor, rows: Table): Readonly<Record<string, Aggregated>> {
  const all = [...rows.rows()].map(({ values }) => values)
  const valuesOf = (field: string | undefined, among: typeof all): JsonValue[] =>
    among.map((values) => (field === undefined ? null : (values[field] ?? null)))
  const over = (how: string, field: string | undefined, among: typeof all): number => {
    if (how === 'count' && field === undefined) return among.length
    invariant(how === 'sum', 'kinds that are compiled in count and add up')
    return valuesOf(field, among).reduce<number>((sum, value) => sum + (typeof value === 'number' ? value : 0), 0)
  }
  return Object.fromEntries(
    aggregations.map(({ name, function: how, field, groupBy }) => {
      if (groupBy === undefined) return [name, over(how, field, all)]
      const groups = [...new Set(valuesOf(groupBy, all).map(String))].sort()
      const of = (group: string) => all.filter((values) => String(values[groupBy]) === group)
      return [name, Object.fromEntries(groups.map((group) => [group, over(how, field, of(group))]))]
    }),
  )
}

/** The same sums, read off the specification: slowly, one after the other. */
export function sumsOf(rows: Table): Readonly<Record<string, Aggregated>> {
  const all = [...rows.rows()].map(({ values }) => values)
  const amounts = all.map(({ amount }) => amount).filter((amount) => typeof amount === 'number')
  const phases = [...new Set(all.map(({ phase }) => String(phase)))]
  return {
    count: all.length,
    total: amounts.reduce((sum, amount) => sum + amount, 0),
    cost: amounts.length > 0 ? Math.max(...amounts) : null,
    by_phase: Object.fromEntries(
      phases.toSorted().map((phase) => [phase, all.filter((one) => one.phase === phase).length]),
    ),
  }
}

/** As people are told: of rows that have no number in the field the sum is not known; of no rows it is 0. */
export function toldSums(
  sums: Readonly<Record<string, Aggregated>>,
  fields: Readonly<Record<string, string>>,
  rows: Table,
): Readonly<Record<string, Aggregated>> {
  const all = [...rows.rows()]
  const isUnknown = (field: string | undefined): boolean =>
    field !== undefined && all.length > 0 && all.every(({ values }) => typeof values[field] !== 'number')
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, isUnknown(fields[name]) ? null : sum]))
}

/** What is in force is what a test says. */
export class GivenCatalog implements SourceCatalog {
  #sources: readonly CompiledSource[] = []
  #version = 0

  set(told: readonly CompiledSource[]): void {
    this.#sources = told
    this.#version += 1
  }

  sources(): readonly CompiledSource[] {
    return this.#sources
  }

  source(id: string): CompiledSource | undefined {
    return this.#sources.find((source) => source.id === id)
  }

  ofType(typeName: string): CompiledSource | undefined {
    return this.allOfType(typeName)[0]
  }

  allOfType(typeName: string): readonly CompiledSource[] {
    return this.#sources.filter((source) => source.typeName === typeName)
  }

  version(): number {
    return this.#version
  }

  unavailable(): undefined {
    return undefined
  }

  onChange(): () => void {
    return () => undefined
  }
}
