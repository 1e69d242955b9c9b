/**
 * `npm run soak loss -- [minutes] [percent] [members]`: members whose packets get lost by the kernel on their way to the hub. None of
 * them may seem to be lost; another one that dies again and again is unknown within 15 s, and so are all when nothing passes any more.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { accept } from '#joining'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient } from '#kube'
import { parseClusterName } from '#model'
import { managedClusters } from '../src/control/registration/objects.ts'
import { enterLossyNetwork, LossyPort } from './lossy-network.ts'
import { clusterpulse, eventually, type Running } from './process.ts'

const UNKNOWN_WITHIN_MS = 15_000
const BACK_WITHIN_MS = 120_000
const DIES_EVERY_MS = 60_000
const LOOK_EVERY_MS = 200
const MORTAL = 'mortal'
const PORT = 19_443

enterLossyNetwork()
const [minutes = 30, percent = 5, count = 5] = process.argv.slice(2).map(Number)
const port = new LossyPort(PORT)
const say = (text: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`)
const faults: string[] = []
const fault = (text: string) => {
  faults.push(text)
  say(`FAULT: ${text}`)
}

const folder = await mkdtemp(join(tmpdir(), 'soak-loss-'))
const fleet = join(folder, 'fleet.yaml')
const running: Running[] = []
const start = (args: readonly string[]) => {
  const one = clusterpulse(args, { env: { HEALTH_ADDRESS: '127.0.0.1:0', LOG_LEVEL: 'warn' } })
  running.push(one)
  return one
}
const machine = (name: string, ...token: readonly string[]) =>
  start(['join', ...token, '--kubeconfig', fleet, '--buffer-dir', join(folder, name)])

/** Looks at all members until the end, and remembers what the hub says of each. */
class Watched implements AsyncDisposable {
  readonly #now = new Map<string, string>()
  readonly changes: { readonly member: string; readonly says: string; readonly at: number }[] = []
  readonly #loop: Promise<void>
  #isOver = false

  constructor(kube: OwnedKubeClient) {
    this.#loop = this.#look(kube)
  }

  of(member: string): string {
    return this.#now.get(member) ?? ''
  }

  async until(member: string, says: RegExp, withinMs: number): Promise<number> {
    const from = Date.now()
    await eventually(
      async () => this.of(member),
      (text) => says.test(text),
      withinMs,
    )
    return Date.now() - from
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#loop
  }

  async #look(kube: OwnedKubeClient): Promise<void> {
    while (!this.#isOver) {
      for (const { metadata, status } of await kube.listAll(managedClusters, {})) {
        const { status: is, reason } =
          status?.conditions?.find(({ type }) => type === 'ManagedClusterConditionAvailable') ?? {}
        const says = `${is} ${reason}`
        if (this.#now.get(metadata.name) === says) continue
        this.#now.set(metadata.name, says)
        this.changes.push({ member: metadata.name, says, at: Date.now() })
      }
      await sleep(LOOK_EVERY_MS)
    }
  }
}

try {
  await start(['simulate', '--clusters', '1', '--nodes', '3', '--pods', '20', '--kubeconfig-out', fleet]).says(
    /kubeconfig in/,
  )
  const data = join(folder, 'hub')
  const where = ['--port', '0', '--control-plane-port', '0', '--ingester-port', `${PORT}`]
  await start(['up', '--kubeconfig', fleet, '--data-dir', data, ...where]).says(/on http:\S+/)
  const kubeconfig = join(data, 'kubeconfig')
  await using kube = createKubeClient(await accessForContext(await loadKubeconfig([kubeconfig])))
  const steady = Array.from({ length: count }, (_, i) => `steady-${i}`)
  const agents = new Map<string, Running>()
  for (const name of [...steady, MORTAL]) {
    const command = clusterpulse(['connect', name, '--kubeconfig', kubeconfig])
    const [, token = ''] = await command.says(/npx clusterpulse join (\S+)/)
    agents.set(name, machine(name, token))
    await eventually(
      () => accept({ hub: kube, cluster: parseClusterName(name) }),
      (done) => done.some((line) => /is approved \(/.test(line)),
    )
  }
  await using watched = new Watched(kube)
  for (const name of agents.keys()) await watched.until(name, /^True/, BACK_WITHIN_MS)

  port.lose(percent)
  const from = Date.now()
  say(`${steady.length} members, ${percent} % of packets lost for ${minutes} minutes; one more dies every minute`)
  const falseAlarms = () => watched.changes.filter(({ member, at }) => member !== MORTAL && at >= from)
  const deaths: number[] = []
  for (let n = 0; Date.now() - from < minutes * 60_000; n++) {
    const roundFrom = Date.now()
    const signal = n % 2 === 0 ? 'SIGSTOP' : 'SIGKILL'
    const agent = agents.get(MORTAL)
    if (agent) process.kill(agent.pid, signal)
    const tookMs = await watched.until(MORTAL, /^Unknown/, 60_000).catch(() => Number.POSITIVE_INFINITY)
    deaths.push(tookMs)
    if (tookMs > UNKNOWN_WITHIN_MS) fault(`${signal} was noticed after ${tookMs} ms`)
    if (watched.of(MORTAL) !== 'Unknown ManagedClusterStreamLost') fault(`it is said to be ${watched.of(MORTAL)}`)
    if (signal === 'SIGKILL') agents.set(MORTAL, machine(MORTAL))
    else if (agent) process.kill(agent.pid, 'SIGCONT')
    const backMs = await watched.until(MORTAL, /^True/, BACK_WITHIN_MS).catch(() => Number.POSITIVE_INFINITY)
    if (backMs > BACK_WITHIN_MS) fault('it did not come back')
    if (n % 5 === 0)
      say(
        `${signal} noticed after ${tookMs} ms, back after ${backMs} ms; ${port.lost} packets lost; ${falseAlarms().length} false alarms`,
      )
    await sleep(Math.max(0, DIES_EVERY_MS - (Date.now() - roundFrom)))
  }
  for (const { member, says, at } of falseAlarms()) fault(`${member} was ${says} at ${new Date(at).toISOString()}`)
  const { lost } = port
  if (lost === 0) fault('no packet was lost: nothing is shown')
  say(
    `${lost} packets lost, ${falseAlarms().length} changes of ${steady.length} members; ${deaths.length} deaths noticed after ${Math.min(...deaths)} to ${Math.max(...deaths)} ms`,
  )

  port.lose(100)
  const cutAt = Date.now()
  await Promise.all([...agents.keys()].map((name) => watched.until(name, /^Unknown ManagedClusterStreamLost/, 60_000)))
  const cutMs = Date.now() - cutAt
  if (cutMs > UNKNOWN_WITHIN_MS) fault(`a network that is cut was noticed after ${cutMs} ms`)
  port.lose(percent)
  const back = await Promise.all([...agents.keys()].map((name) => watched.until(name, /^True/, BACK_WITHIN_MS)))
  say(`a network that was cut: all unknown after ${cutMs} ms, all back ${Math.max(...back)} ms after it was whole`)
} catch (error) {
  for (const one of running) process.stderr.write(`${one.stderr().slice(-2500)}\n----\n`)
  throw error
} finally {
  for (const one of running.reverse()) {
    try {
      process.kill(one.pid, 'SIGCONT')
    } catch {
      // it has ended
    }
    await one.kill('SIGKILL')
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}
say(`${faults.length} faults`)
if (faults.length > 0) process.exitCode = 1
