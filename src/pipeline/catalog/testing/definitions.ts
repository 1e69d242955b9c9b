import type { CompiledSource, SourceDefinition } from '#metricsource'

/** The documented definition of a source (specification: state 5.1). */
export function aDefinition(
  name: string,
  { typeName = name, hash = '0123456789abcdef', compiledAt = '2026-05-04T10:00:00Z', namespace = 'clusterpulse' } = {},
): SourceDefinition {
  return {
    name,
    namespace,
    source: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      scope: 'Namespaced',
      group: '',
      version: 'v1',
      resource: 'configmaps',
    },
    fields: [{ name: 'a', path: '.data.a', pathSegments: ['data', 'a'], type: 'string', index: 0 }],
    aggregations: [{ name: `${name}_count`, function: 'count' }],
    collection: {
      intervalSeconds: 60,
      timeoutSeconds: 30,
      maxResources: 5000,
      batchSize: 500,
      retryAttempts: 3,
      parallelism: 3,
    },
    rbac: { resourceTypeName: typeName, filterAggregations: true },
    compiledAt,
    hash,
  }
}

/** Reads as much of a definition as a catalog looks at; undefined where there are no fields. */
export function readShallow(definition: SourceDefinition): CompiledSource | undefined {
  if (!Array.isArray(definition.fields)) return undefined
  const { name, namespace, hash } = definition
  const { resourceTypeName } = definition.rbac as { readonly resourceTypeName: string }
  const source = { id: `${namespace}/${name}`, name, namespace, hash, typeName: resourceTypeName, definition }
  return source as Partial<CompiledSource> as CompiledSource // no more of it is looked at
}
