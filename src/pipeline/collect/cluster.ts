import { clusterVersions, type KubeObject, type ObjectKey, type Resource, routes, type ServerVersion } from '#kube'
import { boundClaims, CLAIMS, type ClusterSnapshot, claimsByName } from '#model'
import { claimOf, clusterClaims, kubeSystem, productOf } from './cluster-claims.ts'
import { fed, foldOf, isForbidden, Kept, keptWhole, placeOf } from './fold.ts'
import { conditions, type Fields, fields, instant, isFields, items, text, textOrNull } from './read.ts'
import type { Collector, Read } from './types.ts'

const serverVersion: Read<ServerVersion> = { verbs: [], one: (kube, signal) => kube.version(signal) }
const clusterVersion = oneOf(clusterVersions, { name: 'version' })
const consoleRoute = oneOf(routes, { name: 'console', namespace: 'openshift-console' })

function oneOf(resource: Resource, key: ObjectKey): Read<KubeObject> {
  return { resource, verbs: ['get', 'list'], isOptional: true, one: (kube, signal) => kube.get(resource, key, signal) }
}

/** What a cluster says of itself: version, distribution, console. What we may not see of it leaves the rest worth showing. */
export const clusterCollector: Collector = collectorOf(undefined)

/** The same of a member, with what it claims. @param own claims of the agent itself, which count before all others */
export const memberClusterCollector = (own: Readonly<Record<string, string>>): Collector => collectorOf(own)

function collectorOf(own: Readonly<Record<string, string>> | undefined): Collector {
  return {
    name: 'cluster',
    types: ['cluster'],
    reads: [serverVersion, clusterVersion, consoleRoute, ...(own ? [clusterClaims, kubeSystem] : [])],
    critical: false,
    open({ endpoint }) {
      const server = new Kept({ key: () => '', of: (told: ServerVersion) => told, canDoWithout: () => true })
      const [version, route, system] = [keptWhole(isForbidden), keptWhole(isForbidden), keptWhole(isForbidden)]
      const claimed = new Kept({ key: placeOf, of: claimOf, canDoWithout: isForbidden })
      const feds = [fed(serverVersion, server), fed(clusterVersion, version), fed(consoleRoute, route)]
      const ofMember = own ? [fed(clusterClaims, claimed), fed(kubeSystem, system)] : []
      return foldOf([...feds, ...ofMember], () => {
        const [openShift] = version.values()
        if (!openShift && server.error) throw server.error
        const [plain] = server.values()
        const known = openShift
          ? openShiftVersion(openShift)
          : { version: textOrNull(plain?.gitVersion), platform: textOrNull(plain?.platform) }
        const isOpenShift = version.isServed
        // Those that could not be read are not none.
        const claims = own &&
          !claimed.error && {
            claims: claimsByName(
              boundClaims({
                ...builtInClaims(
                  plain?.gitVersion,
                  system.values()[0]?.metadata.uid,
                  isOpenShift ? known.clusterId : null,
                ),
                ...Object.fromEntries(claimed.values().filter((one) => one !== undefined)),
                ...own,
              }),
            ),
          }
        if (!isOpenShift) return { cluster: [{ ...blank(endpoint), ...known, ...claims }] }
        const consoleAt = consoleUrl(route.values()[0], endpoint)
        const openShiftFacts = { distribution: 'openshift' as const, platform: 'OpenShift', consoleUrl: consoleAt }
        return { cluster: [{ ...blank(endpoint), ...known, ...openShiftFacts, ...claims }] }
      })
    },
  }
}

/** @param clusterId of OpenShift, which has one of its own */
function builtInClaims(
  gitVersion: string | undefined,
  systemUid: string | undefined,
  clusterId: string | null | undefined,
): Readonly<Record<string, string>> {
  return {
    [CLAIMS.id]: clusterId ?? systemUid ?? '',
    [CLAIMS.kubeVersion]: gitVersion ?? '',
    [CLAIMS.product]: productOf(gitVersion ?? '') ?? '',
  }
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
