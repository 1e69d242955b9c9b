import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient } from '#kube'
import { conditionOf, managedClusters } from '../../src/control/registration/objects.ts'
import { CONDITIONS } from '../../src/control/registration/words.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'
import { SilentProxy } from '../silent-proxy.ts'

const SLOW_MS = 90_000
/** Of a link that stalls: less than a stream may be silent. */
const STALL_MS = 6_000

/** Members, joined and run with the commands people have, and what may happen to them. */
/** What gRPC and Node say among themselves. */
const INTERNALS = /Resolution note|No connection established|Failed to connect|RST_STREAM| at .*\.js:\d/

describe('a member', () => {
  let directory: string
  let hub: Running | undefined
  let kube: OwnedKubeClient | undefined
  const running: Running[] = []
  let ports: Readonly<Record<'page' | 'api' | 'agents' | 'moved', number>>
  const data = () => join(directory, 'hub')
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const one = clusterpulse(args, { env })
    running.push(one)
    return one
  }

  async function startHub(folder: string, agents: number, env: Readonly<Record<string, string>> = {}): Promise<void> {
    const where = ['--port', `${ports.page}`, '--control-plane-port', `${ports.api}`, '--ingester-port', `${agents}`]
    hub = start(['up', '--kubeconfig', join(directory, 'fleet'), '--data-dir', folder, ...where], env)
    await hub.says(/on http:\S+/, SLOW_MS)
    await kube?.[Symbol.asyncDispose]()
    kube = createKubeClient(await accessForContext(await loadKubeconfig([join(folder, 'kubeconfig')])))
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'member-bad-luck-'))
    const [page, api, agents, moved] = [await freePort(), await freePort(), await freePort(), await freePort()]
    ports = { page, api, agents, moved }
    const size = ['--clusters', '1', '--nodes', '1', '--pods', '4', '--kubeconfig-out', join(directory, 'fleet')]
    await start(['simulate', ...size]).says(/kubeconfig in/, SLOW_MS)
    await startHub(data(), ports.agents)
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    for (const one of running.reverse()) await one[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const run = async (...args: string[]) => {
    const command = clusterpulse([...args, '--kubeconfig', join(data(), 'kubeconfig')])
    const code = await command.ended()
    expect(code, command.stderr()).toBe(0)
    return command.stdout()
  }
  const machine = (name: string, token: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    start(['join', ...token, '--kubeconfig', join(directory, 'fleet'), '--buffer-dir', join(directory, name)], {
      HEALTH_ADDRESS: '127.0.0.1:0',
      ...env,
    })
  const identity = async (name: string) =>
    JSON.parse(await readFile(join(directory, name, 'identity/member.json'), 'utf8')) as {
      readonly hub: { readonly addresses: readonly string[] }
    }
  const available = async (name: string) => {
    const member = await kube?.get(managedClusters, { name })
    return member && conditionOf(member, CONDITIONS.available)
  }
  const says = (name: string, is: 'True' | 'Unknown') =>
    eventually(
      () => available(name),
      (condition) => condition?.status === is,
      SLOW_MS,
    )
  /** It joined, and the hub says that it is available. @param through where it reaches the hub */
  const aMember = async (name: string, ...through: string[]) => {
    const [, token = ''] = /npx clusterpulse join (\S+)/.exec(await run('connect', name, ...through)) ?? []
    const agent = machine(name, [token])
    await saying(agent, /waiting: /)
    await run('accept', name)
    await says(name, 'True')
    return agent
  }
  const saying = (agent: Running, words: RegExp) =>
    eventually(
      async () => agent.stderr(),
      (said) => words.test(said),
      SLOW_MS,
    )

  it('whose link stalls again and again is not lost; one that went silent is unknown within 15 s, and back by itself', async () => {
    await using proxy = await SilentProxy.before(ports.agents)
    await aMember('stalls', '--address', `127.0.0.1:${proxy.port}`)
    const since = (await available('stalls'))?.lastTransitionTime
    for (let stall = 0; stall < 3; stall++) {
      proxy.silence()
      await sleep(STALL_MS)
      proxy.speak()
      await sleep(1_000)
    }
    expect(await available('stalls')).toMatchObject({ status: 'True', lastTransitionTime: since })
    const unknownAfterMs = await leastOf(3, 15_000, async () => {
      const cutAt = Date.now()
      proxy.cut()
      const lost = await says('stalls', 'Unknown')
      expect(lost?.reason).toBe('ManagedClusterStreamLost')
      proxy.speak()
      await says('stalls', 'True')
      return Date.parse(lost?.lastTransitionTime ?? '') - cutAt
    })
    expect(unknownAfterMs).toBeLessThan(15_000)
  })

  it('that is denied is told why, once, and is back by itself when it is accepted again', async () => {
    const agent = await aMember('denied')
    await run('deny', 'denied')
    const said = await saying(agent, /the hub does not serve this member/)
    expect(said).toMatch(
      /does not accept the cluster any more; `clusterpulse accept denied` on the hub lets it in again/,
    )
    await run('accept', 'denied')
    await says('denied', 'True')
    expect(agent.stderr().match(/the hub does not serve this member/g)).toHaveLength(1)
    expect(agent.stderr()).not.toMatch(INTERNALS)
  })

  it('that is deleted while it is away is told to join anew, and joins anew with a new token', async () => {
    const agent = await aMember('deleted')
    await agent.kill('SIGKILL')
    await kube?.delete(managedClusters, { name: 'deleted' })
    await eventually(
      async () => (await kube?.get(managedClusters, { name: 'deleted' })) === undefined,
      (isGone) => isGone,
      SLOW_MS,
    )
    const back = machine('deleted', [])
    await saying(
      back,
      /knows no ManagedCluster deleted any more; the cluster must join anew, with a new join token: `clusterpulse connect deleted`/,
    )
    expect(back.stderr()).not.toMatch(INTERNALS)
    await back.kill('SIGTERM')
    await aMember('deleted')
  })

  it('follows its hub to another address, untouched', { tags: ['long'] }, async () => {
    const agent = await aMember('follows')
    const [here, there] = [`127.0.0.1:${ports.agents}`, `localhost:${ports.moved}`]
    await hub?.kill('SIGTERM')
    await startHub(data(), ports.agents, { INGESTER_ADVERTISE: `${there},${here}` })
    await eventually(
      async () => (await identity('follows')).hub.addresses.join(),
      (addresses) => addresses === `${there},${here}`,
      SLOW_MS,
    )
    await hub?.kill('SIGTERM')
    // Another machine, with a copy of its folder.
    await rename(data(), join(directory, 'moved'))
    await startHub(join(directory, 'moved'), ports.moved, { INGESTER_ADVERTISE: there })
    await eventually(
      async () => (await identity('follows')).hub.addresses.join(),
      (addresses) => addresses === there,
      SLOW_MS,
    )
    await says('follows', 'True')
    expect(agent.stderr()).toContain('the hub is at these addresses from now on')
  })
})
