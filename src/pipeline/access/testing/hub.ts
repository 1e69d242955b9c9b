import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { type MonitorAccessPolicySpec, type MonitorAccessPolicyStatus, monitorAccessPolicy } from '#kinds'
import type { KubeObject } from '#kube'
import { type HubApi, hubApis, until } from '../../../../test/hub-apis.ts'
import { accessPolicyResource } from '../policy-resource.ts'

export const NAMESPACE = 'clusterpulse'

export type TestHub = HubApi
export const { both: hubs, anEmbedded: anEmbeddedHub } = hubApis({
  kinds: [monitorAccessPolicy],
  namespaces: [NAMESPACE, 'elsewhere'],
})
export { until }

export const allowDevelopers: MonitorAccessPolicySpec = {
  identity: { subjects: { groups: ['developers'] }, priority: 100 },
  access: { effect: 'Allow', enabled: true },
  scope: {
    clusters: { default: 'none', rules: [{ selector: { matchNames: ['dev-*'] }, permissions: { view: true } }] },
  },
}

/** The example of a spec, with some parts as given. */
export const aSpec = (over: Partial<MonitorAccessPolicySpec> = {}): MonitorAccessPolicySpec => ({
  ...allowDevelopers,
  ...over,
})

/** A spec that no schema refuses and no compilation accepts. */
export const aFaultySpec = (effect: 'Allow' | 'Deny' = 'Allow'): MonitorAccessPolicySpec =>
  aSpec({
    access: { effect, enabled: true },
    scope: { clusters: { default: 'none', rules: [{ selector: { matchPattern: '(unclosed' } }] } },
  })

/** Creates the policy, or changes its spec. */
export async function declare(
  { kube }: TestHub,
  name: string,
  spec: MonitorAccessPolicySpec = allowDevelopers,
  namespace = NAMESPACE,
): Promise<KubeObject> {
  const key = { name, namespace }
  for (;;) {
    const known = await kube.get(accessPolicyResource, key)
    if (!known) {
      const { apiVersion, kind } = monitorAccessPolicy
      return kube.create(accessPolicyResource, { apiVersion, kind, metadata: key, spec })
    }
    try {
      return await kube.replace(accessPolicyResource, { ...known, spec })
    } catch (error) {
      // The status was written meanwhile.
      if ((error as { reason?: string }).reason !== 'conflict') throw error
    }
  }
}

export const undeclare = ({ kube }: TestHub, name: string) =>
  kube.delete(accessPolicyResource, { name, namespace: NAMESPACE })

export async function statusOf({ kube }: TestHub, name: string): Promise<MonitorAccessPolicyStatus> {
  const object = await kube.get(accessPolicyResource, { name, namespace: NAMESPACE })
  return (object?.status ?? {}) as MonitorAccessPolicyStatus // served under our schema
}

/** The columns of `kubectl get`, without the age. */
export async function tableOf({ access }: TestHub): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { credentials, ca } = access
  const { group, version, plural } = accessPolicyResource
  const url = `${access.server}/apis/${group}/${version}/namespaces/${NAMESPACE}/${plural}`
  const asking = request(url, {
    ...(ca !== undefined && { ca }),
    ...(credentials.kind === 'certificate' && { cert: credentials.cert, key: credentials.key }),
    headers: {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      ...(credentials.kind === 'token' && { authorization: `Bearer ${credentials.token}` }),
    },
  }).end()
  const [answer] = (await once(asking, 'response')) as [IncomingMessage]
  const table = JSON.parse(await text(answer)) as {
    columnDefinitions: { name: string; priority: number }[]
    rows: { cells: unknown[] }[]
  }
  const shown = table.columnDefinitions.flatMap(({ name, priority }, i) =>
    priority === 0 && name !== 'Age' ? [{ name, i }] : [],
  )
  return table.rows.map(({ cells }) => Object.fromEntries(shown.map(({ name, i }) => [name, cells[i]])))
}
