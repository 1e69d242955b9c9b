import { componentOf } from '../schema/index.ts'
import type { ServedResource } from '../types.ts'

/** `clusterpulse.io` as names of components have it: `io.clusterpulse`. */
const reversed = (group: string): string => group.split('.').reverse().join('.')

/** The name of the component of a kind: the original one, or made from its group and version. */
export const componentName = ({ schema, group, version, kind }: ServedResource): string =>
  componentOf(schema) ?? [reversed(group || 'core'), version, kind].join('.')

export const listName = (resource: ServedResource): string => `${componentName(resource)}List`

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** `rbac.authorization.k8s.io/v1` as names of operations have it: `RbacAuthorizationV1`. */
const groupWord = ({ group, version }: ServedResource): string => {
  const words = (group || 'core').replace(/\.k8s\.io$/, '').split(/[^A-Za-z0-9]+/)
  return [...words, version].map(capital).join('')
}

/** A name for an operation that no other has, such as `listCoreV1NamespacedPod`. */
export const operationId = (
  verb: string,
  resource: ServedResource,
  more: { namespaced: boolean; sub?: string },
): string =>
  `${verb}${groupWord(resource)}${more.namespaced ? 'Namespaced' : ''}${resource.kind}${capital(more.sub ?? '')}`

/** Tag under which tools group what a version offers: `core_v1`. */
export const tagOf = ({ group, version }: ServedResource): string =>
  `${(group || 'core').replace(/\.k8s\.io$/, '').replace(/\W+/g, '_')}_${version}`
