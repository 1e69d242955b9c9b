import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ApiObject, ApiServer } from '#apiserver'
import { seconds, systemClock } from '#model'
import type { Logger } from '#runtime'
import { kubeconfigOf, type SimulatedCluster } from '#simulator'

export interface SimulatedAgentsOptions {
  readonly clusters: readonly SimulatedCluster[]
  readonly serverOf: (cluster: string) => ApiServer
  /** for kubeconfigs, CA files and the agents' buffers */
  readonly directory: string
  /** how to start our executable: program, then its first arguments */
  readonly executable: readonly string[]
  readonly logger: Logger
}

const NAMESPACE = 'clusterpulse-system'
const NAME = 'clusterpulse-collector'
const core = (plural: string) => ({ group: '', version: 'v1', plural })
const deployments = { group: 'apps', version: 'v1', plural: 'deployments' }
const LOOK_EVERY_MS = 500
const RESTART_AFTER_MS = seconds(1)
const STOP_WITHIN_MS = seconds(8)

interface Container {
  readonly env?: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly key: string } }
  }[]
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}
interface PodSpec {
  readonly containers?: readonly Container[]
  readonly volumes?: readonly { readonly name: string; readonly configMap?: { readonly name: string } }[]
}

interface Running {
  readonly wanted: string
  readonly child: ChildProcess
}

/**
 * What a kubelet would do in a simulated cluster, for one Deployment only: where the hub deployed the agent, it really
 * runs, as a process of this machine with the environment its container asks for.
 */
export class SimulatedAgents implements AsyncDisposable {
  readonly #options: SimulatedAgentsOptions
  readonly #stop = new AbortController()
  readonly #running = new Map<string, Running>()
  readonly #notBefore = new Map<string, number>()
  readonly #loop: Promise<void>

