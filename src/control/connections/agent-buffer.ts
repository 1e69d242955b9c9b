import { isKubeError, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type AgentInstall, agentKeys, agentResources, type BufferVolume, IMAGE_GROUP } from './agent-objects.ts'

/** Why the buffer of an agent ends with its pod. */
export interface NotDurable {
  readonly reason: string
  readonly message: string
}

/** The volume an agent's buffer gets on a member; without one, why. Neither: none is asked for. */
export interface BufferPlan {
  readonly volume?: BufferVolume
  readonly notDurable?: NotDurable
}

const storageClasses: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'storageclasses',
  kind: 'StorageClass',
  namespaced: false,
}
const securityContextConstraints: Resource = {
  group: 'security.openshift.io',
  version: 'v1',
  plural: 'securitycontextconstraints',
  kind: 'SecurityContextConstraints',
  namespaced: false,
}
const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

/**
 * Decides where the buffer of a member's agent is kept. A claim that nothing would fulfil is not made: the agent would wait for it
 * and read nothing.
 */
export async function planBuffer(
  kube: KubeClient,
  wanted: AgentInstall['bufferVolume'],
  signal: AbortSignal,
): Promise<BufferPlan> {
  if (!wanted) return {}
  if (!(await kube.serves(agentResources.persistentvolumeclaim, signal)))
    return { notDurable: { reason: 'NoClaims', message: `the member serves no claims of volumes; ${KEPT_WITH_POD}` } }
  const isOpenShift = await kube.serves(securityContextConstraints, signal)
  const volume = { ...wanted, ...(!isOpenShift && { fsGroup: IMAGE_GROUP }) }
  const isThere = await kube.get(agentResources.persistentvolumeclaim, agentKeys.persistentvolumeclaim, signal)
  if (wanted.storageClass || isThere) return { volume }
  const notDurable = await noDefaultClass(kube, signal)
  return notDurable ? { notDurable } : { volume }
}

/** What is said of a claim that the member refused: a right that lacks, a quota, an admission rule. */
export function claimRefused(why: string): NotDurable {
  return { reason: 'ClaimRefused', message: `the member refuses the claim for it: ${why}; ${KEPT_WITH_POD}` }
}

const KEPT_WITH_POD = "the agent's buffer ends with its pod, and what it had not delivered is lost with it"

async function noDefaultClass(kube: KubeClient, signal: AbortSignal): Promise<NotDurable | undefined> {
  let classes: readonly KubeObject[]
  try {
    classes = await kube.listAll(storageClasses, { signal })
  } catch (error) {
    if (!isKubeError(error, 'forbidden') && !isKubeError(error, 'not_found')) throw error
    const next = 'apply deploy/member/agent-installer.yaml again, or set AGENT_BUFFER_STORAGE_CLASS'
    return {
      reason: 'StorageClassesUnreadable',
      message: `the account may not list storageclasses.storage.k8s.io (${next}); ${KEPT_WITH_POD}`,
    }
  }
  const isDefault = ({ metadata }: KubeObject) => DEFAULT_CLASS.some((name) => metadata.annotations?.[name] === 'true')
  if (classes.some(isDefault)) return undefined
  const names = classes.map(({ metadata }) => metadata.name).slice(0, 5)
  const known = names.length > 0 ? `; it has ${names.join(', ')}` : ''
  const message = `the member has no default StorageClass${known}: name one with AGENT_BUFFER_STORAGE_CLASS, or make one the default; ${KEPT_WITH_POD}`
  return { reason: 'NoDefaultStorageClass', message }
}
