import { join as path } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { type ClusterName, FleetError, parseClusterName, systemClock } from '../../src/contract/model/index.ts'
import { decodeJoinText, encodeJoinText } from '../../src/contract/wire/index.ts'
import { accept, JoinTokens } from '../../src/control/joining/index.ts'
import { grpcTransport, IdentityFiles, type JoinOptions, join } from '../../src/pipeline/agent/index.ts'
import type { KubeClient, Resource } from '../../src/platform/kube/index.ts'
import { processOf } from '../rounds/reading.ts'
import { type BenchHub, NAMESPACE, startHub } from './hub.ts'

/*
 * Machines that join one hub: each alone, and all at once. Until the machine holds its certificate, with somebody who accepts at once: key,
 * token, ManagedCluster, request, approval, signature, and the way there and back over TLS.
 */

const requests: Resource = {
  ...{ group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' },
  ...{ kind: 'CertificateSigningRequest', namespaced: false },
}
const CLUSTER_LABEL = 'open-cluster-management.io/cluster-name'
const ACCEPTED_AT_ONCE = 32
/** All machines share one process, whose slowness is not the hub's. */
const PATIENCE_MS = 120_000
const TRIES = 10

export interface Crowd {
  /** ms of each that joined alone, and of each that joined with all others */
  readonly ones: readonly number[]
  readonly crowded: readonly number[]
  /** until the last of them was a member */
  readonly allMs: number
  /** of the hub, and of the process with all machines, meanwhile */
  readonly cpuMs: number
  readonly machinesCpuMs: number
  readonly rssMb: number
}

export async function measureCrowd(
  bin: string,
  directory: string,
  { alone, crowd }: { readonly alone: number; readonly crowd: number },
): Promise<Crowd> {
  await using hub = await startHub(bin, directory)
  const { kube } = hub
  const machines = new Machines(hub, path(directory, 'machines'))
  const ones: number[] = []
  for (let index = 0; index < alone; index++) {
    const name = parseClusterName(`one-${index}`)
    const joined = machines.join(name)
    await acceptWhenAsked(kube, name)
    ones.push(await joined)
  }
  const names = Array.from({ length: crowd }, (_, index) => parseClusterName(`all-${index}`))
  await machines.prepare(names)
  const cpuBefore = processOf(hub.pid).cpuMs
  const ownBefore = process.cpuUsage()
  const startedAt = performance.now()
  const stop = new AbortController()
  const accepting = acceptAll(kube, stop.signal)
  const crowded = await Promise.all(names.map((name) => machines.join(name)))
  const allMs = performance.now() - startedAt
  const own = process.cpuUsage(ownBefore)
  const { cpuMs, rssMb } = processOf(hub.pid)
  stop.abort()
  await accepting
  return { ones, crowded, allMs, cpuMs: cpuMs - cpuBefore, machinesCpuMs: (own.user + own.system) / 1000, rssMb }
}

/** Machines of this process, each with a folder and a token of its own. */
class Machines {
  readonly #tokens: JoinTokens
  readonly #directory: string
  readonly #hub: BenchHub
  readonly #secrets = new Map<ClusterName, string>()

  constructor(hub: BenchHub, directory: string) {
    this.#tokens = new JoinTokens({ hub: hub.kube, namespace: NAMESPACE, clock: systemClock })
    this.#directory = directory
    this.#hub = hub
  }

  /** Makes tokens ahead: what is measured begins with the machine. */
  async prepare(names: readonly ClusterName[]): Promise<void> {
    for (const name of names) this.#secrets.set(name, await this.#tokens.issue(name, 3_600_000))
  }

  /** @returns ms until it held its certificate */
  async join(name: ClusterName): Promise<number> {
    if (!this.#secrets.has(name)) await this.prepare([name])
    const secret = this.#secrets.get(name) ?? ''
    const { address, caFingerprint } = this.#hub
    const text = decodeJoinText(encodeJoinText({ cluster: name, secret, addresses: [address], caFingerprint }))
    const startedAt = performance.now()
    const store = new IdentityFiles(path(this.#directory, name))
    const transport: JoinOptions['transport'] = ({ hub: { addresses, ...known } }) =>
      grpcTransport({ address: addresses[0] ?? '', tls: known, connectTimeoutMs: PATIENCE_MS })
    await join(text, { store, version: 'bench', say: () => undefined, signal: new AbortController().signal, transport })
    return performance.now() - startedAt
  }
}

async function acceptWhenAsked(kube: KubeClient, cluster: ClusterName): Promise<void> {
  const labelSelector = `${CLUSTER_LABEL}=${cluster}`
  while ((await kube.listAll(requests, { labelSelector })).length === 0) await sleep(2)
  await accept({ hub: kube, cluster })
}

/** Somebody who follows the requests, as with `kubectl get csr -w`, and says yes to everybody, so many at a time. */
async function acceptAll(kube: KubeClient, signal: AbortSignal): Promise<void> {
  const atOnce = pLimit(ACCEPTED_AT_ONCE)
  const accepted = new Map<string, Promise<unknown>>()
  for await (const event of kube.watch(requests, { signal })) {
    if (event.type === 'deleted') continue
    for (const { metadata } of event.type === 'reset' ? event.items : [event.object]) {
      const name = metadata.labels?.[CLUSTER_LABEL] ?? ''
      if (!name.startsWith('all-') || accepted.has(name)) continue
      const cluster = parseClusterName(name)
      accepted.set(
        name,
        atOnce(() => retried(() => accept({ hub: kube, cluster }))),
      )
    }
  }
  await Promise.all(accepted.values())
}

async function retried(work: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      await work()
      return
    } catch (error) {
      if (tries >= TRIES || !FleetError.from(error).retryable) throw error
      await sleep(1_000)
    }
}
