import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  accessForContext,
  createKubeClient,
  loadKubeconfig,
  type OwnedKubeClient,
  type Resource,
} from '../../src/platform/kube/index.ts'
import { Product } from '../rounds/product.ts'

export const NAMESPACE = 'clusterpulse'
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }

/** The hub as built, with an administrator's client of it. */
export interface BenchHub extends AsyncDisposable {
  readonly pid: number
  readonly kube: OwnedKubeClient
  /** where agents dial, host:port */
  readonly address: string
  /** of the certificate it shows them */
  readonly caFingerprint: string
}

/** One simulated cluster beside it, as a hub without any would look for one. @param env beside that of this process */
export async function startHub(
  bin: string,
  directory: string,
  env: Readonly<Record<string, string>> = {},
): Promise<BenchHub> {
  await mkdir(directory, { recursive: true })
  const kubeconfig = join(directory, 'simulated')
  const small = ['simulate', '--clusters', '1', '--nodes', '1', '--pods', '1', '--kubeconfig-out', kubeconfig]
  const { product: simulated } = await Product.start(bin, small, /kubeconfig in/)
  const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
  const words = ['up', '--kubeconfig', kubeconfig, '--data-dir', join(directory, 'hub'), ...ports]
  const { product: hub } = await Product.start(bin, words, /on (http:\S+)/, env)
  const access = await accessForContext(await loadKubeconfig([join(directory, 'hub', 'kubeconfig')]))
  const kube = createKubeClient(access, {
    timeoutMs: 120_000,
    qps: 5_000,
    burst: 10_000,
    connections: 16,
    keptConnections: 16,
  })
  const end = async () => {
    await kube[Symbol.asyncDispose]()
    await hub[Symbol.asyncDispose]()
    await simulated[Symbol.asyncDispose]()
  }
  const { address = '', fingerprint: caFingerprint = '' } = await ingester(kube)
  return { pid: hub.pid, kube, address, caFingerprint, [Symbol.asyncDispose]: end }
}

async function ingester(kube: OwnedKubeClient): Promise<Readonly<Record<string, string>>> {
  for (;;) {
    const map = await kube.get(configMaps, { name: 'clusterpulse-ingester', namespace: NAMESPACE })
    if (map?.data) return map.data as Readonly<Record<string, string>>
    await sleep(100)
  }
}

/** Members `from` to `to` of the bench. */
export const namesOf = (prefix: string, from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `${prefix}-${from + index}`)

/** The file of this bench that runs in a process of its own. */
export const here = (path: string): URL => new URL(path, import.meta.url)
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The value below which a part of them lies. */
export const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * part) - 1)] ?? 0
