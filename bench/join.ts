/**
 * Machines that join one hub: each alone, and all at once. Until the machine holds its certificate, with somebody who accepts at once: key,
 * token, ManagedCluster, request, approval, signature, and the way there and back over TLS.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type ClusterName, parseClusterName, systemClock } from '../src/contract/model/index.ts'
import { decodeJoinText, encodeJoinText } from '../src/contract/wire/index.ts'
import { accept, JoinTokens } from '../src/control/joining/index.ts'
import { IdentityFiles, join } from '../src/pipeline/agent/index.ts'
import {
  accessForContext,
  createKubeClient,
  type KubeClient,
  loadKubeconfig,
  type Resource,
} from '../src/platform/kube/index.ts'
import { Product } from './rounds/product.ts'
import { machine, processOf } from './rounds/reading.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const NAMESPACE = 'clusterpulse'
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const requests: Resource = {
  ...{ group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' },
  ...{ kind: 'CertificateSigningRequest', namespaced: false },
}
const GOALS = { oneMs: 2_000, allMs: 60_000 }

/** `--alone N` one after the other, `--crowd N` at once, `--bin FILE` instead of bin/clusterpulse.js, `--no-write`. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      alone: { type: 'string', default: '100' },
      crowd: { type: 'string', default: '2000' },
      bin: { type: 'string', default: `${ROOT}bin/clusterpulse.js` },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const [alone, crowd] = [Number(values.alone), Number(values.crowd)]
  const directory = await mkdtemp(path(tmpdir(), 'bench-join-'))
  try {
    const page = await measure(values.bin, directory, alone, crowd)
    process.stdout.write(page)
    if (values['no-write']) return
    await mkdir(`${ROOT}bench/results`, { recursive: true })
    await writeFile(`${ROOT}bench/results/join.md`, page)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function measure(bin: string, directory: string, alone: number, crowd: number): Promise<string> {
  const kubeconfig = path(directory, 'members')
  const small = ['simulate', '--clusters', '1', '--nodes', '1', '--pods', '1', '--kubeconfig-out', kubeconfig]
  await using _members = (await Product.start(bin, small, /kubeconfig in/)).product
  const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
  const words = ['up', '--kubeconfig', kubeconfig, '--data-dir', path(directory, 'hub'), ...ports]
  await using hub = (await Product.start(bin, words, /on (http:\S+)/)).product
  const access = await accessForContext(await loadKubeconfig([path(directory, 'hub', 'kubeconfig')]))
  await using kube = createKubeClient(access, { qps: 5_000, burst: 10_000 })
  const machines = await Machines.at(kube, path(directory, 'machines'))
  const ones: number[] = []
  for (let index = 0; index < alone; index++) {
    const name = parseClusterName(`one-${index}`)
    const joined = machines.join(name)
    await acceptWhenAsked(kube, name)
    ones.push(await joined)
  }
  const cpuBefore = processOf(hub.pid).cpuMs
  const names = Array.from({ length: crowd }, (_, index) => parseClusterName(`all-${index}`))
  await machines.prepare(names)
  const startedAt = performance.now()
  const stop = new AbortController()
  const accepting = acceptAll(kube, stop.signal)
  const crowded = await Promise.all(names.map((name) => machines.join(name)))
  const allMs = performance.now() - startedAt
  stop.abort()
  await accepting
  const cpuMs = processOf(hub.pid).cpuMs - cpuBefore
  return report({ ones, crowded, allMs, cpuMs, rssMb: processOf(hub.pid).rssMb })
}

/** Machines of this process, each with a folder and a token of its own. */
class Machines {
  readonly #tokens: JoinTokens
  readonly #directory: string
  readonly #address: string
  readonly #caFingerprint: string
  readonly #secrets = new Map<ClusterName, string>()

  private constructor(kube: KubeClient, directory: string, hub: Readonly<Record<string, string>>) {
    this.#tokens = new JoinTokens({ hub: kube, namespace: NAMESPACE, clock: systemClock })
    this.#directory = directory
    this.#address = hub.address ?? ''
    this.#caFingerprint = hub.fingerprint ?? ''
  }

