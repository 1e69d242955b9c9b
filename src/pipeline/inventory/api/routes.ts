import type { Review } from './access.ts'
import type { Filter } from './filter.ts'
import type { Form, Question } from './query.ts'

/** A path that is answered. */
export interface Route {
  readonly answer: 'rows' | 'watch' | 'inventories' | 'targets' | 'cluster-inventories'
  readonly form: Form
  /** what the path itself names */
  readonly named?: Filter
  /** the path that is to be used instead */
  readonly successor?: string
}

const ROOT = '/v1alpha1/inventory'
const ROUTES: Readonly<Record<string, Route>> = {
  [ROOT]: { answer: 'rows', form: 'rows' },
  [`${ROOT}/watch`]: { answer: 'watch', form: 'watch' },
  '/v1alpha1/status/inventories': { answer: 'inventories', form: 'status' },
  '/v1alpha1/status/targets': { answer: 'targets', form: 'status' },
  '/v1alpha1/status/cluster-inventories': { answer: 'cluster-inventories', form: 'clusterStatus' },
  '/inventory': { answer: 'rows', form: 'rows', successor: ROOT },
  '/inventory/watch': { answer: 'watch', form: 'watch', successor: `${ROOT}/watch` },
}

/** @returns undefined: nothing is there */
export function routeOf(path: string): Route | undefined {
  const route = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined
  if (route) return route
  const [, clusterInventory] = /^\/v1alpha1\/cluster-inventory\/([^/]+)$/.exec(path) ?? []
  if (clusterInventory !== undefined) return { answer: 'rows', form: 'rollUp', named: { clusterInventory } }
  const [, namespace, inventory] = /^\/v1alpha1\/inventory\/([^/]+)\/([^/]+)$/.exec(path) ?? []
  if (namespace === undefined || inventory === undefined) return undefined
  // Names of objects need no escapes: one that has some is refused as a name.
  return { answer: 'rows', form: 'named', named: { namespace, inventory } }
}

/**
 * What who asks must be allowed besides, to be told of what targets of other namespaces say of a namespace; undefined: nothing is.
 */
export function othersReviewOf({ answer }: Route, { filter }: Question): Review | undefined {
  const { namespace, inventory, clusterInventory } = filter
  const isOfNamespace = namespace !== undefined && inventory === undefined && clusterInventory === undefined
  return isOfNamespace && (answer === 'rows' || answer === 'watch')
    ? { verb: 'list', resource: 'kollectinventories' }
    : undefined
}

/** What who asks must be allowed. */
export function reviewOf({ answer }: Route, { filter: { namespace, inventory, clusterInventory } }: Question): Review {
  // What is of the cluster is in no namespace: who may read it may read all of it.
  if (clusterInventory !== undefined)
    return { verb: 'get', resource: 'kollectclusterinventories', name: clusterInventory }
  if (answer === 'cluster-inventories') return { verb: 'list', resource: 'kollectclusterinventories' }
  const where = namespace === undefined ? {} : { namespace }
  if (answer === 'targets') return { verb: 'list', resource: 'kollecttargets', ...where }
  if (answer === 'rows' && namespace !== undefined && inventory !== undefined)
    return { verb: 'get', resource: 'kollectinventories', namespace, name: inventory }
  return { verb: 'list', resource: 'kollectinventories', ...where }
}
