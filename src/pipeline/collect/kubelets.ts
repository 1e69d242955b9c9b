import { setMaxListeners } from 'node:events'
import pLimit from 'p-limit'
import { isKubeError, type KubeClient, type KubeObject, kubeletAddresses, nodesProxy, nodesStats } from '#kube'
import { type Clock, minutes, ROWS_ERRORS_KEPT, type RowsError, seconds, tableRowId } from '#model'
import { saidOf } from './collection.ts'
import { fields, items, text } from './read.ts'
import type { Read } from './types.ts'

/**
 * How summaries of kubelets are read. `direct`: at the kubelet's own port, which needs the right `nodes/stats` and a place in the
 * cluster's network; `direct-insecure`: the same without a look at the kubelet's certificate. `proxy`: through the API server, with
 * the far stronger right `nodes/proxy`.
 */
export const kubeletWays = ['direct', 'direct-insecure', 'proxy'] as const
export type KubeletWay = (typeof kubeletWays)[number]
export const isKubeletWay = (word: unknown): word is KubeletWay => kubeletWays.some((way) => way === word)

/** What one kubelet says of disks; bytes, null: it does not say. */
export interface NodeDisk {
  readonly capacityBytes: number | null
  readonly usedBytes: number | null
}

/** Disks of one cluster, as far as its kubelets told of them. */
export interface Disks {
  readonly nodes: ReadonlyMap<string, NodeDisk>
  /** bytes of ephemeral storage that pods use, by `namespace/name` */
  readonly pods: ReadonlyMap<string, number>
  /** which nodes could not be asked, and why; the first of them. A right that is missing is said once */
  readonly errors: readonly RowsError[]
  readonly faultCount: number
}

export const noDisks: Disks = { nodes: new Map(), pods: new Map(), errors: [], faultCount: 0 }

/** Reads the summary of one kubelet, as JSON. @throws KubeError */
export type ReadSummary = (
  kube: KubeClient,
  node: KubeObject,
  timeoutMs: number,
  signal: AbortSignal,
) => Promise<unknown>

/** By the API server's proxy. */
export const summaryByProxy: ReadSummary = (kube, { metadata: { name } }, timeoutMs, signal) =>
  kube.request('GET', `/api/v1/nodes/${encodeURIComponent(name)}/proxy/stats/summary`, {
    isolated: true,
    timeoutMs,
    signal,
  })

const AT_ONCE = 10
const CALL_MS = seconds(3)
/** A sweep over all nodes takes no longer; the next goes on where it ended. */
const SWEEP_MS = seconds(8)
/** A kubelet measures disks no more often, whoever looks. */
const RESOLUTION_MS = seconds(15)
const NODES_KEPT_MS = minutes(1)
/** What was told longer ago, by a kubelet whose turn did not come since, is not known any more. */
const KEPT_MS = minutes(5)

interface Told {
  readonly at: number
  readonly disk: NodeDisk
  readonly pods: readonly (readonly [id: string, usedBytes: number])[]
}

/** The kubelets of one cluster: asked in sweeps, which all who want them at about the same time share. */
export class Kubelets {
  readonly way: KubeletWay
  readonly #read: ReadSummary
  readonly #clock: Clock
  readonly #told = new Map<string, Told>()
  readonly #faults = new Map<string, RowsError>()
  /** the right is missing, or the nodes cannot be listed: why */
  #refusal: RowsError | undefined
  #nodes: { readonly at: number; readonly all: readonly KubeObject[] } | undefined
  #first = 0
  #sweep: { readonly at: number; readonly done: Promise<void> } | undefined
  #disks: Disks = noDisks

  constructor({ way, read, clock }: { readonly way: KubeletWay; readonly read: ReadSummary; readonly clock: Clock }) {
    this.way = way
    this.#read = read
    this.#clock = clock
  }

