import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join as path } from 'node:path'
import { IdentityFiles, IdentitySecret, type IdentityStore, join } from '#agent'
import { type ClusterAccess, createKubeClient } from '#kube'
import { agentRightsText, FleetError, OBSERVE } from '#model'
import { createLogger, keepPrivate, lockDirectory, Metrics, type RunningParts, startParts } from '#runtime'
import { decodeJoinText } from '#wire'
import { clusterAccess } from './cluster-access.ts'
import { type AgentConfig, type Env, readJoinConfig } from './config.ts'
import { localParts } from './local-parts.ts'
import { agentProbes } from './probes.ts'
import { type HeldRights, heldRights } from './rights.ts'
import { runAgent } from './run.ts'

export interface RunJoinOptions {
  /** as `connect` printed it; undefined: JOIN_TOKEN, or this machine joined, or asked to, before */
  readonly token: string | undefined
  readonly env: Env
  readonly flags?: Env
  readonly version: string
  /** hears what is waited for */
  readonly say: (sentence: string) => void
}

/** Of a hub that its token or the identity names. */
const UNNAMED = 'unnamed:1'

class RightsError extends FleetError {
  override readonly name = 'RightsError'
  readonly code = 'rights_missing'
  readonly retryable = false
}

/**
 * Becomes a member of a hub and is its agent from then on, until a signal. Begun again it goes on where it was: it asks with the
 * same key, or runs with the certificate it has.
 * @throws JoinTextError, JoinError, IdentityError, RightsError, and as runAgent
 */
export async function runJoin({ token, env, flags = {}, version, say }: RunJoinOptions): Promise<void> {
  // Everybody on the machine can read the arguments of its processes.
  process.title = 'clusterpulse join'
  const given = { KUBECONFIG: defaultKubeconfig(env), ...definedIn(flags), INGESTER_TLS_ENABLED: 'true' }
  // Its faults come before the hub is asked: whoever joins is to be able to run.
  const named = (cluster: string, address: string) =>
    readJoinConfig(env, { ...given, CLUSTER_NAME: cluster, INGESTER_ADDRESS: address })
  const { config: first } = named('unnamed', UNNAMED) // the token says who it is
  const shown = token ?? first.joinToken
  const text = shown === undefined ? undefined : decodeJoinText(shown)
  const access = await clusterAccess(first)
  const { rights, fault, excess } = await rightsOn(access, first)
  // In a pod nobody reads it: the agent does the less.
  if (fault !== undefined && token !== undefined) throw new RightsError(fault)
  if (fault !== undefined) say(`${fault}; it goes on with ${agentRightsText(rights)}`)
  if (excess !== undefined) say(excess)
  await using store = await openStore(first, access)
  const stop = new AbortController()
  const ended = (signal: NodeJS.Signals) =>
    stop.abort(new Error(`ended by ${signal} while it waited; begun again it goes on`))
  process.once('SIGTERM', ended).once('SIGINT', ended)
  // While it waits, maybe for days, the process says that it lives and what it waits for; and where, it says once.
  let waitsFor = 'it asks to become a member'
  const about = { status: () => undefined, waitsFor: () => waitsFor }
  const cluster = ((await store.identity.member()) ?? text ?? (await store.identity.asking()))?.cluster
  const logger = createLogger(first.logLevel, { role: 'agent', version, ...(cluster !== undefined && { cluster }) })
  const metrics = new Metrics()
  const probes = agentProbes({ ...{ address: first.healthAddress, metrics, version, logger, about } })
  // Inventory needs no hub: not even one that was asked, and has not answered.
  const local =
    cluster === undefined ? undefined : await localParts(named(cluster, UNNAMED).config, { logger, metrics })
  let running: RunningParts | undefined
  const told = (sentence: string) => {
    waitsFor = sentence
    say(sentence)
  }
  try {
    await probes.start()
    if (local) {
      const { inventory, leadership } = local
      const report = inventory && { inventory: () => inventory.report() }
      probes.tellOf({ ...about, ...report, ...(leadership && { leadership }) })
      running = await startParts(local.parts, { logger })
    }
    // A manifest that is printed and applied again brings another token: who is a member stays who it is.
    const isKept = first.identitySecret && token === undefined && (await store.identity.member()) !== undefined
    // Unless it was over: then it asked with that one, and goes on.
    const isAsking = isKept && text !== undefined && (await store.identity.asking())?.token === text.secret
    const newToken = isKept && !isAsking ? text : undefined
    const asked = newToken ? undefined : text
    const identity = await join(asked, { store: store.identity, version, say: told, signal: stop.signal })
    process.off('SIGTERM', ended).off('SIGINT', ended)
    const { config, warnings } = named(identity.cluster, identity.hub.addresses[0] ?? '')
    const member = { identity, store: store.identity, rights, ...(newToken && { newToken }) }
    await runAgent({ config, warnings, version, probes, member, ...(local && { local }) })
  } catch (error) {
    if (!stop.signal.aborted) throw error
    say('stopped; begun again, `clusterpulse join` goes on where it was')
  } finally {
    await running?.stop()
    await probes.stop()
  }
}

async function rightsOn(access: ClusterAccess, { rights, identitySecret }: AgentConfig): Promise<HeldRights> {
  if (rights.kind === 'observe') return { rights: OBSERVE }
  await using kube = createKubeClient(access)
  const as = identitySecret ? 'executor' : 'itself'
  return await heldRights(kube, rights, { as, signal: AbortSignal.timeout(30_000) })
}

/** Where its key and certificate are kept: a Secret of the cluster, or a folder that nobody else holds. */
async function openStore(
  config: AgentConfig,
  access: ClusterAccess,
): Promise<AsyncDisposable & { readonly identity: IdentityStore }> {
  await keepPrivate(config.buffer.directory)
  if (config.identitySecret) {
    const kube = createKubeClient(access)
    const close = () => kube[Symbol.asyncDispose]()
    return { identity: new IdentitySecret(kube, config.identitySecret), [Symbol.asyncDispose]: close }
  }
  const directory = path(config.buffer.directory, 'identity')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  // Until the process ends: a lock whose holder is gone is taken over.
  const lock = await lockDirectory(directory)
  return { identity: new IdentityFiles(directory), [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose]() }
}

/** As kubectl finds it, where nothing else is said and this is no pod. */
function defaultKubeconfig(env: Env): string | undefined {
  if (env.KUBECONFIG || env.KUBERNETES_SERVICE_HOST) return env.KUBECONFIG
  const usual = path(homedir(), '.kube', 'config')
  return existsSync(usual) ? usual : undefined
}

const definedIn = (flags: Env): Env =>
  Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