  static async at(kube: KubeClient, directory: string): Promise<Machines> {
    for (;;) {
      const map = await kube.get(configMaps, { name: 'clusterpulse-ingester', namespace: NAMESPACE })
      if (map?.data) return new Machines(kube, directory, map.data as Readonly<Record<string, string>>)
      await sleep(100)
    }
  }

  /** Makes tokens ahead: what is measured begins with the machine. */
  async prepare(names: readonly ClusterName[]): Promise<void> {
    for (const name of names) this.#secrets.set(name, await this.#tokens.issue(name, 3_600_000))
  }

  /** @returns ms until it held its certificate */
  async join(name: ClusterName): Promise<number> {
    if (!this.#secrets.has(name)) await this.prepare([name])
    const secret = this.#secrets.get(name) ?? ''
    const ends = { addresses: [this.#address], caFingerprint: this.#caFingerprint }
    const text = decodeJoinText(encodeJoinText({ cluster: name, secret, ...ends }))
    const startedAt = performance.now()
    const store = new IdentityFiles(path(this.#directory, name))
    await join(text, { store, version: 'bench', say: () => undefined, signal: new AbortController().signal })
    return performance.now() - startedAt
  }
}

async function acceptWhenAsked(kube: KubeClient, cluster: ClusterName): Promise<void> {
  const labelSelector = `open-cluster-management.io/cluster-name=${cluster}`
  while ((await kube.listAll(requests, { labelSelector })).length === 0) await sleep(2)
  await accept({ hub: kube, cluster })
}

/** Somebody who says yes to everybody, several at a time. */
async function acceptAll(kube: KubeClient, signal: AbortSignal): Promise<void> {
  const accepted = new Set<string>()
  while (!signal.aborted) {
    const asked = (await kube.listAll(requests)).map(
      ({ metadata }) => metadata.labels?.['open-cluster-management.io/cluster-name'] ?? '',
    )
    const fresh = [...new Set(asked)].filter((name) => name.startsWith('all-') && !accepted.has(name))
    for (let at = 0; at < fresh.length; at += 32)
      await Promise.all(
        fresh.slice(at, at + 32).map(async (name) => {
          await accept({ hub: kube, cluster: parseClusterName(name) })
          accepted.add(name)
        }),
      )
    if (fresh.length === 0) await sleep(20)
  }
}

function report(result: {
  readonly ones: readonly number[]
  readonly crowded: readonly number[]
  readonly allMs: number
  readonly cpuMs: number
  readonly rssMb: number
}): string {
  const { ones, crowded, allMs, cpuMs, rssMb } = result
  const at = (values: readonly number[], part: number) =>
    values.toSorted((a, b) => a - b)[Math.ceil(values.length * part) - 1] ?? 0
  const ms = (value: number) => `${Math.round(value)} ms`
  const met = (value: number, goal: number) => (value <= goal ? 'met' : 'missed')
  return `# Joining

\`npm run bench join\`: ${ones.length} machines one after the other, then ${crowded.length} at once, on ${machine()}.

| | p50 | p99 | Slowest |
|---|---|---|---|
| alone | ${ms(at(ones, 0.5))} | ${ms(at(ones, 0.99))} | ${ms(at(ones, 1))} |
| at once | ${ms(at(crowded, 0.5))} | ${ms(at(crowded, 0.99))} | ${ms(at(crowded, 1))} |

| Goal | Target | Measured | |
|---|---|---|---|
| one machine, p99 | ≤ ${ms(GOALS.oneMs)} | ${ms(at(ones, 0.99))} | ${met(at(ones, 0.99), GOALS.oneMs)} |
| ${crowded.length} at once, all members | ≤ ${ms(GOALS.allMs)} (of 2000) | ${ms(allMs)} | ${met(allMs, (GOALS.allMs * crowded.length) / 2000)} |

CPU of the hub for those at once: ${ms(cpuMs)}, ${ms(cpuMs / Math.max(1, crowded.length))} each; its memory after that: ${Math.round(rssMb)} MB.

## Method

The hub is \`clusterpulse up\` as built, with its embedded API, its CA and its controllers; the machines, and whoever accepts them, run in one other process on the same cores.
Each machine has a folder and a token of its own, made before; time is from there until its certificate is on its disk: key, request written and synced, the hub's CA
fetched and compared with the fingerprint, TLS, the token spent, both objects made, accepted (looked for every few ms, 32 at a time), signed, handed out, written and synced.
`
}
