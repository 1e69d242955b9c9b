import { isDeepStrictEqual } from 'node:util'
import { type CompiledSource, readDefinition, type SourceDefinition } from '#metricsource'
import { invariant, type SourceId } from '#model'

/** Makes a source of its documented definition; undefined where that cannot be read. */
export type ReadDefinition = (definition: SourceDefinition) => CompiledSource | undefined

export const readByDefault: ReadDefinition = (definition) => readDefinition(definition)

/** `namespace/name` of a definition. */
export function idOf({ namespace, name }: SourceDefinition): SourceId {
  invariant(typeof namespace === 'string' && typeof name === 'string', 'a definition says whose it is')
  return `${namespace}/${name}`
}

/** The name of its rows; '' where it has none. */
export function typeNameOf(definition: SourceDefinition): string {
  const { rbac } = definition as { readonly rbac?: { readonly resourceTypeName?: unknown } | null }
  return typeof rbac?.resourceTypeName === 'string' ? rbac.resourceTypeName : ''
}

/** Whether both collect the same. When they were compiled is a note: a restart changes nothing. */
export function sameDefinition(a: SourceDefinition, b: SourceDefinition): boolean {
  return isDeepStrictEqual({ ...a, compiledAt: '' }, { ...b, compiledAt: '' })
}
