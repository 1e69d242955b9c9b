import { clusterVersions, type KubeObject, type ObjectKey, type Resource, routes, type ServerVersion } from '#kube'
import type { ClusterSnapshot } from '#model'
import { fed, foldOf, isForbidden, Kept, keptWhole } from './fold.ts'
import { conditions, type Fields, fields, instant, isFields, items, text, textOrNull } from './read.ts'
import type { Collector, Read } from './types.ts'

const serverVersion: Read<ServerVersion> = { verbs: [], one: (kube, signal) => kube.version(signal) }
const clusterVersion = oneOf(clusterVersions, { name: 'version' })
const consoleRoute = oneOf(routes, { name: 'console', namespace: 'openshift-console' })

function oneOf(resource: Resource, key: ObjectKey): Read<KubeObject> {
  return { resource, verbs: ['get', 'list'], isOptional: true, one: (kube, signal) => kube.get(resource, key, signal) }
}

/** What a cluster says of itself: version, distribution, console. What we may not see of it leaves the rest worth showing. */
export const clusterCollector: Collector = {
  name: 'cluster',
  types: ['cluster'],
  reads: [serverVersion, clusterVersion, consoleRoute],
  critical: false,
  open({ endpoint }) {
    const server = new Kept({ key: () => '', of: (told: ServerVersion) => told, canDoWithout: () => true })
    const [version, route] = [keptWhole(isForbidden), keptWhole(isForbidden)]
    const feds = [fed(serverVersion, server), fed(clusterVersion, version), fed(consoleRoute, route)]
    return foldOf(feds, () => {
      const [openShift] = version.values()
      if (!openShift && server.error) throw server.error
      const [plain] = server.values()
      const known = openShift
        ? openShiftVersion(openShift)
        : { version: textOrNull(plain?.gitVersion), platform: textOrNull(plain?.platform) }
      if (!version.isServed) return { cluster: [{ ...blank(endpoint), ...known }] }
      const consoleAt = consoleUrl(route.values()[0], endpoint)
      const openShiftFacts = { distribution: 'openshift' as const, platform: 'OpenShift', consoleUrl: consoleAt }
      return { cluster: [{ ...blank(endpoint), ...known, ...openShiftFacts }] }
    })
  },
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
