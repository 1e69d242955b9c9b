import { events, isKubeError, type KubeClient, type KubeObject, pods, type Resource, whole } from '#kube'
import { AGENT_NAME, AGENT_NAMESPACE, agentKeys, agentResources } from './agent-objects.ts'

/** What a member shows of an agent that does not come. */
export interface AgentSigns {
  readonly deployment: KubeObject | undefined
  /** those of the agent */
  readonly pods: readonly KubeObject[]
  readonly claim: KubeObject | undefined
  /** of the agent's namespace; [] where they may not be read */
  readonly events: readonly KubeObject[]
}

/** Reads them; a member that does not let us leaves out what it does not show. Throws for an abort only. */
export async function agentSigns(kube: KubeClient, signal: AbortSignal): Promise<AgentSigns> {
  const shown = async <T>(read: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await read
    } catch (error) {
      signal.throwIfAborted()
      if (!isKubeError(error)) throw error
      return otherwise
    }
  }
  const list = (resource: Resource<unknown>, labelSelector?: string) =>
    shown<readonly KubeObject[]>(
      kube.listAll(whole(resource), { namespace: AGENT_NAMESPACE, signal, ...(labelSelector && { labelSelector }) }),
      [],
    )
  const get = (step: 'deployment' | 'persistentvolumeclaim') =>
    shown(kube.get(agentResources[step], agentKeys[step], signal), undefined)
  const [deployment, found, claim, listed] = await Promise.all([
    get('deployment'),
    list(pods, `app.kubernetes.io/name=${AGENT_NAME}`),
    get('persistentvolumeclaim'),
    list(events),
  ])
  return { deployment, pods: found, claim, events: listed }
}

interface PodStatus {
  readonly phase?: string
  readonly reason?: string
  readonly message?: string
  readonly conditions?: readonly KubeCondition[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
}
interface KubeCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}
interface ContainerStatus {
  readonly state?: { readonly waiting?: Waiting; readonly terminated?: Terminated }
  readonly lastState?: { readonly terminated?: Terminated }
}
interface Waiting {
  readonly reason?: string
  readonly message?: string
}
interface Terminated {
  readonly exitCode?: number
  readonly reason?: string
  readonly message?: string
}

/** Waiting, but on the way. */
const STARTING = new Set(['ContainerCreating', 'PodInitializing'])

/**
 * Why the agent cannot start, or does not come here, with what to do where that is known; undefined where nothing speaks against it.
 * @param address of the hub, as the agent was told it
 */
export function troubleOf(signs: AgentSigns, address: string): string | undefined {
  const elsewhere = reportsElsewhere(signs.deployment, address)
  if (elsewhere) return elsewhere
  const pod = newest(signs.pods.filter(({ metadata }) => !metadata.deletionTimestamp))
  const ofPod = pod ? podTrouble(pod, signs.events) : deploymentTrouble(signs.deployment)
  const all = [ofPod, claimTrouble(signs)].filter((text) => text !== undefined)
  return all.length === 0 ? undefined : all.join('; ').slice(0, 1500)
}

/** Each of two hubs that deploy to one member takes the agent of the other. */
function reportsElsewhere(deployment: KubeObject | undefined, address: string): string | undefined {
  const { template } = (deployment?.spec ?? {}) as { readonly template?: { readonly spec?: PodSpec } }
  const env = template?.spec?.containers?.flatMap((container) => container.env ?? []) ?? []
  const actual = env.find(({ name }) => name === 'INGESTER_ADDRESS')?.value
  if (actual === undefined || actual === address) return undefined
  return `the agent on the member was changed since this hub deployed it, and reports to ${actual}: if that is another hub, both deploy to this member; set spec.collectionMode to pull on one of them, or delete the connection there`
}

interface PodSpec {
  readonly containers?: readonly { readonly env?: readonly { readonly name: string; readonly value?: string }[] }[]
}

