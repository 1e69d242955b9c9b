/**
 * A cluster without a kubelet: a real kube-apiserver, and containers that are started by hand as the manifests on it say. Every pod
 * has a network of its own on one bridge. Needs root and Linux's namespaces.
 */
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'vitest'
import { bareRootfs, buildRootfs, type Container, runContainer } from './containers.ts'
import { program, type Running } from './process.ts'
import { type RealApiServer, startRealApiServer } from './real-apiserver.ts'

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** As OpenShift assigns one to a namespace: no manifest fixes any. */
const UID = 1_000_660_000

interface Source {
  readonly secretKeyRef?: { readonly name: string; readonly key: string }
  readonly fieldRef?: { readonly fieldPath: string }
}
interface VolumeSource {
  readonly optional?: boolean
}
export interface ContainerSpec {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: Source }[]
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}
interface PodSpec {
  readonly serviceAccountName?: string
  readonly automountServiceAccountToken?: boolean
  readonly volumes?: readonly {
    readonly name: string
    readonly secret?: VolumeSource & { readonly secretName: string }
    readonly configMap?: VolumeSource & { readonly name: string }
  }[]
  readonly containers: readonly ContainerSpec[]
}

/** Which container of which Deployment. */
export interface Which {
  readonly namespace: string
  readonly deployment: string
  /** last number of the pod's address; containers of one number share a network */
  readonly pod: number
  /** default: the first */
  readonly container?: string
}

export class Pods implements AsyncDisposable {
  /** an empty folder with the checkout beside it, as the guides begin */
  readonly empty: string
  readonly #folder: string
  readonly #rootfs: string
  readonly #real: RealApiServer
  /** first three numbers of the network of pods; the machine's end of it is the kube-apiserver, as its certificate says */
  readonly #prefix: string
  readonly #hosts: string
  readonly #bridge = `cpb${process.pid % 100_000}`
  readonly #networks = new Set<string>()
  readonly #running: Running[] = []
  readonly #bare: string[] = []

  private constructor(folder: string, rootfs: string, real: RealApiServer, prefix: string, hosts: string) {
    this.#folder = folder
    this.#rootfs = rootfs
    this.#real = real
    this.#prefix = prefix
    this.#hosts = hosts
    this.empty = join(folder, 'empty')
  }

  /** @param names of pods, by their number, as every pod resolves them. The cluster is its own members, too: the contexts `east`, `edge-7` and `edge-9`. */
  static async open(names: Readonly<Record<string, number>>): Promise<Pods> {
    const folder = mkdtempSync(join(tmpdir(), 'pods-'))
    chmodSync(folder, 0o755)
    const rootfs = buildRootfs()
    // Several at a time on one machine: each has its own.
    const prefix = `10.${randomInt(16, 240)}.${randomInt(1, 255)}`
    const real = await startRealApiServer(`${prefix}.0/24`)
    if (!real) throw new Error('no real kube-apiserver')
    const lines = Object.entries({ 'kubernetes.default.svc': 1, ...names }).map(
      ([name, n]) => `${prefix}.${n} ${name}\n`,
    )
    const pods = new Pods(folder, rootfs, real, prefix, `127.0.0.1 localhost\n${lines.join('')}`)
    mkdirSync(pods.empty)
    symlinkSync(resolve('.'), join(pods.empty, 'clusterpulse'))
    const bridge = pods.#bridge
    ip('link', 'add', bridge, 'type', 'bridge')
    ip('addr', 'add', `${pods.address(1)}/24`, 'dev', bridge)
    ip('link', 'set', bridge, 'up')
    const port = Number(new URL(real.access.server).port)
    const relay = relayText({ host: pods.address(1), port: 443 }, port)
    const relaying = pods.keep(program(process.execPath, ['-e', relay]))
    await relaying.says(/relays/)
    const kubeconfig = real.kubeconfig.replace(real.access.server, `https://${pods.address(1)}`)
    const contexts = ['east', 'edge-7', 'edge-9'].map(
      (name) => `- name: ${name}\n  context: { cluster: real, user: admin }\n`,
    )
    writeFileSync(pods.kubeconfig, kubeconfig + contexts.join(''))
    return pods
  }

  readonly address = (pod: number): string => `${this.#prefix}.${pod}`

  get kubeconfig(): string {
    return join(this.#folder, 'kubeconfig')
  }

  /** Ends it with the rest. */
  keep(one: Running): Running {
    this.#running.push(one)
    return one
  }

  readonly kubectl = (...args: readonly string[]): string => this.#kubectl(args)
  /** `kubectl apply` of this text. */
  apply(manifest: string): void {
    this.#kubectl(['apply', '-f', '-'], manifest)
  }
  #kubectl(args: readonly string[], input?: string): string {
    const run = spawnSync('kubectl', ['--kubeconfig', this.kubeconfig, ...args], { encoding: 'utf8', input })
    expect(run.status, `kubectl ${args.join(' ')}: ${run.stderr}`).toBe(0)
    return run.stdout
  }

