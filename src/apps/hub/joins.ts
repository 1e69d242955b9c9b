import type { AuditEntry, AuditTrail } from '#audit'
import { AUTHORITY_CONFIG_MAP, STREAM_SIGNER, unusableIn } from '#certificates'
import { auditEntryOf, fingerprintOf, type JoinFact, trustedIn } from '#joining'
import { isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { FleetError, seconds, systemClock } from '#model'
import type { Authorities } from '#registration'
import type { Part } from '#runtime'
import type { HubLogger } from './run.ts'

/** What joining needs of the hub that only its processes know. */
export interface HubJoinsWiring {
  /** PEM of the authorities whose certificates members show; '': none yet */
  readonly clientRoots: () => Promise<string>
  /** the same, where it is known which authorities these are; undefined: it is not yet, and nobody is told that theirs counts no more */
  readonly trusted: () => Promise<string | undefined>
  /** told who joins and who leaves; resolves when it is written down */
  readonly record: (fact: JoinFact) => Promise<void>
  /** who signs what agents ask for; default: the API's own signer of clients */
  readonly signer?: string
  /** why nothing can be signed now; undefined: nothing speaks against it */
  readonly signingFault?: () => Promise<string | undefined>
}

/** Resolves when the entry is written, or cannot be; the trail may be opened later than the first agent comes. */
export const keptIn =
  (trail: () => Pick<AuditTrail, 'record' | 'flush'> | undefined) =>
  async (entry: AuditEntry): Promise<void> => {
    trail()?.record(entry)
    await trail()?.flush()
  }

export const recordedBy =
  (keep: (entry: AuditEntry) => Promise<void>) =>
  (fact: JoinFact): Promise<void> =>
    keep(auditEntryOf(fact, systemClock.now()))

export interface KubernetesJoins {
  readonly hub: () => KubeClient
  /** of the hub's own objects */
  readonly namespace: string
  readonly record: HubJoinsWiring['record']
  readonly logger: HubLogger
}

/**
 * Of a hub on Kubernetes: the hub's own CA signs agents of its stream, so that the platform need not sign clients and those certificates
 * open nothing but the stream. Members of before, whom the API server's CA signed, are known as well.
 */
export function joinsOnKubernetes({ hub, namespace, record, logger }: KubernetesJoins): HubJoinsWiring {
  let fault: string | undefined
  const own = publishedRoots(hub, OWN(namespace), logger, (map) => {
    fault = unusableIn(map)
  })
  const ofApi = publishedRoots(hub, OF_API, logger)
  const all = () => Promise.all([own(), ofApi()])
  return {
    signer: STREAM_SIGNER,
    clientRoots: async () => (await all()).join('\n'),
    trusted: async () => {
      const roots = await all()
      return roots.includes('') ? undefined : roots.join('\n')
    },
    signingFault: async () => {
      await own()
      return fault
    },
    record,
  }
}

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }

/** Where authorities of clients are published, and how often they are read. */
interface Published {
  readonly key: { readonly name: string; readonly namespace: string }
  readonly field: string
  readonly everyMs: number
}

/** A CA that takes over signs a minute after it is published. */
const OWN = (namespace: string): Published => ({
  key: { name: AUTHORITY_CONFIG_MAP, namespace },
  field: 'ca.crt',
  everyMs: seconds(5),
})
/** As every API server publishes them for servers beside it. */
const OF_API: Published = {
  key: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
  field: 'client-ca-file',
  everyMs: seconds(30),
}

/** What hears of a look at which authorities are published. */
interface RootsHeard {
  /** why they could not be read */
  readonly failed?: (error: unknown) => void
  /** what the hub says of its own */
  readonly own?: (map: KubeObject | undefined) => void
}

/** As a hub takes members' certificates now, PEM; undefined: they are not published, or may not be read. */
export async function trustedRoots(
  hub: KubeClient,
  namespace: string,
  { failed, own: heard }: RootsHeard = {},
): Promise<string | undefined> {
  const [ownMap, mapOfApi] = [OWN(namespace), OF_API]
  try {
    const [map, ofApi] = await Promise.all([ownMap, mapOfApi].map(({ key }) => hub.get(configMaps, key)))
    heard?.(map)
    const own = fieldOf(map, ownMap.field)
    return own === '' ? undefined : `${own}\n${fieldOf(ofApi, mapOfApi.field)}`
  } catch (error) {
    failed?.(error)
    return undefined
  }
}

/**
 * The CAs whose certificates count, for processes that do not hold them. Not known until they are read; where they cannot be, as last read:
 * an authority is ended by another list, never by none.
 */
export function publishedAuthorities(
  hub: () => KubeClient,
  namespace: string,
  logger: HubLogger,
): Part & { readonly authorities: Authorities } {
  let known: readonly string[] | undefined
  let fault: string | undefined
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let why = ''
  const listeners = new Set<() => void>()
  const look = async () => {
    let failure = ''
    const faultBefore = fault
    const roots = await trustedRoots(hub(), namespace, {
      failed: (error) => {
        failure = FleetError.from(error).message
      },
      own: (map) => {
        fault = unusableIn(map)
      },
    })
    if (failure !== '' && failure !== why)
      logger.warn(
        { why: failure },
        'which CAs of members count cannot be read: a certificate of one that is ended is shown as it was',
      )
    why = failure
    const read = trustedIn(roots)?.map(fingerprintOf)
    const isSame = !read || read.join() === known?.join()
    if (isSame && fault === faultBefore) return
    if (read) known = read
    for (const listener of listeners) listener()
  }
  const lookOnce = () => {
    looking ??= look().finally(() => {
      looking = undefined
    })
  }
  return {
    name: 'authorities',
    start() {
      lookOnce()
      timer = setInterval(lookOnce, OWN(namespace).everyMs)
      return Promise.resolve()
    },
    async stop() {
      clearInterval(timer)
      await looking
    },
    authorities: {
      lacksIssuerOf: ({ issuer }) => known && issuer !== undefined && !known.some((id) => id.startsWith(issuer)),
      signingFault: () => fault,
      onChange(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
  }
}

const fieldOf = (map: KubeObject | undefined, field: string): string =>
  (map?.data as Readonly<Record<string, string>> | undefined)?.[field] ?? ''

/** Read now and then; between, and while they cannot be read or are not there, as last read: an authority is ended by another list, never by none. */
function publishedRoots(
  hub: () => KubeClient,
  { key, field, everyMs }: Published,
  logger: HubLogger,
  onRead: (map: KubeObject | undefined) => void = () => undefined,
): () => Promise<string> {
  let roots = ''
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  let isReported = false
  const read = async (): Promise<void> => {
    try {
      const map = await hub().get(configMaps, key)
      onRead(map)
      const found = fieldOf(map, field)
      if (found !== '' || roots === '') {
        roots = found
        isReported = false
        return
      }
      if (!isReported)
        logger.warn(
          {},
          `the ConfigMap ${key.namespace}/${key.name} says no more which authorities members' certificates are of: those that it named last go on counting until this process ends`,
        )
    } catch (error) {
      if (!isReported)
        logger.warn(
          { err: error, forbidden: isKubeError(error, 'forbidden') },
          `members cannot prove themselves by certificate: the ConfigMap ${key.namespace}/${key.name} cannot be read`,
        )
    }
    isReported = true
  }
  return async () => {
    const now = systemClock.now()
    if (now - readAt >= (roots === '' ? seconds(1) : everyMs)) {
      readAt = now
      reading = read().finally(() => {
        reading = undefined
      })
    }
    // Whoever asks meanwhile is told what is read, and not that there is nothing yet.
    await reading
    return roots
  }
}
