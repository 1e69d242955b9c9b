import { clusterVersions, isKubeError, type KubeClient, type KubeObject, routes } from '#kube'
import type { ClusterSnapshot } from '#model'
import { conditions, type Fields, fields, instant, isFields, items, text, textOrNull } from './read.ts'
import type { Collector } from './types.ts'

/** What a cluster says of itself: version, distribution, console. */
export const clusterCollector: Collector = {
  name: 'cluster',
  types: ['cluster'],
  reads: [clusterVersions, routes],
  critical: false,
  everyMs: 0,
  async collect({ kube }, signal) {
    const isOpenShift = await kube.serves(clusterVersions, signal)
    if (!isOpenShift) return { cluster: [{ ...blank(kube.endpoint), ...(await plainVersion(kube, signal)) }] }
    const [version, route] = await Promise.all([
      readable(kube.get(clusterVersions, { name: 'version' }, signal)),
      readable(kube.get(routes, { name: 'console', namespace: 'openshift-console' }, signal)),
    ])
    const known = version ? openShiftVersion(version) : await plainVersion(kube, signal)
    return {
      cluster: [
        {
          ...blank(kube.endpoint),
          ...known,
          distribution: 'openshift' as const,
          platform: 'OpenShift',
          consoleUrl: consoleUrl(route, kube.endpoint),
        },
      ],
    }
  },
}

/** The object; undefined where it does not exist or we may not see it: the rest is worth showing without it. */
async function readable(object: Promise<KubeObject | undefined>): Promise<KubeObject | undefined> {
  try {
    return await object
  } catch (error) {
    if (isKubeError(error, 'forbidden') || isKubeError(error, 'not_found')) return undefined
    throw error
  }
}

async function plainVersion(kube: KubeClient, signal: AbortSignal): Promise<Partial<ClusterSnapshot>> {
  const { gitVersion, platform } = await kube.version(signal)
  return { version: textOrNull(gitVersion), platform: textOrNull(platform) }
}

function blank(apiUrl: string): ClusterSnapshot {
  return {
    name: 'cluster',
    apiUrl,
    distribution: 'kubernetes',
    version: null,
    platform: null,
    channel: null,
    clusterId: null,
    image: null,
    updateVersion: null,
    versionState: null,
    versionStartedAt: null,
    versionCompletedAt: null,
    consoleUrl: null,
    conditions: [],
  }
}

/** What a ClusterVersion tells. The first entry of its history is the newest. */
export function openShiftVersion(object: KubeObject): Partial<ClusterSnapshot> {
  const spec = fields(object.spec)
  const status = fields(object.status)
  const desired = fields(status.desired)
  const newest: Fields = items(status.history)[0] ?? {}
  return {
    version: textOrNull(desired.version),
    image: textOrNull(desired.image),
    channel: textOrNull(spec.channel),
    clusterId: textOrNull(spec.clusterID),
    updateVersion: textOrNull(items(status.availableUpdates)[0]?.version),
    versionState: textOrNull(newest.state),
    versionStartedAt: instant(newest.startedTime),
    versionCompletedAt: instant(newest.completionTime),
    conditions: conditions(status.conditions),
  }
}

/** A name and nothing that could make another address of it. */
const HOST = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/i

/** The console's own route; else the address that installers give it, where the API's address follows their pattern. */
export function consoleUrl(route: KubeObject | undefined, endpoint: string): string | null {
  const spec = fields(route?.spec)
  const host = text(spec.host)
  if (HOST.test(host)) return `${isFields(spec.tls) ? 'https' : 'http'}://${host}`
  const rest = /^https?:\/\/api\.([^:/]+)/.exec(endpoint)?.[1]
  return rest ? `https://console-openshift-console.apps.${rest}` : null
}