  /** As of the sweep that runs, or ended a moment ago, or is made now. @throws where `signal` aborts */
  async disks(kube: KubeClient, signal: AbortSignal): Promise<Disks> {
    const now = this.#clock.now()
    const isFresh = this.#sweep && now >= this.#sweep.at && now - this.#sweep.at < RESOLUTION_MS
    if (!isFresh) {
      const done = this.#ask(kube, signal).catch((error: unknown) => {
        // Whoever shares this sweep has what was known before; the next collection makes another.
        this.#sweep = undefined
        if (!signal.aborted) throw error
      })
      this.#sweep = { at: now, done }
    }
    await this.#sweep?.done
    signal.throwIfAborted()
    return this.#disks
  }

  async #ask(kube: KubeClient, signal: AbortSignal): Promise<void> {
    setMaxListeners(0, signal) // every call of this sweep ends with it
    const nodes = await this.#list(kube, signal)
    const startedAt = this.#clock.now()
    const limit = pLimit(AT_ONCE)
    const names = new Set(nodes.map(({ metadata }) => metadata.name))
    for (const known of [this.#told, this.#faults])
      for (const name of known.keys()) if (!names.has(name)) known.delete(name)
    this.#refusal = undefined
    let asked = 0
    const askOne = async (node: KubeObject) => {
      const isOver = this.#clock.now() - startedAt >= SWEEP_MS
      if (isOver || this.#refusal || signal.aborted) return
      asked++
      await this.#askOne(kube, node, signal)
    }
    const first = nodes.length > 0 ? this.#first % nodes.length : 0
    const inTurn = [...nodes.slice(first), ...nodes.slice(0, first)]
    await Promise.all(inTurn.map((node) => limit(askOne, node)))
    this.#first = first + asked
    this.#disks = this.#together()
  }

  async #list(kube: KubeClient, signal: AbortSignal): Promise<readonly KubeObject[]> {
    const now = this.#clock.now()
    if (this.#nodes && now >= this.#nodes.at && now - this.#nodes.at < NODES_KEPT_MS) return this.#nodes.all
    const all = await kube.listAll(kubeletAddresses, { signal })
    this.#nodes = { at: now, all: all.filter(({ metadata }) => text(metadata?.name) !== '') }
    return this.#nodes.all
  }

  async #askOne(kube: KubeClient, node: KubeObject, signal: AbortSignal): Promise<void> {
    const { name } = node.metadata
    try {
      const { disk, pods } = disksIn(await this.#read(kube, node, CALL_MS, signal))
      this.#told.set(name, { at: this.#clock.now(), disk, pods })
      this.#faults.delete(name)
    } catch (error) {
      if (signal.aborted) return
      // What was told before would be shown as of now.
      this.#told.delete(name)
      const said = saidOf(error)
      if (isKubeError(error, 'forbidden') || isKubeError(error, 'unauthorized'))
        this.#refusal = { namespace: '', ...said, code: 'kubelet_forbidden', message: this.#whyRefused(said.message) }
      else
        this.#faults.set(name, {
          namespace: '',
          ...said,
          message: `disk of node ${name} is not known: ${said.message}`,
        })
    }
  }

  #whyRefused(message: string): string {
    return `disks are not known: ${message}; grant "get ${kubeletRight(this.way).plural}" on the member, or set KUBELET_STATS=off`
  }

  #together(): Disks {
    const now = this.#clock.now()
    const nodes = new Map<string, NodeDisk>()
    const pods = new Map<string, number>()
    for (const [name, told] of this.#refusal ? [] : this.#told) {
      if (now - told.at > KEPT_MS) continue
      nodes.set(name, told.disk)
      for (const [id, usedBytes] of told.pods) pods.set(id, usedBytes)
    }
    const all = this.#refusal ? [this.#refusal] : [...this.#faults.values()]
    return { nodes, pods, errors: all.slice(0, ROWS_ERRORS_KEPT), faultCount: all.length }
  }
}

/** Names the right that asking kubelets needs. */
export const kubeletRight = (way: KubeletWay) => (way === 'proxy' ? nodesProxy : nodesStats)

/** The read of a cluster's disks, for all collectors that want them. */
export function kubeletRead(kubelets: Kubelets): Read<Disks> {
  return {
    resource: kubeletRight(kubelets.way),
    verbs: ['get'],
    one: (kube, signal) => kubelets.disks(kube, signal),
    isIsolated: true,
  }
}

/** No disk has more than a number can say exactly; readers of whole numbers would stumble over it. */
const bytesIn = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.round(value) : null

/**
 * What a summary says of disks, whatever it is: what is missing or no number is not known.
 * @see Kubernetes, kubelet `stats/v1alpha1` Summary: node.fs, pods[].ephemeral-storage
 */
export function disksIn(summary: unknown): Pick<Told, 'disk' | 'pods'> {
  const { node, pods } = fields(summary)
  const { capacityBytes, usedBytes } = fields(fields(node).fs)
  return {
    disk: { capacityBytes: bytesIn(capacityBytes), usedBytes: bytesIn(usedBytes) },
    pods: items(pods).flatMap(({ podRef, 'ephemeral-storage': storage }) => {
      const { namespace, name } = fields(podRef)
      const used = bytesIn(fields(storage).usedBytes)
      return used === null || text(name) === '' ? [] : [[tableRowId(text(namespace), text(name)), used] as const]
    }),
  }
}
