import { describe, expect, it } from 'vitest'
import type { MonitorAccessPolicySpec } from '#kinds'
import { compilePolicy } from './compile.ts'
import { type CustomType, customTypeFindings } from './custom-types.ts'

type Resource = NonNullable<
  NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]['resources']
>[number]

const pvc: CustomType = { fields: ['phase', 'capacity'], filterableFields: ['phase'], aggregations: ['total'] }
const vm: CustomType = { fields: ['running'], filterableFields: undefined, aggregations: [] }
const known: Readonly<Record<string, CustomType>> = { pvc, vm }
const types = { ofType: (name: string) => (Object.hasOwn(known, name) ? known[name] : undefined) }

function codesOf(
  resources: readonly Resource[],
  effect: 'Allow' | 'Deny' = 'Allow',
  asked: Parameters<typeof customTypeFindings>[1] = types,
) {
  const spec: MonitorAccessPolicySpec = {
    identity: { subjects: { groups: ['dev'] } },
    access: { effect },
    scope: {
      clusters: {
        rules: [{ selector: { matchNames: ['*'] } }, { selector: { matchNames: ['*'] }, resources: [...resources] }],
      },
    },
  }
  const { document } = compilePolicy({ metadata: { name: 'p', namespace: 'n' }, spec }, { now: 0 })
  if (!document) throw new Error('it does not compile')
  return customTypeFindings(document, asked).map(({ severity, code, path }) => `${severity} ${code} ${path}`)
}

const place = 'spec.scope.clusters.rules[1].resources'
const fields = (...names: string[]) => ({
  fields: Object.fromEntries(names.map((name) => [name, { allowed: ['x'] }])),
})

describe('policies about types of MetricSources', () => {
  it('are told of a type that nobody collects, in a Deny too, and of no standard one', () => {
    expect(codesOf([{ type: 'nodes' }, { type: 'registries' }, { type: 'pvcs' }, { type: 'toString' }])).toEqual([
      `warning custom_type_unknown ${place}[2].type`,
      `warning custom_type_unknown ${place}[3].type`,
    ])
    expect(codesOf([{ type: 'pvcs' }, { type: 'pvc' }], 'Deny')).toEqual([
      `warning custom_type_unknown ${place}[0].type`,
    ])
  })

  it('are told of fields and aggregations that the type does not have, and of fields not meant for policies', () => {
    const filters = fields('phase', 'capacity', 'size', 'a b')
    const aggregations = { include: ['total'], exclude: ['totals'] }
    expect(codesOf([{ type: 'pvc', visibility: 'filtered', filters, aggregations }])).toEqual([
      `warning custom_field_not_filterable ${place}[0].filters.fields.capacity`,
      `warning custom_field_unknown ${place}[0].filters.fields.size`,
      `warning custom_field_unknown ${place}[0].filters.fields["a b"]`,
      `warning custom_aggregation_unknown ${place}[0].aggregations.exclude[0]`,
    ])
  })

  it('may filter by every field where the source names none', () => {
    expect(codesOf([{ type: 'vm', visibility: 'filtered', filters: fields('running') }])).toEqual([])
  })

  it('are told nothing of filters in a Deny, which hides the whole type', () => {
    expect(codesOf([{ type: 'pvc', filters: fields('size') }], 'Deny')).toEqual([])
  })

  it('are told nothing while types may be missing that are there', () => {
    expect(codesOf([{ type: 'pvcs' }], 'Allow', { ...types, isComplete: () => false })).toEqual([])
    expect(codesOf([{ type: 'pvcs' }], 'Allow', { ...types, isComplete: () => true })).toHaveLength(1)
  })
})
