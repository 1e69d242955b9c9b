import { randomInt } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type MemberIdentity, memberTransport } from '#agent'
import { accept, JoinTokens } from '#joining'
import { clusterConnection } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient, type Resource } from '#kube'
import { type ClusterName, parseClusterName, systemClock } from '#model'
import { decodeResponse, encodeJoinText, encodeRequest } from '#wire'
import { keyOf } from '../src/control/joining/certificate-request.ts'
import { certificatesOf, managedClusters } from '../src/control/joining/members.ts'
import { IdentityFiles } from '../src/pipeline/agent/join/identity-files.ts'
import { hello } from '../src/pipeline/ingest/stream/test/own-agent.ts'
import { bundled } from './bundled.ts'
import { clusterpulse, eventually, program, type Running } from './process.ts'
import { argumentsAndEnvironmentOf, filesWith, linesOfKey } from './secret-search.ts'

const NAMESPACE = 'clusterpulse'
const HOUR_MS = 3_600_000
/** Longer than anything takes on a machine that has much else to do: beyond it a machine is lost. */
const PATIENCE_MS = 300_000
const MOST_KILLS_OF_ONE = 5
/** Of so many kills one is of the hub, which many machines are at. */
const HUB_EVERY = 8
/** So many machines run the whole executable; the others what of it joins, which starts in a fifth of the time. */
const WHOLE_EVERY = 8

/** Where a machine is when it is killed. */
export const steps = ['begins', 'has its key', 'asks', 'waits', 'is accepted', 'has its certificate', 'runs'] as const
export type Step = (typeof steps)[number]

const requests: Resource = {
  ...{ group: 'certificates.k8s.io', version: 'v1', plural: 'certificatesigningrequests' },
  ...{ kind: 'CertificateSigningRequest', namespaced: false },
}
const connections: Resource = {
  ...{ group: clusterConnection.group, version: clusterConnection.version },
  ...{ plural: clusterConnection.plural, kind: clusterConnection.kind, namespaced: true },
}
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }

interface Machine {
  readonly cluster: ClusterName
  readonly secret: string
  readonly token: string
  readonly folder: string
  /** when it was made, ms since the Unix epoch */
  readonly at: number
}

/** What became of it all. */
export interface Toll {
  /** kills of machines by where they were, and of the hub */
  readonly kills: Readonly<Record<Step | 'the hub', number>>
  readonly members: number
  /** in words; none: no member is lost, none doubled, nothing secret is anywhere but in its place */
  readonly faults: readonly string[]
}

/**
 * A hub as people start it, and machines that join it, several at a time, with somebody who accepts them; machines and hub are killed
 * (SIGKILL) in turn, at every step, until all is looked at in the end.
 */
export class JoinKills implements AsyncDisposable {
  readonly #folder: string
  readonly #ports = { page: freePort(), api: freePort(), agents: freePort() }
  /** beside the packages it needs */
  #program: Awaited<ReturnType<typeof bundled>> | undefined
  readonly #moments = new EventEmitter()
  readonly #kills = Object.fromEntries([...steps, 'the hub'].map((step) => [step, 0])) as Record<
    Step | 'the hub',
    number
  >
  readonly #machines: Machine[] = []
  readonly #faults: string[] = []
  #said = 0
  #isClosed = false
  #fleet: Running | undefined
  #hub: Running | undefined
  #kube: OwnedKubeClient | undefined
  #ends: { readonly addresses: readonly string[]; readonly caFingerprint: string } | undefined

  private constructor(folder: string) {
    this.#folder = folder
    this.#moments.setMaxListeners(0)
  }

  static async open(): Promise<JoinKills> {
    const kills = new JoinKills(await mkdtemp(join(tmpdir(), 'join-kills-')))
    try {
      await kills.#open()
      return kills
    } catch (error) {
      await kills[Symbol.asyncDispose]()
      throw error
    }
  }

