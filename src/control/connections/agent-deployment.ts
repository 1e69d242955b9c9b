import { createHash } from 'node:crypto'
import type { Collector } from '#collect'
import { isKubeError, type KubeClient, type KubeObject, throwOwnClose } from '#kube'
import { type ClusterName, FleetError, invariant, seconds } from '#model'
import { type BufferPlan, claimRefused, type NotDurable, planBuffer } from './agent-buffer.ts'
import type { AgentCredentials } from './agent-credentials.ts'
import {
  type AgentCredential,
  type AgentObject,
  type AgentSettings,
  agentKeys,
  agentObjects,
  agentResources,
  SERVES,
} from './agent-objects.ts'
import {
  lacksOnlyWatch,
  notAllowed,
  notGrantable,
  polling,
  type RoleGap,
  type RoleRead,
  resolvedReads,
  roleGap,
  type SourceReads,
} from './agent-role.ts'
import type { TokenRecord } from './credential-record.ts'

/** Owner of what the hub writes on members; what others set beside it stays theirs. */
const FIELD_MANAGER = 'clusterpulse-hub'

/** How long a token of a deployed agent lives; it is replaced when a third of that is left. */
export const AGENT_TOKEN_TTL_MS = seconds(90 * 24 * 3600)

export type DeploymentEnd =
  | {
      readonly kind: 'deployed'
      readonly image: string
      readonly changed: boolean
      /** what MetricSources ask for and its role does not allow */
      readonly roleGaps: readonly RoleGap[]
      /** its buffer ends with its pod: why */
      readonly notDurable?: NotDurable
    }
  /** a collector of the original is installed there, and stays */
  | { readonly kind: 'kept' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }

export interface DeployOptions {
  readonly kube: KubeClient
  readonly cluster: ClusterName
  readonly settings: AgentSettings
  readonly collectors: readonly Collector[]
  /** what MetricSources read */
  readonly reads?: readonly SourceReads[]
  readonly credentials: Pick<AgentCredentials, 'check' | 'issue'>
  /** a collector of the original is not replaced: people do that, when they want to */
  readonly keepsOriginals?: boolean
  /** called once the member has answered, before anything is written there */
  readonly beforeWrite?: () => Promise<void>
  /** hub's clock, ms since the Unix epoch */
  readonly now: number
  readonly signal: AbortSignal
}

/** What is on the member now, as far as it decides anything. */
interface Found {
  readonly namespace: KubeObject | undefined
  readonly secret: KubeObject | undefined
  readonly deployment: KubeObject | undefined
}

/**
 * Brings the agent of a member to what is wanted. A repeat changes nothing there. The first failure ends it and is named
 * with its step.
 */
export async function deployAgent(options: DeployOptions): Promise<DeploymentEnd> {
  const { kube, cluster, settings, collectors, signal } = options
  let step = 'namespace'
  try {
    const found = await look(kube, signal, (at) => {
      step = at
    })
    step = 'deployment'
    const other = found.deployment?.metadata.annotations?.[SERVES]
    if (other !== undefined && other !== cluster) {
      return failure(
        'agent_of_other',
        `deployment: an agent of the connection ${other} runs there; delete that connection, or this one`,
      )
    }
    if (options.keepsOriginals && isOfOriginal(found.deployment)) return { kind: 'kept' }
    step = 'connection'
    await options.beforeWrite?.()
    step = 'secret'
    const shown = tokenIn(found.secret)
    const credential = await credentialFor(shown, options)
    const reads = await resolvedReads(kube, options.reads ?? [], signal)
    step = 'persistentvolumeclaim'
    let buffer = await planBuffer(kube, settings.bufferVolume, signal)
    const wanted = () => agentObjects(withBuffer(settings, buffer), credential, collectors, reads)
    const before = versions(found)
    let roleGaps: readonly RoleGap[] = []
    for (const { step: next } of wanted().filter((one) => isOurs(one, found))) {
      step = next
      // The claim decides what the Deployment says, and comes before it.
      const one = wanted().find((object) => object.step === next)
      if (!one) continue
      if (one.resource === agentResources.persistentvolumeclaim) {
        const refused = await applyClaim(kube, one, signal)
        if (refused !== undefined) buffer = { notDurable: claimRefused(refused) }
      } else if (one.resource === agentResources.clusterrole) {
        roleGaps = await applyRole({ kube, settings, collectors, reads, signal })
      } else if (await isServed(kube, one, signal)) await apply(kube, one, signal)
    }
    step = 'configmap'
    if (!settings.tls || settings.caPem === undefined) await removeOne(kube, 'configmap', cluster, signal)
    step = 'persistentvolumeclaim'
    if (!settings.bufferVolume && (await kube.serves(agentResources.persistentvolumeclaim, signal)))
      await removeOne(kube, 'persistentvolumeclaim', cluster, signal)
    const { notDurable } = buffer
    const after = versions(await look(kube, signal, () => undefined))
    const changed = before !== after || credential.token !== shown
    return {
      kind: 'deployed',
      image: settings.image,
      changed,
      roleGaps,
      ...(notDurable && { notDurable }),
    }
  } catch (error) {
    signal.throwIfAborted()
    throwOwnClose(error)
    return explained(step, cluster, error)
  }
}

