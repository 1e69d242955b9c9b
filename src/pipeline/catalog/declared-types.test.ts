import { expect, it } from 'vitest'
import { compileMetricSource } from '#metricsource'
import { declaredTypes, MemoryCatalog } from './index.ts'

function aDefinition(name: string, fields: readonly string[], filterableFields?: readonly string[]) {
  const spec = {
    source: { apiVersion: 'v1', kind: 'ConfigMap' },
    fields: fields.map((field) => ({ name: field, path: `.data.${field}` })),
    computed: [{ name: `${name}_known`, expression: `${fields[0]} != null` }],
    aggregations: [{ name: `${name}_count`, function: 'count' as const }],
    rbac: { resourceTypeName: 'maps', ...(filterableFields && { filterableFields: [...filterableFields] }) },
  }
  const { source, findings } = compileMetricSource({ metadata: { name, namespace: 'clusterpulse' }, spec })
  if (!source) throw new Error(JSON.stringify(findings))
  return source.definition
}

it('tells of a type what all its sources declare, once the catalog was read', async () => {
  const catalog = new MemoryCatalog()
  const types = declaredTypes(catalog)
  expect(types.isComplete()).toBe(false)
  await catalog.resync([aDefinition('a', ['x'], ['x'])])
  expect(types.isComplete()).toBe(true)
  expect(types.ofType('map')).toBeUndefined()
  expect(types.ofType('maps')).toEqual({
    fields: ['x', 'a_known'],
    filterableFields: ['x'],
    aggregations: ['a_count'],
  })
  await catalog.put(aDefinition('b', ['x', 'y'], ['y']))
  expect(types.ofType('maps')).toEqual({
    fields: ['x', 'a_known', 'y', 'b_known'],
    filterableFields: ['x', 'y'],
    aggregations: ['a_count', 'b_count'],
  })
  await catalog.put(aDefinition('b', ['x', 'y']))
  expect(types.ofType('maps')?.filterableFields).toBeUndefined()
})

it('keeps the same source for a definition that was compiled at another time', async () => {
  const catalog = new MemoryCatalog()
  const definition = aDefinition('a', ['x'])
  await catalog.resync([definition])
  const [source] = catalog.sources()
  await catalog.put({ ...definition, compiledAt: '2030-01-01T00:00:00Z' })
  expect(catalog.sources()[0]).toBe(source)
  expect(source?.hash).toBe(definition.hash)
})

it('are the kinds that are compiled in as well, under both of their names', () => {
  const types = declaredTypes(new MemoryCatalog())
  expect(types.ofType('services')?.fields).toContain('type')
  expect(types.ofType('core/services')).toEqual(types.ofType('services'))
  expect(types.ofType('core/none')).toBeUndefined()
})
