import { documentTime } from '#model'
import type { ParsedPath } from '#path'
import { DEFAULT_PERCENTILE } from './compile-aggregations.ts'
import type { Draft } from './draft.ts'
import type { CompiledSource, SourceDefinition } from './types.ts'

interface More {
  readonly paths: readonly ParsedPath[]
  readonly compiledAt: number
}

type Known = Pick<
  CompiledSource,
  | 'namespace'
  | 'name'
  | 'hash'
  | 'typeName'
  | 'target'
  | 'labelSelector'
  | 'filterAggregations'
  | 'filterableFields'
  | 'collection'
>

/**
 * The documented form of a source, as it lies in Redis and travels to agents: whoever reads it collects the same. What the
 * original leaves to its readers is written out (a percentile); what it does not know has keys of its own, only where it is set.
 */
export function documentOf(compiled: Known, draft: Draft, { paths, compiledAt }: More): SourceDefinition {
  const { target, collection } = compiled
  const { include, exclude } = draft.source
  return {
    name: compiled.name,
    namespace: compiled.namespace,
    source: {
      apiVersion: target.apiVersion,
      kind: target.kind,
      scope: target.scope,
      group: target.group,
      version: target.version,
      resource: target.plural,
      ...given({
        resourceDeclared: target.isPluralDeclared || undefined,
        labelSelector: compiled.labelSelector,
        namespaces:
          include.length + exclude.length > 0
            ? given({ include: filled(include), exclude: filled(exclude) })
            : undefined,
      }),
    },
    fields: draft.fields.map(({ name, path, type, default: fallback }, index) => ({
      name,
      path,
      pathSegments: paths[index]?.texts ?? [],
      type,
      ...given({ default: fallback }),
      index,
    })),
    ...given({
      computed: filled(draft.computed.map(({ name, expression, type }) => ({ name, expression, type: type ?? '' }))),
      aggregations: filled(draft.aggregations.map(aggregationDocument)),
    }),
    collection: {
      intervalSeconds: collection.intervalMs / 1000,
      timeoutSeconds: collection.timeoutMs / 1000,
      maxResources: collection.maxResources,
      batchSize: collection.batchSize,
      retryAttempts: collection.retryAttempts,
      parallelism: collection.parallelism,
      ...given({ watch: collection.watch || undefined }),
    },
    rbac: {
      resourceTypeName: compiled.typeName,
      ...given({ filterableFields: compiled.filterableFields }),
      filterAggregations: compiled.filterAggregations,
    },
    compiledAt: documentTime(compiledAt),
    hash: compiled.hash,
  }
}

function aggregationDocument({
  name,
  field,
  function: fn,
  filter,
  groupBy,
  percentile,
}: Draft['aggregations'][number]) {
  const written = fn === 'percentile' ? (percentile ?? DEFAULT_PERCENTILE) : percentile || undefined
  return { name, ...given({ field }), function: fn, ...given({ filter, groupBy, percentile: written }) }
}

const filled = <T>(list: readonly T[]) => (list.length > 0 ? list : undefined)
const given = (entries: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined))

/** The documented form of a source that was compiled. */
export const definitionOf = (source: CompiledSource): SourceDefinition => source.definition