/** What is wanted of the buffer, as the member can have it. */
function withBuffer({ bufferVolume: _, ...settings }: AgentSettings, { volume }: BufferPlan): AgentSettings {
  return { ...settings, ...(volume && { bufferVolume: volume }) }
}

/** A claim that is there serves as it is: most of it cannot be changed. @returns why there is none */
async function applyClaim(kube: KubeClient, claim: AgentObject, signal: AbortSignal): Promise<string | undefined> {
  try {
    await apply(kube, claim, signal)
    return undefined
  } catch (error) {
    if (!isKubeError(error, 'forbidden') && !isKubeError(error, 'invalid')) throw error
    if (await kube.get(claim.resource, agentKeys.persistentvolumeclaim, signal)) return undefined
    return error.apiMessage ?? error.message
  }
}

type RoleOptions = Pick<DeployOptions, 'kube' | 'settings' | 'collectors' | 'signal'>

/**
 * Gives the agent the role that MetricSources need. What of it the hub may not give (nobody can give what they do not have)
 * is left out, but never taken away where it was given before: then the role stays as it is.
 * @returns what the agent may not read
 */
async function applyRole(options: RoleOptions & { readonly reads: readonly RoleRead[] }): Promise<readonly RoleGap[]> {
  const { kube, reads, signal } = options
  const current = () => kube.get(agentResources.clusterrole, agentKeys.clusterrole, signal)
  try {
    await apply(kube, roleFor(options, reads), signal)
    return []
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    if (wantsWatch(options) && lacksOnlyWatch(error)) {
      // Of a reader of before watches were used: the agent polls, and says so.
      const polled = reads.map((read) => ({ ...read, watch: false }))
      await applyRole({ ...options, collectors: polling(options.collectors), reads: polled })
      return notAllowed(reads, await current()).map((read) => roleGap(read, error))
    }
    const refused = notGrantable(reads, error)
    const found = await current()
    const takesAway = notAllowed(refused, found).length < refused.length
    if (!found || (!takesAway && refused.length < reads.length)) {
      const rest = reads.filter((read) => !refused.includes(read))
      await applyRest(kube, roleFor(options, rest), found !== undefined, signal)
    }
    return notAllowed(reads, await current()).map((read) => roleGap(read, error))
  }
}

const wantsWatch = ({
  collectors,
  reads,
}: Pick<DeployOptions, 'collectors'> & { readonly reads: readonly RoleRead[] }) =>
  reads.some(({ watch }) => watch) || collectors.some((one) => one.reads.some(({ verbs }) => verbs.includes('watch')))

/** Refused again, the role that is there stays: rounds matter more. */
async function applyRest(kube: KubeClient, role: AgentObject, isThere: boolean, signal: AbortSignal): Promise<void> {
  try {
    await apply(kube, role, signal)
  } catch (error) {
    if (!isThere || !isKubeError(error, 'forbidden')) throw error
  }
}

function roleFor({ settings, collectors }: RoleOptions, reads: readonly RoleRead[]): AgentObject {
  const objects = agentObjects(settings, { token: '', id: '' }, collectors, reads)
  const role = objects.find(({ resource }) => resource === agentResources.clusterrole)
  invariant(role, 'an agent has a role')
  return role
}

/** Only the role of an agent that is there already: MetricSources have changed. @returns what the agent may not read */
export async function updateRole(
  options: RoleOptions & { readonly cluster: ClusterName; readonly reads: readonly SourceReads[] },
): Promise<readonly RoleGap[]> {
  const { kube, cluster, signal } = options
  const found = await kube.get(agentResources.clusterrole, agentKeys.clusterrole, signal)
  if (found?.metadata.annotations?.[SERVES] !== cluster) return []
  return applyRole({ ...options, reads: await resolvedReads(kube, options.reads, signal) })
}

async function look(kube: KubeClient, signal: AbortSignal, at: (step: string) => void): Promise<Found> {
  const get = (step: 'namespace' | 'secret' | 'deployment') => {
    at(step)
    return kube.get(agentResources[step], agentKeys[step], signal)
  }
  return { namespace: await get('namespace'), secret: await get('secret'), deployment: await get('deployment') }
}

/** Of the same name as ours, and not ours: without our mark, and its containers run no `agent`. */
function isOfOriginal(deployment: KubeObject | undefined): boolean {
  if (!deployment || deployment.metadata.annotations?.[SERVES] !== undefined) return false
  const { template } = (deployment.spec ?? {}) as { readonly template?: { readonly spec?: PodSpec } }
  return !template?.spec?.containers?.some(({ args }) => args?.includes('agent'))
}

interface PodSpec {
  readonly containers?: readonly { readonly args?: readonly string[] }[]
}

const versions = ({ secret, deployment }: Found) =>
  `${secret?.metadata.resourceVersion ?? ''} ${deployment?.metadata.generation ?? ''}`

