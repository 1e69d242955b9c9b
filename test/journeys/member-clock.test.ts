import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient } from '#kube'
import { conditionOf, managedClusters } from '../../src/control/registration/objects.ts'
import { CONDITIONS } from '../../src/control/registration/words.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { type FakedTime, fakedTime, noFakedTime } from '../faked-time.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const why = noFakedTime()
const SLOW_MS = 90_000
/** Of one that is turned away: it waits up to a minute each time. */
const PATIENT_MS = 300_000

/** Members and hubs whose clocks are wrong, and are set right, as OpenSSL and everything else in them see it. */
describe.skipIf(why !== undefined)(`members by wrong clocks${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let directory: string
  const running: Running[] = []
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const one = clusterpulse(args, { env })
    running.push(one)
    return one
  }

  /** A hub with a folder and a clock of its own. */
  class Hub {
    readonly #folder: string
    readonly #clock: FakedTime
    #kube: OwnedKubeClient | undefined

    private constructor(folder: string, clock: FakedTime) {
      this.#folder = folder
      this.#clock = clock
    }

    static async start(name: string, offset: string): Promise<Hub> {
      const folder = join(directory, name)
      const hub = new Hub(folder, await fakedTime(`${folder}.time`, offset))
      const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', `${await freePort()}`]
      const args = ['up', '--kubeconfig', join(directory, 'fleet'), '--data-dir', folder, ...ports]
      await start(args, hub.#clock.env).says(/on http:\S+/, SLOW_MS)
      return hub
    }

    setClock = (offset: string) => this.#clock.set(offset)

    /** A command of people on the machine of the hub, by its clock. */
    async run(...args: string[]): Promise<string> {
      const kubeconfig = ['--kubeconfig', join(this.#folder, 'kubeconfig')]
      const command = clusterpulse([...args, ...kubeconfig], { env: this.#clock.env })
      expect(await command.ended(), command.stderr()).toBe(0)
      return command.stdout()
    }

    async tokenFor(name: string, ...args: string[]): Promise<string> {
      return /npx clusterpulse join (\S+)/.exec(await this.run('connect', name, '--accept', ...args))?.[1] ?? ''
    }

    /** `True Reason` of a condition, once it is that. */
    async says(name: string, type: string, said: string, withinMs = SLOW_MS): Promise<string> {
      const of = async () => {
        // Its certificates may not count yet by our clock: this asks as one who knows that.
        this.#kube ??= createKubeClient(
          await accessForContext(await loadKubeconfig([join(this.#folder, 'kubeconfig')])),
        )
        const member = await this.#kube.get(managedClusters, { name })
        const condition = member && conditionOf(member, type)
        return { said: `${condition?.status} ${condition?.reason}`, message: condition?.message ?? '' }
      }
      return (await eventually(of, (one) => one.said === said, withinMs)).message
    }

    async close(): Promise<void> {
      await this.#kube?.[Symbol.asyncDispose]()
    }
  }

  const machine = (name: string, words: readonly string[], clock?: FakedTime) =>
    start(
      ['join', ...words, '--kubeconfig', join(directory, 'fleet'), '--buffer-dir', join(directory, name)],
      clock?.env,
    )
  const saying = (agent: Running, words: RegExp) =>
    eventually(
      () => Promise.resolve(agent.stderr()),
      (said) => words.test(said),
      SLOW_MS,
    )
  const { clock: CLOCK, available: AVAILABLE } = CONDITIONS
  const SYNCED = 'True ManagedClusterClockSynced'
  const WRONG = 'False ManagedClusterClockOutOfSync'
  const THERE = 'True ManagedClusterAvailable'

  let right: Hub
  const hubs: Hub[] = []
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'member-clock-'))
    const size = ['--clusters', '1', '--nodes', '1', '--pods', '4', '--kubeconfig-out', join(directory, 'fleet')]
    await start(['simulate', ...size]).says(/kubeconfig in/, SLOW_MS)
    right = await Hub.start('right', '+0')
    hubs.push(right)
  })
  afterAll(async () => {
    for (const hub of hubs) await hub.close()
    for (const one of running.reverse()) await one[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  for (const { offset, minutes, how, tags } of [
    { offset: '-1h', minutes: 60, how: 'behind', tags: [] },
    { offset: '+1h', minutes: 60, how: 'ahead of', tags: ['again'] },
  ])
    it.concurrent(`a machine whose clock is ${offset} joins, is served, and is said to be off until it is set`, {
      tags,
    }, async () => {
      const name = `hour${minutes}${how.slice(0, 2)}`
      const clock = await fakedTime(join(directory, `${name}.time`), offset)
      machine(name, [await right.tokenFor(name)], clock)
      await right.says(name, AVAILABLE, THERE)
      expect(await right.says(name, CLOCK, WRONG)).toBe(
        `The clock of the managed cluster is about ${minutes} minutes ${how} that of the hub; set it by NTP.`,
      )
      await clock.set('+0')
      await right.says(name, CLOCK, SYNCED)
      await right.says(name, AVAILABLE, THERE)
    })

  for (const { offset, isRestarted, words } of [
    {
      offset: '-10y',
      isRestarted: true,
      words:
        /the certificate of \S+ is not valid yet by the clock of this machine, which says 2\d{3}-.* set it \(NTP\)/,
    },
    {
      offset: '+10y',
      isRestarted: false,
      words: /the certificate of \S+ has expired by the clock of this machine, which says 2\d{3}-.* set it \(NTP\)/,
    },
  ])
    it.concurrent(`a machine whose clock is ${offset} says what is wrong, joins by itself once it is set${isRestarted ? ', and says so again later' : ''}`, async () => {
      const name = `years${offset.startsWith('-') ? 'behind' : 'ahead'}`
      const clock = await fakedTime(join(directory, `${name}.time`), offset)
      const asking = machine(name, [await right.tokenFor(name)], clock)
      await saying(asking, words)
      await clock.set('+0')
      await right.says(name, AVAILABLE, THERE)
      await right.says(name, CLOCK, SYNCED)

      if (!isRestarted) return
      // And as a member, begun again by that clock.
      await asking.kill('SIGKILL')
      await clock.set(offset)
      const again = machine(name, [], clock)
      await saying(again, words)
      await right.says(name, AVAILABLE, 'Unknown ManagedClusterStreamLost')
      await clock.set('+0')
      await right.says(name, AVAILABLE, THERE)
    })

  // What was signed by a clock that was ahead does not count yet; by one that was behind, it does.
  for (const { offset, how, tags } of [
    { offset: '-1h', how: 'ahead of', tags: ['again'] },
    { offset: '+1h', how: 'behind', tags: ['long'] },
  ])
    it.concurrent(`a hub that is made by a clock of ${offset} takes members, and keeps them when it is set right`, {
      timeout: 700_000,
      tags,
    }, async () => {
      const hub = await Hub.start(`hub${offset}`, offset)
      hubs.push(hub)
      const before = await hub.tokenFor('before')
      const late = await hub.tokenFor('late', '--ttl', '30m')
      const member = machine(`${offset}-before`, [before])
      await hub.says('before', AVAILABLE, THERE)
      expect(await hub.says('before', CLOCK, WRONG)).toContain(`about 60 minutes ${how} that of the hub`)
      await hub.setClock('+0')
      await hub.says('before', CLOCK, SYNCED)
      await hub.says('before', AVAILABLE, THERE)
      // A member that comes again shows what was signed by the wrong clock.
      await member.kill('SIGKILL')
      await hub.says('before', AVAILABLE, 'Unknown ManagedClusterStreamLost')
      machine(`${offset}-before`, [])
      // Where that does not count yet, it asks why after it was turned away three times, and is given another one.
      await hub.says('before', AVAILABLE, THERE, PATIENT_MS)
      machine(`${offset}-after`, [await hub.tokenFor('after')])
      await hub.says('after', AVAILABLE, THERE)
      await hub.says('after', CLOCK, SYNCED)
      if (offset !== '-1h') return
      const refused = machine(`${offset}-late`, [late])
      expect(await refused.ended()).toBe(1)
      expect(refused.stderr()).toMatch(/the join token has expired/)
    })
})
