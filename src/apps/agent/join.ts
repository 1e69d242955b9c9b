import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join as path } from 'node:path'
import { join } from '#agent'
import { keepPrivate, lockDirectory } from '#runtime'
import { decodeJoinText } from '#wire'
import { type Env, readAgentConfig } from './config.ts'
import { clusterAccess, runAgent } from './run.ts'

export interface RunJoinOptions {
  /** as `connect --join` printed it; undefined: this machine joined, or asked to, before */
  readonly token: string | undefined
  readonly env: Env
  readonly flags?: Env
  readonly version: string
  /** hears what is waited for */
  readonly say: (sentence: string) => void
}

/**
 * Becomes a member of a hub and is its agent from then on, until a signal. Begun again it goes on where it was: it asks with the
 * same key, or runs with the certificate it has.
 * @throws JoinTextError, JoinError, IdentityError, and as runAgent
 */
export async function runJoin({ token, env, flags = {}, version, say }: RunJoinOptions): Promise<void> {
  const text = token === undefined ? undefined : decodeJoinText(token)
  const given = { KUBECONFIG: defaultKubeconfig(env), ...definedIn(flags), INGESTER_TLS_ENABLED: 'true' }
  // Its faults come before the hub is asked: whoever joins is to be able to run.
  const named = (cluster: string, address: string) =>
    readAgentConfig(env, { ...given, CLUSTER_NAME: cluster, INGESTER_ADDRESS: address })
  const { config: first } = named(text?.cluster ?? 'unnamed', text?.addresses[0] ?? 'unnamed:1')
  await clusterAccess(first)
  const directory = path(first.buffer.directory, 'identity')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await keepPrivate(first.buffer.directory)
  // Until the process ends: a lock whose holder is gone is taken over.
  await using _lock = await lockDirectory(directory)
  const stop = new AbortController()
  const ended = (signal: NodeJS.Signals) =>
    stop.abort(new Error(`ended by ${signal} while it waited; begun again it goes on`))
  process.once('SIGTERM', ended).once('SIGINT', ended)
  try {
    const identity = await join(text, { directory, version, say, signal: stop.signal })
    process.off('SIGTERM', ended).off('SIGINT', ended)
    const { config, warnings } = named(identity.cluster, identity.hub.addresses[0] ?? '')
    await runAgent({ config, warnings, version, member: { identity, directory } })
  } catch (error) {
    if (!stop.signal.aborted) throw error
    say('stopped; begun again, `clusterpulse join` goes on where it was')
  }
}

/** As kubectl finds it, where nothing else is said and this is no pod. */
function defaultKubeconfig(env: Env): string | undefined {
  if (env.KUBECONFIG || env.KUBERNETES_SERVICE_HOST) return env.KUBECONFIG
  const usual = path(homedir(), '.kube', 'config')
  return existsSync(usual) ? usual : undefined
}

const definedIn = (flags: Env): Env =>
  Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
