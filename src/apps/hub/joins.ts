import type { AuditTrail } from '#audit'
import { auditEntryOf, type JoinFact } from '#joining'
import { isKubeError, type KubeClient, type Resource } from '#kube'
import { seconds, systemClock } from '#model'
import type { HubLogger } from './run.ts'

/** What joining needs of the hub that only its processes know. */
export interface HubJoinsWiring {
  /** PEM of the authorities whose certificates members show; '': none yet */
  readonly clientRoots: () => Promise<string>
  /** told who joins and who leaves */
  readonly record: (fact: JoinFact) => void
  /** told of a member whose certificates count no more */
  readonly onRevoked?: (cluster: string) => void
}

/** Of a hub on Kubernetes: its API server says whose client certificates it takes; the log says who joins. */
export const joinsOnKubernetes = (hub: () => KubeClient, logger: HubLogger): HubJoinsWiring => ({
  clientRoots: publishedClientRoots(hub, logger),
  record: (fact) => logger.info({ audit: auditEntryOf(fact, systemClock.now()) }, 'audited'),
})

/** Written to the trail of the page, which is opened later than the first agent may come. */
export const recordedIn =
  (trail: () => AuditTrail | undefined) =>
  (fact: JoinFact): void =>
    trail()?.record(auditEntryOf(fact, systemClock.now()))

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const PUBLISHED = { name: 'extension-apiserver-authentication', namespace: 'kube-system' }
const READ_EVERY_MS = seconds(30)

/** As every API server publishes them for servers beside it. Read now and then; between, and while it cannot be read, as last read. */
function publishedClientRoots(hub: () => KubeClient, logger: HubLogger): () => Promise<string> {
  let roots = ''
  let readAt = Number.NEGATIVE_INFINITY
  let isReported = false
  return async () => {
    const now = systemClock.now()
    if (now - readAt < READ_EVERY_MS) return roots
    readAt = now
    try {
      const map = await hub().get(configMaps, PUBLISHED)
      roots = (map?.data as Readonly<Record<string, string>> | undefined)?.['client-ca-file'] ?? ''
      isReported = false
    } catch (error) {
      if (!isReported)
        logger.warn(
          { err: error, forbidden: isKubeError(error, 'forbidden') },
          `members cannot prove themselves by certificate: the ConfigMap ${PUBLISHED.namespace}/${PUBLISHED.name} cannot be read`,
        )
      isReported = true
    }
    return roots
  }
}