/** A namespace that was there before us is used, and left as it is. */
function isOurs({ step }: AgentObject, { namespace }: Found): boolean {
  return step !== 'namespace' || namespace === undefined || namespace.metadata.annotations?.[SERVES] !== undefined
}

function tokenIn(secret: KubeObject | undefined): string | undefined {
  const encoded = (secret?.data as { token?: unknown } | undefined)?.token
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString('utf8') : undefined
}

/** The token the member has, where it is good for a while yet; else a new one, beside which the old one stays good. */
async function credentialFor(
  shown: string | undefined,
  { cluster, credentials, now, signal }: DeployOptions,
): Promise<AgentCredential> {
  const record = shown === undefined ? undefined : credentials.check(cluster, shown)
  if (shown !== undefined && record && !isNearEnd(record, now)) return { token: shown, id: record.id }
  return credentials.issue(cluster, { ttlMs: AGENT_TOKEN_TTL_MS, ...(record && { inUse: record.id }), signal })
}

/** Less than a third of its life is left. */
export function isNearEnd({ createdAt, expiresAt }: TokenRecord, now: number): boolean {
  return expiresAt !== null && expiresAt - now < (expiresAt - createdAt) / 3
}

/** Few APIs are without network policies; there the agent is as confined as everything else. */
async function isServed(kube: KubeClient, { resource }: AgentObject, signal: AbortSignal): Promise<boolean> {
  return resource !== agentResources.networkpolicy || kube.serves(resource, signal)
}

async function apply(kube: KubeClient, { resource, object }: AgentObject, signal: AbortSignal): Promise<void> {
  const { name, namespace } = object.metadata
  const key = namespace ? { name, namespace } : { name }
  const how = { kind: 'apply', fieldManager: FIELD_MANAGER, force: true, signal } as const
  try {
    await kube.patch(resource, key, object, how)
  } catch (error) {
    // What cannot be changed in place is made anew: a binding to another role, a selector of a former version.
    const immutable =
      isKubeError(error, 'invalid') && (resource.kind === 'ClusterRoleBinding' || resource.kind === 'Deployment')
    if (!immutable || (await kube.get(resource, key, signal)) === undefined) throw error
    await kube.delete(resource, key, signal)
    await kube.patch(resource, key, object, how)
  }
}

const REMOVED_IN_ORDER = Object.keys(agentResources).reverse() as (keyof typeof agentResources)[]

/**
 * Takes the agent of this cluster away: what serves another connection, or was there before us, stays.
 * @returns what is left and why, when it could not be finished; [] when nothing is left
 */
export async function removeAgent(
  kube: KubeClient,
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const left: string[] = []
  for (const step of REMOVED_IN_ORDER) {
    try {
      await removeOne(kube, step, cluster, signal)
    } catch (error) {
      signal.throwIfAborted()
      throwOwnClose(error)
      left.push(`${agentResources[step].kind} ${nameOf(step)} (${FleetError.from(error).message})`)
      // Nobody answers: the others would only wait as long.
      if (
        isKubeError(error) &&
        ['unreachable', 'timeout', 'tls', 'breaker_open', 'unauthorized'].includes(error.reason)
      )
        break
    }
  }
  return left
}

async function removeOne(
  kube: KubeClient,
  step: keyof typeof agentResources,
  cluster: ClusterName,
  signal: AbortSignal,
): Promise<void> {
  const found = await kube.get(agentResources[step], agentKeys[step], signal)
  if (!found || found.metadata.annotations?.[SERVES] !== cluster) return
  try {
    await kube.delete(agentResources[step], agentKeys[step], signal)
  } catch (error) {
    if (!isKubeError(error, 'not_found')) throw error
  }
}

/** What a member still holds of an agent when nobody could take it away, for people. */
export function leftOvers(): string {
  return REMOVED_IN_ORDER.filter((step) => step !== 'persistentvolumeclaim')
    .map((step) => `${agentResources[step].kind} ${nameOf(step)}`)
    .join(', ')
}

function nameOf(step: keyof typeof agentResources): string {
  const { name, namespace } = agentKeys[step]
  return namespace ? `${namespace}/${name}` : name
}

function explained(step: string, cluster: ClusterName, error: unknown): DeploymentEnd {
  const { code, message } = FleetError.from(error)
  if (!isKubeError(error, 'forbidden')) return failure(code, `${step}: ${message}`)
  const right = /cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?/.exec(error.apiMessage ?? '')
  const missing = right ? `the account may not ${right[1]} ${right[2]}${right[3] ? `.${right[3]}` : ''}` : message
  const next = `grant it, or run "clusterpulse connect ${cluster} --bearer-token -o manifest" and apply what it prints on the member`
  return failure(code, `${step}: ${missing}; ${next}`)
}

const failure = (code: string, message: string): DeploymentEnd => ({
  kind: 'failed',
  code,
  message: message.slice(0, 4000),
})

/** Changes when what is wanted on the member changes. */
export function settingsHash(settings: AgentSettings): string {
  return createHash('sha256').update(JSON.stringify(settings)).digest('hex')
}