function podTrouble(pod: KubeObject, listed: readonly KubeObject[]): string | undefined {
  const status = (pod.status ?? {}) as PodStatus
  const named = (what: string) => `pod ${pod.metadata.name}: ${what}`
  for (const container of [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]) {
    const { waiting, terminated } = container.state ?? {}
    if (waiting?.reason && !STARTING.has(waiting.reason)) return named(waitingTrouble(waiting, container.lastState))
    if (terminated && terminated.exitCode !== 0) return named(ended(terminated))
  }
  if (status.phase === 'Failed') return named(sentence(status.reason ?? 'Failed', status.message))
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') return named(sentence(scheduled.reason ?? 'not scheduled', scheduled.message))
  const warning = status.phase === 'Pending' ? warningAbout(pod, listed) : undefined
  return warning === undefined ? undefined : named(warning)
}

function waitingTrouble({ reason = '', message }: Waiting, last: ContainerStatus['lastState']): string {
  const before = last?.terminated ? `; it ended with ${ended(last.terminated)}` : ''
  return `${sentence(reason, message)}${before}${NEXT[reason] ?? ''}`
}

const PULL =
  '; set AGENT_IMAGE on the hub to where this member can pull it, or AGENT_IMAGE_PULL_SECRET to a Secret in clusterpulse-system'
const NEXT: Readonly<Record<string, string>> = {
  ErrImagePull: PULL,
  ImagePullBackOff: PULL,
  InvalidImageName: PULL,
  ErrImageNeverPull: PULL,
}

const ended = ({ exitCode, reason, message }: Terminated): string =>
  sentence(`${reason ?? 'Error'} (exit code ${exitCode ?? '?'})`, message)

/** Of pods that are never made: a quota, an admission rule, a service account that lacks. */
function deploymentTrouble(deployment: KubeObject | undefined): string | undefined {
  const { conditions = [] } = (deployment?.status ?? {}) as { readonly conditions?: readonly KubeCondition[] }
  const failed =
    conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True') ??
    conditions.find(({ type, status }) => type === 'Progressing' && status === 'False')
  return failed && `no pod is made: ${sentence(failed.reason ?? failed.type, failed.message)}`
}

function claimTrouble({ claim, events: listed }: AgentSigns): string | undefined {
  if (!claim || (claim.status as { readonly phase?: string } | undefined)?.phase !== 'Pending') return undefined
  const warning = warningAbout(claim, listed)
  const next = 'set AGENT_BUFFER_STORAGE_CLASS on the hub to a class that provides volumes'
  // Bound with its first pod, which waits for something else then.
  return warning === undefined ? undefined : `its claim ${claim.metadata.name} is pending: ${warning}; ${next}`
}

/** What the cluster last warned of, about this object. */
function warningAbout({ kind, metadata }: KubeObject, listed: readonly KubeObject[]): string | undefined {
  const about = listed.filter((event) => {
    const { involvedObject, type } = event as KubeObject & Event
    const isIt = involvedObject?.uid ? involvedObject.uid === metadata.uid : involvedObject?.name === metadata.name
    return type === 'Warning' && isIt && (kind === undefined || !involvedObject?.kind || involvedObject.kind === kind)
  })
  const last = about.sort((a, b) => seenAt(a) - seenAt(b)).at(-1) as (KubeObject & Event) | undefined
  return last && sentence(last.reason ?? 'Warning', last.message)
}

interface Event {
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly lastTimestamp?: string | null
  readonly eventTime?: string | null
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}

const seenAt = (event: KubeObject): number => {
  const { lastTimestamp, eventTime } = event as KubeObject & Event
  return Date.parse(lastTimestamp || eventTime || (event.metadata.creationTimestamp ?? '')) || 0
}

const newest = (found: readonly KubeObject[]): KubeObject | undefined =>
  [...found].sort((a, b) => createdAt(a) - createdAt(b)).at(-1)
const createdAt = ({ metadata }: KubeObject) => Date.parse(metadata.creationTimestamp ?? '') || 0

/** `reason: message`, in one line. */
const sentence = (reason: string, message = ''): string =>
  [reason, message.replace(/\s+/g, ' ').trim().slice(0, 600)].filter((text) => text !== '').join(': ')