  get killed(): { readonly machines: number; readonly hub: number } {
    return { machines: steps.reduce((sum, step) => sum + this.#kills[step], 0), hub: this.#kills['the hub'] }
  }

  get members(): number {
    return this.#machines.length
  }

  /** @param kills of machines and hub together. @param lanes machines that join at the same time */
  async run(kills: number, lanes: number): Promise<Toll> {
    const enough = new AbortController()
    const ofHub = Math.floor(kills / HUB_EVERY)
    const killing = this.#killHub(ofHub, enough.signal)
    const ofMachines = kills - ofHub
    await Promise.all(Array.from({ length: lanes }, () => this.#lane(ofMachines)))
    enough.abort()
    await killing
    await this.#verify()
    return { kills: this.#kills, members: this.#machines.length, faults: this.#faults }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#kube?.[Symbol.asyncDispose]()
    await this.#hub?.[Symbol.asyncDispose]()
    await this.#fleet?.[Symbol.asyncDispose]()
    await this.#program?.[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }

  async #open(): Promise<void> {
    await mkdir(join(this.#folder, 'said'))
    this.#program = await bundled(join(import.meta.dirname, 'join-machine.ts'))
    const size = ['--clusters', '1', '--nodes', '1', '--pods', '1']
    this.#fleet = clusterpulse(['simulate', ...size, '--kubeconfig-out', join(this.#folder, 'fleet.yaml')])
    await this.#fleet.says(/kubeconfig in/)
    await this.#startHub()
    this.#kube = createKubeClient(
      await accessForContext(await loadKubeconfig([join(this.#folder, 'hub/kubeconfig')])),
      { qps: 2_000, burst: 4_000 },
    )
    const published = { name: 'clusterpulse-ingester', namespace: NAMESPACE }
    const map = await eventually(
      () => this.kube.get(configMaps, published),
      (found) => found !== undefined,
    )
    const data = (map?.data ?? {}) as Readonly<Record<string, string>>
    this.#ends = { addresses: [data.address ?? ''], caFingerprint: data.fingerprint ?? '' }
  }

  get kube(): OwnedKubeClient {
    if (!this.#kube) throw new Error('the hub is not open')
    return this.#kube
  }

  async #startHub(): Promise<void> {
    const { page, api, agents } = this.#ports
    const hub = clusterpulse(
      [
        ...['up', '--kubeconfig', join(this.#folder, 'fleet.yaml'), '--data-dir', join(this.#folder, 'hub')],
        ...['--port', `${page}`, '--control-plane-port', `${api}`, '--ingester-port', `${agents}`],
      ],
      { env: { LOG_LEVEL: 'debug', AUDIT_FILE: join(this.#folder, 'said', 'audit.jsonl') } },
    )
    this.#hub = hub
    // Some are killed while they start.
    await hub.says(/on http:\S+/, PATIENCE_MS).catch((error: unknown) => {
      if (this.#hub === hub) throw error
    })
    await this.#keep(argumentsAndEnvironmentOf(hub.pid))
  }

  /** In its turn, a moment after something that a machine did. */
  async #killHub(most: number, signal: AbortSignal): Promise<void> {
    while (this.#kills['the hub'] < most) {
      const isTurn = () => this.#kills['the hub'] * (HUB_EVERY - 1) <= this.killed.machines || signal.aborted
      while (!isTurn()) await sleep(20)
      const moment = steps[randomInt(steps.length)] ?? 'asks'
      await Promise.race([once(this.#moments, moment), sleep(2_000)])
      await sleep(randomInt(80))
      await this.#endHub()
      // One in four is killed again while it starts.
      if (randomInt(4) === 0 && this.#kills['the hub'] < most) {
        const starting = this.#startHub()
        await sleep(randomInt(1_500))
        await this.#endHub()
        await starting
      }
      await this.#startHub()
    }
  }

  async #endHub(): Promise<void> {
    const hub = this.#hub
    this.#hub = undefined
    await hub?.kill('SIGKILL')
    this.#kills['the hub']++
    await this.#keep(hub?.stdout() ?? '', hub?.stderr() ?? '')
  }

  /** What was said, and can be searched in the end. */
  async #keep(...texts: readonly string[]): Promise<void> {
    await writeFile(join(this.#folder, 'said', `${this.#said++}`), texts.join('\n'))
  }

  async #lane(kills: number): Promise<void> {
    while (this.killed.machines < kills) {
      const cluster = parseClusterName(`m${this.#machines.length}`)
      const folder = join(this.#folder, 'machines', cluster)
      const place = this.#machines.push({ cluster, folder, secret: '', token: '', at: Date.now() }) - 1
      const secret = await patiently(() =>
        new JoinTokens({ hub: this.kube, namespace: NAMESPACE, clock: systemClock }).issue(cluster, HOUR_MS),
      )
      const ends = this.#ends ?? { addresses: [], caFingerprint: '' }
      const machine = { cluster, folder, secret, token: encodeJoinText({ cluster, secret, ...ends }), at: Date.now() }
      this.#machines[place] = machine
      try {
        await this.#joins(machine, kills)
      } catch (error) {
        this.#faults.push(`${cluster}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  /** Until it is a member, whatever happens meanwhile. */
  async #joins(machine: Machine, kills: number): Promise<void> {
    const ofThis = randomInt(1, MOST_KILLS_OF_ONE + 1)
    let accepting: Promise<void> | undefined
    for (let kill = 0; kill < ofThis && this.killed.machines < kills; kill++) {
      const step = steps[randomInt(steps.length)] ?? 'asks'
      if (steps.indexOf(step) >= steps.indexOf('is accepted')) accepting ??= this.#accept(machine)
      const agent = this.#startMachine(machine)
      await this.#reaches(agent, machine, step, accepting)
      this.#moments.emit(step)
      await sleep(randomInt(60))
      await this.#endMachine(agent, machine)
      this.#kills[step]++
    }
    accepting ??= this.#accept(machine)
    const agent = this.#startMachine(machine)
    await this.#reaches(agent, machine, 'runs', accepting)
    await this.#endMachine(agent, machine)
    await accepting
  }

  #startMachine({ token, folder }: Machine): Running {
    const isAsking =
      existsSync(join(folder, 'identity/asking.json')) || existsSync(join(folder, 'identity/member.json'))
    const shown = isAsking && randomInt(2) === 0 ? [] : [token]
    if (randomInt(WHOLE_EVERY) > 0)
      return program(process.execPath, [this.#program?.path ?? '', join(folder, 'identity'), ...shown])
    const where = ['--kubeconfig', join(this.#folder, 'fleet.yaml'), '--buffer-dir', folder]
    return clusterpulse(['join', ...shown, ...where], { env: { HEALTH_ADDRESS: '127.0.0.1:0' } })
  }

  async #endMachine(agent: Running, { folder }: Machine): Promise<void> {
    // From here on it has read what it was started with.
    if (/asking the hub|is a member/.test(agent.stderr())) await this.#keep(argumentsAndEnvironmentOf(agent.pid))
    await agent.kill('SIGKILL')
    await this.#keep(agent.stdout(), agent.stderr())
    const identity = join(folder, 'identity')
    for (const file of await readdir(identity).catch(() => []))
      if (((await stat(join(identity, file))).mode & 0o077) !== 0) throw new Error(`others may read ${file}`)
  }

  async #reaches(agent: Running, { folder }: Machine, step: Step, accepting?: Promise<void>): Promise<void> {
    const has = (...files: readonly string[]) => files.some((file) => existsSync(join(folder, 'identity', file)))
    const isMember = () => /is a member of the hub|is a member already/.test(agent.stderr())
    const isThere: Readonly<Record<Step, () => boolean>> = {
      begins: () => true,
      'has its key': () => has('asking.json', 'asking.json.new') || isMember(),
      asks: () => /asking the hub/.test(agent.stderr()) || isMember(),
      waits: () => /waiting: /.test(agent.stderr()) || isMember(),
      'is accepted': () => isAccepted || isMember(),
      'has its certificate': () => has('member.json', 'member.json.new'),
      runs: isMember,
    }
    const fails = async (words: string): Promise<never> => {
      await agent.kill('SIGKILL')
      throw new Error(`${words}: ${agent.stderr()}`)
    }
    let isAccepted = false
    void accepting?.then(() => {
      isAccepted = true
    })
    let code: number | null | undefined
    void agent.ended().then((ended) => {
      code = ended
    })
    const until = Date.now() + PATIENCE_MS
    while (!isThere[step]()) {
      if (code !== undefined) await fails(`it ended by itself (${code})`)
      if (Date.now() > until) await fails(`it never ${step}`)
      await sleep(4)
    }
    // What is there from before is there before it began anything.
    if (step === 'begins' || step === 'has its key') await sleep(randomInt(400))
  }

  /** As a person does who tries again where the hub is away. */
  async #accept({ cluster }: Machine): Promise<void> {
    for (;;) {
      try {
        const { members, waits } = await this.#known(cluster)
        if (members.length > 0 && waits.length > 0) return void (await accept({ hub: this.kube, cluster }))
      } catch {
        // the hub is away
      }
      if (this.#isClosed) return
      await sleep(randomInt(50, 250))
    }
  }

  async #known(cluster: ClusterName) {
    const labelSelector = `open-cluster-management.io/cluster-name=${cluster}`
    const member = await this.kube.get(managedClusters, { name: cluster })
    return { members: member ? [member] : [], waits: await this.kube.listAll(requests, { labelSelector }) }
  }

  async #verify(): Promise<void> {
    const found = (sentence: string) => this.#faults.push(sentence)
    const needles: string[] = []
    const names = this.#machines.map(({ cluster }) => cluster)
    const stored = await patiently(() => this.kube.listAll(managedClusters, {}))
    const strangers = stored.filter(({ metadata }) => !names.some((name) => name === metadata.name))
    if (strangers.length > 0) found(`${strangers.length} ManagedClusters nobody asked for`)
    for (const { cluster, folder, secret, token, at } of this.#machines) {
      const identity = await new IdentityFiles(join(folder, 'identity')).member()
      if (!identity) {
        found(`${cluster} has no certificate`)
        continue
      }
      needles.push(secret, token, ...linesOfKey(identity.key))
      const files = (await readdir(join(folder, 'identity'))).filter((file) => /\.json/.test(file))
      if (files.filter((file) => !file.endsWith('.new')).join() !== 'member.json') found(`${cluster} keeps ${files}`)
      if (filesWith(folder, [secret, token]).length > 0) found(`${cluster} keeps its token`)
      const withKey = filesWith(folder, linesOfKey(identity.key)).filter(
        (file) => !/identity.(member|asking)\.json/.test(file),
      )
      if (withKey.length > 0) found(`the key of ${cluster} is in ${withKey}`)
      const { members, waits } = await patiently(() => this.#known(cluster))
      if (!members[0]?.spec?.hubAcceptsClient) found(`the hub lost ${cluster}`)
      const keys = new Set(waits.map((request) => keyOf(request as Parameters<typeof keyOf>[0])))
      // An hour after its decision a request is cleaned up.
      const isForgotten = waits.length === 0 && Date.now() - at > HOUR_MS
      if (!isForgotten && (waits.length !== 1 || keys.size !== 1))
        found(`${cluster} asked by ${waits.length} requests of ${keys.size} keys`)
      if (members[0] && certificatesOf(members[0]).length !== 1) found(`${cluster} was given several certificates`)
      const key = { name: cluster, namespace: NAMESPACE }
      await eventually(() => this.kube.get(connections, key), Boolean, PATIENCE_MS).catch(() =>
        found(`${cluster} is not monitored`),
      )
      await this.#isLetIn(identity).catch((error: unknown) => found(`${cluster} is not let in: ${error}`))
    }
    await this.#hub?.kill('SIGTERM')
    await this.#keep(this.#hub?.stdout() ?? '', this.#hub?.stderr() ?? '')
    for (const place of ['hub', 'said'] as const) {
      const leaks = filesWith(join(this.#folder, place), needles)
      if (leaks.length > 0) found(`a token or a key of a machine is in ${leaks}`)
    }
    // Else nothing would be found wherever it were.
    if (filesWith(join(this.#folder, 'machines'), needles).length < this.#machines.length)
      found('the search finds nothing')
  }

  /** Its stream is served, as its agent opens it. */
  async #isLetIn(identity: MemberIdentity): Promise<void> {
    await eventually(
      async () => {
        const late = AbortSignal.timeout(20_000)
        await using link = await memberTransport(() => identity).open(late)
        link.send(encodeRequest({ payload: hello({ cluster: identity.cluster, origin: `of-${identity.cluster}` }) }))
        for await (const bytes of link.messages) {
          const { payload } = decodeResponse(bytes)
          if (payload.case === 'goodbye') throw new Error(payload.value.message)
          if (payload.case === 'welcome') return true
        }
        return false
      },
      Boolean,
      PATIENCE_MS,
    )
  }
}

/** Again and again, as the hub may be away. */
async function patiently<T>(act: () => Promise<T>): Promise<T> {
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (Date.now() > until) throw error
      await sleep(randomInt(50, 250))
    }
  }
}

/** One that hardly another takes: it must stay over restarts. */
const freePort = () => randomInt(10_000, 32_000)
