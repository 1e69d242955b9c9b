import type { ResourceListSettings } from '#model'
import type { ConfigReader } from '#runtime'

/** Bounds of the documented lists in Redis, by the variables, defaults and minima of the original; undefined: none are written. */
export function resourceLists(read: ConfigReader): ResourceListSettings | undefined {
  const isOn = read.flag('RESOURCE_COLLECTION_ENABLED', {
    default: true,
    meaning:
      'write the lists of pods, deployments, services, stateful sets and daemon sets to Redis, for readers of the original',
  })
  const most = (name: string, fallback: number, min: number, what: string) =>
    read.integer(name, { default: fallback, min, raise: true, meaning: `${what} in these lists of a cluster at most` })
  const settings = {
    podsPerNamespace: most('MAX_PODS_PER_NAMESPACE', 100, 10, 'pods of one namespace'),
    pods: most('MAX_TOTAL_PODS', 1000, 50, 'pods'),
    deployments: most('MAX_DEPLOYMENTS', 500, 10, 'deployments, and stateful sets,'),
    services: most('MAX_SERVICES', 500, 10, 'services'),
    labels: read.flag('COLLECT_RESOURCE_LABELS', { default: false, meaning: 'put labels of objects into these lists' }),
  }
  return isOn ? settings : undefined
}
