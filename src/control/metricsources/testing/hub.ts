import { type MetricSourceSpec, type MetricSourceStatus, metricSource } from '#kinds'
import type { KubeObject } from '#kube'
import { type HubApi, hubApis, until } from '../../../../test/hub-apis.ts'
import { metricSourceResource } from '../source-resource.ts'

export const NAMESPACE = 'clusterpulse'

export type TestHub = HubApi
export const { both: hubs, anEmbedded: anEmbeddedHub } = hubApis({
  kinds: [metricSource],
  namespaces: [NAMESPACE, 'elsewhere'],
})
export { until }

/** A source over disks with some parts as given. */
export const aSpec = (over: Partial<MetricSourceSpec> = {}): MetricSourceSpec => ({
  source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  fields: [
    { name: 'phase', path: '.status.phase' },
    { name: 'capacity', path: '.status.capacity.storage', type: 'bytes' },
  ],
  computed: [{ name: 'capacityGiB', expression: 'round(capacity / 1073741824, 2)' }],
  aggregations: [{ name: 'total', function: 'sum', field: 'capacity' }],
  rbac: { resourceTypeName: 'pvc' },
  ...over,
})

/** A spec that no schema refuses and no compilation accepts. */
export const aFaultySpec = (): MetricSourceSpec =>
  aSpec({ fields: [...aSpec().fields, { name: 'gib', path: '.status.capacity[' }] })

/** Creates the source, or changes its spec. */
export async function declare(
  { kube }: TestHub,
  name: string,
  spec: MetricSourceSpec = aSpec(),
  namespace = NAMESPACE,
): Promise<KubeObject> {
  const key = { name, namespace }
  for (;;) {
    const known = await kube.get(metricSourceResource, key)
    if (!known) {
      const { apiVersion, kind } = metricSource
      return kube.create(metricSourceResource, { apiVersion, kind, metadata: key, spec })
    }
    try {
      return await kube.replace(metricSourceResource, { ...known, spec })
    } catch (error) {
      // The status was written meanwhile.
      if ((error as { reason?: string }).reason !== 'conflict') throw error
    }
  }
}

export const undeclare = ({ kube }: TestHub, name: string, namespace = NAMESPACE) =>
  kube.delete(metricSourceResource, { name, namespace })

export async function statusOf({ kube }: TestHub, name: string): Promise<MetricSourceStatus> {
  const object = await kube.get(metricSourceResource, { name, namespace: NAMESPACE })
  return (object?.status ?? {}) as MetricSourceStatus // served under our schema
}

export const conditionOf = ({ conditions = [] }: MetricSourceStatus, type: string) =>
  conditions.find((one) => one.type === type)
