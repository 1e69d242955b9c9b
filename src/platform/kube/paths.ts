import { invariant } from '#model'
import type { Resource } from './types.ts'

type Where = Pick<Resource, 'group' | 'version' | 'plural'> & { readonly namespaced?: boolean }

/** Where a group's version is described. */
export function groupPath({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

/** A resource of one namespace, or of all. */
export function collectionPath(resource: Where, namespace?: string): string {
  const root = groupPath(resource)
  return namespace === undefined
    ? `${root}/${resource.plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`
}

/** One object, or a subresource of it. */
export function objectPath(
  resource: Resource<never> | Where,
  key: { name: string; namespace?: string },
  sub?: string,
): string {
  invariant(key.name !== '', 'an object has a name; an empty one would address the whole collection')
  invariant(!resource.namespaced || key.namespace, `an object of ${resource.plural} has a namespace`)
  const collection = collectionPath(resource, resource.namespaced ? key.namespace : undefined)
  return `${collection}/${encodeURIComponent(key.name)}${sub === undefined ? '' : `/${sub}`}`
}

/** "?a=b" of what is set; empty where nothing is. */
export function query(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '')
  return set.length === 0
    ? ''
    : `?${set.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}