  constructor(options: SimulatedAgentsOptions) {
    this.#options = options
    this.#loop = this.#look()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#loop
    await Promise.all([...this.#running.keys()].map((cluster) => this.#end(cluster)))
  }

  async #look(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      for (const cluster of this.#options.clusters.filter(({ reachable }) => reachable)) {
        try {
          await this.#settle(cluster)
        } catch (error) {
          this.#options.logger.warn(
            { cluster: cluster.name, err: error },
            'the agent of a simulated cluster did not start',
          )
          this.#notBefore.set(cluster.name, systemClock.now() + RESTART_AFTER_MS)
        }
        if (signal.aborted) return
      }
      await systemClock.sleep(LOOK_EVERY_MS, signal)
    }
  }

  async #settle(cluster: SimulatedCluster): Promise<void> {
    const { objects } = this.#options.serverOf(cluster.name)
    const deployment = objects.get(deployments, { namespace: NAMESPACE, name: NAME })
    const spec = deployment?.spec as { replicas?: number; template?: { spec?: PodSpec } } | undefined
    const pod = spec && (spec.replicas ?? 1) > 0 ? spec.template?.spec : undefined
    const running = this.#running.get(cluster.name)
    const environment = pod && this.#environment(cluster, pod)
    const wanted = environment && JSON.stringify(environment)
    if (running && running.wanted !== wanted) await this.#end(cluster.name)
    if (!environment || wanted === undefined || this.#running.has(cluster.name)) return
    if (systemClock.now() < (this.#notBefore.get(cluster.name) ?? 0)) return
    await this.#begin(cluster, environment, wanted)
    if (deployment) await this.#tellReady(cluster, deployment)
  }

  /** What the container asks for; undefined while a Secret or ConfigMap it needs is missing, as a kubelet would wait. */
  #environment(cluster: SimulatedCluster, pod: PodSpec): Environment | undefined {
    const { objects } = this.#options.serverOf(cluster.name)
    const [container] = pod.containers ?? []
    const variables: Record<string, string> = {}
    for (const { name, value, valueFrom } of container?.env ?? []) {
      const from = valueFrom?.secretKeyRef
      if (from) {
        const secret = objects.get(core('secrets'), { namespace: NAMESPACE, name: from.name })
        const encoded = (secret?.data as Record<string, string> | undefined)?.[from.key]
        if (encoded === undefined) return undefined
        variables[name] = Buffer.from(encoded, 'base64').toString()
      } else if (value !== undefined) variables[name] = value
    }
    const files: { mountPath: string; name: string; text: string }[] = []
    for (const { name: volume, configMap } of pod.volumes ?? []) {
      const mount = container?.volumeMounts?.find(({ name }) => name === volume)
      if (!configMap || !mount) continue
      const map = objects.get(core('configmaps'), { namespace: NAMESPACE, name: configMap.name })
      if (!map) return undefined
      for (const [name, text] of Object.entries((map.data ?? {}) as Record<string, string>))
        files.push({ mountPath: mount.mountPath, name, text })
    }
    return { variables, files }
  }

  async #begin(cluster: SimulatedCluster, { variables, files }: Environment, wanted: string): Promise<void> {
    const { executable, logger } = this.#options
    const directory = join(this.#options.directory, cluster.name)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await writeFile(join(directory, 'kubeconfig'), kubeconfigOf([cluster]), { mode: 0o600 })
    const env: Record<string, string> = { ...variables }
    for (const { mountPath, name, text } of files) {
      await writeFile(join(directory, name), text, { mode: 0o600 })
      for (const [variable, value] of Object.entries(env))
        if (value === `${mountPath}/${name}`) env[variable] = join(directory, name)
    }
    const [program = process.execPath, ...args] = executable
    const said = await open(join(directory, 'agent.log'), 'w', 0o600)
    const child = spawn(program, [...args, 'agent'], {
      env: {
        ...env,
        KUBECONFIG: join(directory, 'kubeconfig'),
        BUFFER_DIR: join(directory, 'buffer'),
        HEALTH_ADDRESS: '127.0.0.1:0',
        LOG_LEVEL: env.LOG_LEVEL ?? 'warn',
      },
      // The channel ends with this process, and the agent with the channel.
      stdio: ['ignore', 'ignore', said.fd, 'ipc'],
    })
    this.#running.set(cluster.name, { wanted, child })
    const forget = () => {
      if (this.#running.get(cluster.name)?.child !== child) return false
      this.#running.delete(cluster.name)
      this.#notBefore.set(cluster.name, systemClock.now() + RESTART_AFTER_MS)
      return true
    }
    child.once('error', (error) => {
      if (child.pid === undefined) forget()
      logger.warn({ cluster: cluster.name, err: error }, 'a simulated agent cannot start')
    })
    child.once('close', (code) => {
      if (!forget()) return
      if (!this.#stop.signal.aborted)
        logger.warn({ cluster: cluster.name, code }, 'a simulated agent ended and is started again')
    })
    logger.info({ cluster: cluster.name, pid: child.pid }, 'a simulated cluster runs its agent')
    await said.close() // the child has its own
  }

  async #end(cluster: string): Promise<void> {
    const running = this.#running.get(cluster)
    if (!running) return
    this.#running.delete(cluster)
    const { child } = running
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    const patience = new AbortController()
    const late = await Promise.race([
      closed.then(() => false),
      systemClock.sleep(STOP_WITHIN_MS, patience.signal).then(() => true),
    ])
    patience.abort()
    if (late) child.kill('SIGKILL')
    await closed
  }

  async #tellReady(cluster: SimulatedCluster, deployment: ApiObject): Promise<void> {
    const { objects } = this.#options.serverOf(cluster.name)
    const { name, namespace, generation } = deployment.metadata
    await objects.updateStatus({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, ...(namespace !== undefined && { namespace }) },
      status: {
        observedGeneration: generation,
        replicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        updatedReplicas: 1,
      },
    })
  }
}

interface Environment {
  readonly variables: Readonly<Record<string, string>>
  readonly files: readonly { readonly mountPath: string; readonly name: string; readonly text: string }[]
}
