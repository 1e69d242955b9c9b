import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { CLUSTER_SET_LABEL } from '#model'
import { EventReader } from '../event-stream.ts'
import { type KubernetesHub, kubectlOf, kubernetesHub, noKubernetesHub } from '../member-hub.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const why = noKubernetesHub()
const SECRET = 's'.repeat(32)
const ann = { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': 'ann' }
/** It is two seconds, and rounds are 30 s apart: what is shown so soon more often than not waited for none. */
const SOON_MS = 5_000
/** Of a machine that has much else to do. */
const SLOW_MS = 60_000
/** Each way, with its agent and without. */
const TURNS = 3

const policy = {
  apiVersion: 'clusterpulse.io/v1alpha1',
  kind: 'MonitorAccessPolicy',
  metadata: { name: 'prod-viewers', namespace: 'clusterpulse' },
  spec: {
    identity: { subjects: { users: ['ann'] }, priority: 100 },
    access: { effect: 'Allow' },
    scope: {
      clusters: {
        default: 'none',
        rules: [{ selector: { matchLabels: { [CLUSTER_SET_LABEL]: 'prod' } }, permissions: { view: true } }],
      },
    },
  },
}

/** A member moves between sets on a hub over Redis, and a person who sees one of the sets alone looks. */
describe.skipIf(why !== undefined)(`members that change sets${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder: string
  let simulated: Running
  let agent: Running
  let hub: KubernetesHub
  let kubectl: ReturnType<typeof kubectlOf>

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'change-sets-'))
    const kubeconfig = join(folder, 'members')
    simulated = clusterpulse([
      'simulate',
      '--clusters',
      '1',
      '--nodes',
      '2',
      '--pods',
      '5',
      '--kubeconfig-out',
      kubeconfig,
    ])
    await simulated.says(/kubeconfig in/)
    hub = await kubernetesHub(folder, { receivesAgents: true, env: { TRUSTED_PROXY_SECRET: SECRET } })
    kubectl = kubectlOf(hub.kubeconfig)
    await kubectl(['create', '-f', '-'], JSON.stringify(policy))
    const connect = clusterpulse(['connect', 'east', '--accept', '--kubeconfig', hub.kubeconfig])
    expect(await connect.ended(), connect.stderr()).toBe(0)
    const token = /npx clusterpulse join (\S+)/.exec(connect.stdout())?.[1] ?? ''
    agent = clusterpulse(['join', token, '--kubeconfig', kubeconfig, '--buffer-dir', join(folder, 'east')], {
      env: { HEALTH_ADDRESS: '127.0.0.1:0' },
    })
    await eventually(
      async () => agent.stderr(),
      (said) => said.includes('is a member of the hub'),
      120_000,
    )
  })
  afterAll(async () => {
    for (const one of [agent, hub, simulated]) await one?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const seen = async () =>
    (await createClient({ baseUrl: hub.page, headers: ann }).clusters()).items.map(({ name }) => name).join()
  const isSeen = (names: string, withinMs: number) => eventually(seen, (now) => now === names, withinMs)
  const moves = (set: string) =>
    kubectl(['label', 'managedcluster', 'east', `${CLUSTER_SET_LABEL}=${set}`, '--overwrite'])

  /** @returns from when kubectl was done until ann was answered otherwise, ms */
  async function shownAfter(change: () => Promise<unknown>, names: string): Promise<number> {
    await change()
    const at = performance.now()
    await isSeen(names, SLOW_MS)
    return Math.round(performance.now() - at)
  }

  async function backAndForth(how: string): Promise<void> {
    const took: Record<'came' | 'went', number[]> = { came: [], went: [] }
    for (let turn = 0; turn < TURNS; turn++) {
      took.came.push(await shownAfter(() => moves('prod'), 'east'))
      took.went.push(await shownAfter(() => moves('default'), ''))
    }
    console.info(`a member changes sets, ${how}: shown after ${took.came} ms, hidden after ${took.went} ms`)
    for (const [what, times] of Object.entries(took)) expect(median(times), what).toBeLessThan(SOON_MS)
  }

  it('are shown and hidden at once, on open streams too, and in the documented keys', async () => {
    await moves('prod')
    await isSeen('east', 60_000)
    using stream = await EventReader.open(`${hub.page}/api/v1/stream?rows=pods`, ann)
    const said = (from: number) => stream.events.slice(from).map(({ data }) => data)
    await expect.poll(() => said(0).some((data) => data.includes('east'))).toBe(true)
    await shownAfter(() => moves('default'), '')
    const from = stream.events.length
    await backAndForth('with its agent')
    // It came and went there as well, a little before or after it did in the answers that were asked for.
    const ofEast = () => said(from).filter((data) => data.includes('east'))
    await expect.poll(() => ofEast().length, { timeout: SLOW_MS }).toBeGreaterThan(1)
    await expect.poll(() => ofEast().at(-1), { timeout: SOON_MS }).toContain('"op":"clear"')
    const [heard, end] = [ofEast().length, stream.events.length]
    await expect.poll(() => stream.events.length).toBeGreaterThan(end + 1)
    expect(ofEast().slice(heard)).toEqual([])

    const eyes = new Redis({ host: hub.auditEnv.REDIS_HOST ?? '', port: Number(hub.auditEnv.REDIS_PORT) })
    try {
      const labels = async () => JSON.parse((await eyes.get('cluster:east:labels')) ?? '{}') as Record<string, string>
      await moves('prod')
      await expect.poll(labels, { timeout: SLOW_MS }).toEqual({ [CLUSTER_SET_LABEL]: 'prod' })
      await moves('default')
      await expect.poll(labels, { timeout: SLOW_MS }).toEqual({ [CLUSTER_SET_LABEL]: 'default' })
    } finally {
      eyes.disconnect()
    }
  })

  it('are shown and hidden at once while their agent is away', async () => {
    await agent.kill('SIGKILL')
    await backAndForth('without its agent')
  })

  it('are hidden at once when they are denied', async () => {
    await shownAfter(() => moves('prod'), 'east')
    const denied = ['patch', 'managedcluster', 'east', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":false}}']
    console.info(`a member is denied: hidden after ${await shownAfter(() => kubectl(denied), '')} ms`)
  })
})

const median = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]