  /** Runs the indented commands of a section of a guide in the empty folder, in their order. */
  follow(guide: string, section: RegExp): string {
    const [, text = ''] = section.exec(guide) ?? []
    const lines = text.split('\n').filter((line) => line.startsWith('    '))
    const script = lines.map((line) => line.slice(4)).join('\n')
    expect(lines.length, String(section)).toBeGreaterThan(0)
    const env = { PATH: process.env.PATH, HOME: this.#folder, KUBECONFIG: this.kubeconfig }
    const run = spawnSync('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
      cwd: this.empty,
      env,
      encoding: 'utf8',
    })
    expect(run.status, `${script}\n${run.stdout}\n${run.stderr}`).toBe(0)
    return run.stdout
  }

  /** The network of a pod. @returns its name */
  network(n: number): string {
    const name = `${this.#bridge}-${n}`
    if (this.#networks.has(name)) return name
    ip('netns', 'add', name)
    this.#networks.add(name)
    ip('link', 'add', `${this.#bridge}${n}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    ip('link', 'set', `${this.#bridge}${n}`, 'master', this.#bridge, 'up')
    ip('-n', name, 'addr', 'add', `${this.address(n)}/24`, 'dev', 'eth0')
    ip('-n', name, 'link', 'set', 'eth0', 'up')
    ip('-n', name, 'link', 'set', 'lo', 'up')
    return name
  }

  /** What a kubelet makes of the Deployment on the server: environment, mounts and token of its manifest. */
  read({ namespace, deployment: name, container: wanted }: Which) {
    const deployment = JSON.parse(this.kubectl('-n', namespace, 'get', 'deployment', name, '-o', 'json')) as {
      spec: { template: { spec: PodSpec } }
    }
    const spec = deployment.spec.template.spec
    const container = wanted ? spec.containers.find((one) => one.name === wanted) : spec.containers[0]
    if (!container) throw new Error(`${name} has no container ${wanted ?? ''}`)
    const data = (kind: string, of: string, isOptional = false) => {
      const text = this.kubectl(
        '-n',
        namespace,
        'get',
        kind,
        of,
        '-o',
        'json',
        ...(isOptional ? ['--ignore-not-found'] : []),
      )
      return text === '' ? {} : ((JSON.parse(text) as { data?: Record<string, string> }).data ?? {})
    }
    const secret = (of: string, isOptional = false) =>
      Object.fromEntries(
        Object.entries(data('secret', of, isOptional)).map(([key, text]) => [
          key,
          Buffer.from(text, 'base64').toString(),
        ]),
      )
    const env: Record<string, string> = {}
    for (const { configMapRef } of container.envFrom ?? []) Object.assign(env, data('configmap', configMapRef.name))
    for (const { name: variable, value, valueFrom } of container.env ?? []) {
      const { secretKeyRef, fieldRef } = valueFrom ?? {}
      const text = secretKeyRef ? secret(secretKeyRef.name)[secretKeyRef.key] : fieldRef ? namespace : value
      if (text === undefined) throw new Error(`CreateContainerConfigError: ${name} lacks ${variable}`)
      env[variable] = text
    }
    const mounts: Record<string, string> = {}
    const files = (at: string, content: Readonly<Record<string, string>>) => {
      const path = join(this.#folder, 'pods', name, container.name, at)
      mkdirSync(path, { recursive: true })
      for (const [key, text] of Object.entries(content)) writeFileSync(join(path, key), text)
      mounts[at] = path
    }
    for (const { name: volume, mountPath } of container.volumeMounts ?? []) {
      const { secret: ofSecret, configMap } = spec.volumes?.find((one) => one.name === volume) ?? {}
      if (ofSecret) files(mountPath, secret(ofSecret.secretName, ofSecret.optional))
      else if (configMap) files(mountPath, data('configmap', configMap.name, configMap.optional))
      else {
        // A volume, made writable for the group of the pod.
        files(mountPath, {})
        chownSync(mounts[mountPath] ?? '', 0, UID)
        chmodSync(mounts[mountPath] ?? '', 0o2770)
      }
    }
    if (spec.automountServiceAccountToken !== false) {
      const token = this.kubectl('-n', namespace, 'create', 'token', spec.serviceAccountName ?? 'default').trim()
      files(ACCOUNT, { token, namespace, 'ca.crt': this.#real.access.ca ?? '' })
      Object.assign(env, { KUBERNETES_SERVICE_HOST: this.address(1), KUBERNETES_SERVICE_PORT: '443' })
    }
    return { spec, container, env, mounts }
  }

  /** A container of our image. @param image as the manifest must name it */
  start(which: Which, image: string): Running {
    const { container, env, mounts } = this.read(which)
    expect(container.image).toBe(image)
    expect(container.command).toBeUndefined()
    const { args = [] } = container
    return this.#run(which.pod, { rootfs: this.#rootfs, args, env, mounts })
  }

  /** `kubectl exec`: a further program in a container of our image, with its environment, mounts and token. @returns its output */
  async exec(which: Which, words: readonly string[]): Promise<string> {
    const { env, mounts } = this.read(which)
    const run = this.#run(which.pod, { rootfs: this.#rootfs, entrypoint: [], args: words, env, mounts })
    expect(await run.ended(), run.stderr()).toBe(0)
    return run.stdout()
  }

  /** `docker run` of our image on a machine whose network is that of the pod. */
  runImage(pod: number, container: Pick<Container, 'args' | 'env' | 'uid' | 'mounts'>): Running {
    return this.#run(pod, { rootfs: this.#rootfs, ...container })
  }

  /** A container of an image that holds one static program and nothing else. @param path where the program lies here */
  startStatic(which: Which, path: string): Running {
    const { container, env, mounts } = this.read(which)
    expect(container.command).toBeUndefined()
    const rootfs = bareRootfs(path)
    this.#bare.push(rootfs)
    return this.#run(which.pod, { rootfs, entrypoint: ['/program'], args: container.args ?? [], env, mounts })
  }

  #run(
    pod: number,
    container: Omit<Container, 'uid' | 'network' | 'hosts'> & Partial<Pick<Container, 'uid'>>,
  ): Running {
    return this.keep(runContainer({ uid: UID, ...container, network: this.network(pod), hosts: this.#hosts }))
  }

  /** A container of another image, by the program that Debian ships; its volume is a folder. */
  startOther(which: Which, words: (container: ContainerSpec) => readonly string[]): Running {
    const { container, env, mounts } = this.read(which)
    const args = words(container).map((word) => word.replaceAll('=/data', `=${mounts['/data']}`))
    const user = ['setpriv', '--reuid', String(UID), '--regid', '0', '--groups', String(UID), '--no-new-privs']
    return this.beside(which.pod, [...user, ...args], { env, cwd: mounts['/data'] ?? this.#folder })
  }

  /** Any program in the network of a pod. */
  beside(pod: number, words: readonly string[], options: Parameters<typeof program>[2] = {}): Running {
    return this.keep(program('ip', ['netns', 'exec', this.network(pod), ...words], options))
  }

  /** Asked from inside a pod, as port-forward does. */
  async inside(pod: number, path: string): Promise<string> {
    const ask = `fetch('http://127.0.0.1:8080${path}').then(async (a) => process.stdout.write(await a.text()))`
    const run = program('ip', ['netns', 'exec', this.network(pod), process.execPath, '-e', ask])
    expect(await run.ended(), run.stderr()).toBe(0)
    return run.stdout()
  }

  /** `kubectl port-forward` of the page. @returns where browsers of this machine find what the pod serves on its loopback */
  async forward(pod: number): Promise<string> {
    const relay = relayText({ host: this.address(pod), port: 18080 }, 8080)
    await this.beside(pod, [process.execPath, '-e', relay]).says(/relays/)
    return `${this.address(pod)}:18080`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#running) await one[Symbol.asyncDispose]()
    for (const name of this.#networks) spawnSync('ip', ['netns', 'del', name])
    spawnSync('ip', ['link', 'del', this.#bridge])
    await this.#real.stop()
    for (const path of [this.#folder, dirname(this.#rootfs), ...this.#bare])
      rmSync(path, { recursive: true, force: true })
  }
}

/** A program of its own, which goes on while a command is followed: hands what comes to a port of its loopback. */
const relayText = ({ host, port }: { readonly host: string; readonly port: number }, to: number) =>
  `const { createServer, connect } = require('node:net')
  createServer((near) => {
    const far = connect(${to}, '127.0.0.1')
    const end = () => (near.destroy(), far.destroy())
    near.on('error', end).pipe(far).on('error', end).pipe(near)
  }).listen(${port}, '${host}', () => console.log('relays'))`

function ip(...args: readonly string[]): void {
  const run = spawnSync('ip', args, { encoding: 'utf8' })
  expect(run.status, `ip ${args.join(' ')}: ${run.stderr}`).toBe(0)
}
