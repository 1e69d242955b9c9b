import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LeaderElection } from '#controller'
import { createLogger, type Part } from '#runtime'
import { type ControlPlane, openControlPlane } from './control-plane.ts'
import { createLeader } from './leader.ts'
import { HUB_NAMESPACE } from './object-names.ts'

const logger = createLogger('silent')
let directory: string
let plane: ControlPlane
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'leading-'))
  plane = await openControlPlane({ dataDir: directory, port: 0, version: 'test', logger })
})
afterEach(async () => {
  await plane[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** A process that leads or waits, what it did, and how to fail its starts. */
function aCandidate(identity: string) {
  const did: string[] = []
  const failing = { with: undefined as Error | undefined }
  const aPart = (name: string): Part => ({
    name,
    start() {
      if (name === 'second' && failing.with) return Promise.reject(failing.with)
      did.push(`${name} started`)
      return Promise.resolve()
    },
    stop() {
      did.push(`${name} stopped`)
      return Promise.resolve()
    },
  })
  const election = () =>
    new LeaderElection({
      ...{ kube: plane.client, namespace: HUB_NAMESPACE, name: 'lock', identity, logger },
      ...{ leaseMs: 3_000, renewDeadlineMs: 2_000, retryMs: 50 },
    })
  const leads = createLeader({ parts: [aPart('first'), aPart('second')], election, logger })
  const [part] = leads.parts
  if (!part || leads.parts.length !== 1) throw new Error('one part runs all others')
  return { leads, part, did, failing }
}
const signal = new AbortController().signal

describe('what one process at a time may hold', () => {
  it('is opened when the turn of a process comes, and not before; it ends before the next one begins', async () => {
    const [one, other] = [aCandidate('one'), aCandidate('other')]
    await one.part.start(signal)
    await vi.waitFor(() => expect(one.did).toEqual(['first started', 'second started']), 20_000)
    await other.part.start(signal)
    expect([one.leads.isLeading(), one.leads.fault()]).toEqual([true, undefined])
    expect([other.leads.isLeading(), other.leads.fault(), other.did]).toEqual([false, undefined, []])
    await one.part.stop()
    expect(one.did.slice(2)).toEqual(['second stopped', 'first stopped'])
    await vi.waitFor(() => expect(other.did).toEqual(['first started', 'second started']), 20_000)
    await other.part.stop()
    expect(other.leads.isLeading()).toBe(false)
  })

  it('is tried again where it cannot be opened, and it is said why meanwhile', async () => {
    const one = aCandidate('one')
    one.failing.with = new Error('Redis is away')
    await one.part.start(signal)
    await vi.waitFor(() => expect(one.leads.fault()).toContain('Redis is away'), 20_000)
    expect(one.leads.isLeading()).toBe(true)
    one.failing.with = undefined
    await vi.waitFor(() => expect(one.leads.fault()).toBeUndefined(), 10_000)
    expect(one.did.slice(-2)).toEqual(['first started', 'second started'])
    await one.part.stop()
  })

  it('is opened like everything else where nobody else may want to lead', () => {
    const parts: readonly Part[] = []
    const leads = createLeader({ parts, logger })
    expect([leads.parts, leads.isLeading(), leads.fault()]).toEqual([parts, true, undefined])
  })
})
