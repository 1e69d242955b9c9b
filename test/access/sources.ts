import type { SourceCatalog } from '#catalog'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import { type Aggregated, invariant, type Table } from '#model'

/** Types that the worlds collect. Names are those that policies use, also where no declaration could be called so. */
const types = ['__proto__', 'deployments', 'pvc', 'vm']

/** Everybody gets the whole numbers of this one. */
export const openType = 'vm'

function aSource(typeName: string): CompiledSource {
  const { source } = compileMetricSource(
    {
      metadata: { name: `source-${types.indexOf(typeName)}`, namespace: 'test' },
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

export const sources: readonly CompiledSource[] = types.map(aSource)

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

/** What is in force is what a test says. */
export class ToldCatalog implements SourceCatalog {
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
