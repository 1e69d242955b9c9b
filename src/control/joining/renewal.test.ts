import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JoinStep } from '#ingest'
import { type Clock, type ClusterName, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { decodeRequest, encodeResponse, type JoinRequest } from '#wire'
import { IdentityFiles } from '../../pipeline/agent/join/identity-files.ts'
import { Membership } from '../../pipeline/agent/join/membership.ts'
import type { Transport } from '../../pipeline/agent/types.ts'
import { accept, refuse } from './decisions.ts'
import { aJoiningHub, aMachine, cluster, type JoiningHub, told } from './testing/joining-hub.ts'

/*
 * A member's agent at a real desk over months of a clock that goes as fast as it is waited for; the agent's may differ from the hub's.
 */
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

let directory = ''
let hub: JoiningHub
let nowMs = systemClock.now()
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'renewal-'))
  hub = await aJoiningHub({ clock: { now: () => nowMs, sleep: systemClock.sleep } })
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** To the desk without a network between. @param onOpen throws where nobody answers */
const transportTo = (onOpen: () => void): Transport => ({
  async open(signal) {
    onOpen()
    let asks: (asked: JoinRequest) => void = () => undefined
    const question = new Promise<JoinRequest>((resolve) => {
      asks = resolve
    })
    return {
      send(bytes) {
        const { payload } = decodeRequest(bytes)
        if (payload.case === 'join') asks(payload.value)
        return true
      },
      writable: () => Promise.resolve(),
      messages: (async function* () {
        const { clusterName, agentName, token, csr, certificate, proof } = await question
        const asked = { cluster: clusterName, agent: agentName, token, csr, certificate, proof, version: '1' }
        for await (const step of hub.desk.ask({ ...asked, address: '10.0.0.1' }, signal)) yield answerOf(step)
      })(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  },
})

function answerOf(step: JoinStep): Uint8Array {
  if (step.kind === 'over') {
    const { code, message, retryAfterMs = 0 } = step
    return encodeResponse({ payload: { case: 'goodbye', value: { code, message, retryAfterMs } } })
  }
  const { kind: phase, ...rest } = step
  return encodeResponse({ payload: { case: 'joinState', value: { phase, ...rest } } })
}

let n = 0
/** A member that lives until the end; when it got which certificate, by the hub's clock. */
async function lives({
  days,
  offsetMs = () => 0,
  backAt = 0,
  events = [],
}: {
  readonly days: number
  readonly offsetMs?: (day: number) => number
  /** the day from which on the hub answers */
  readonly backAt?: number
  /** what happens to the member, and on which day */
  readonly events?: readonly (readonly [day: number, happens: (name: ClusterName) => Promise<unknown>])[]
}) {
  const name = cluster(`m${n++}`)
  const { key, asked } = aMachine(name, await hub.tokens.issue(name, DAY_MS))
  await told(hub, asked, 1)
  await accept({ hub: hub.kube, cluster: name })
  const last = (await told(hub, asked)).at(-1)
  if (last?.kind !== 'joined') throw new Error(`not joined: ${JSON.stringify(last)}`)
  const at = join(directory, name)
  const address = { addresses: ['hub:9443'] }
  const { certificate } = last
  const identity = { hub: address, roots: '', cluster: name, agent: 'a1', joinedBy: 'ab', key, certificate }
  await new IdentityFiles(at).keep(identity)

  const beganAt = nowMs
  const day = () => (nowMs - beganAt) / DAY_MS
  const end = new AbortController()
  const left = [...events]
  const clock: Clock = {
    now: () => nowMs + offsetMs(day()),
    async sleep(ms, signal) {
      await turn()
      if (signal?.aborted) return
      nowMs += ms
      while (left[0] && left[0][0] <= day()) await left.shift()?.[1](name)
      if (day() < days) return
      end.abort()
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
    },
  }
  /** The pauses between questions are real and short: with each that fails days go by. */
  const fails = () => {
    if (day() >= backAt) return
    nowMs = Math.min(nowMs + 10 * DAY_MS, beganAt + backAt * DAY_MS)
    throw new Error('connection refused')
  }
  const renewals: number[] = []
  let questions = 0
  const membership = new Membership(identity, {
    ...{ store: new IdentityFiles(at), version: '1', clock, random: () => 0.5, logger: silentLogger },
    transport: () =>
      transportTo(() => {
        questions++
        fails()
      }),
    onRenewed: () => renewals.push(day()),
  })
  await new Promise<void>((resolve) => end.signal.addEventListener('abort', () => resolve(), { once: true }))
  await membership[Symbol.asyncDispose]()
  const recorded = hub.facts.filter(({ event, cluster: of }) => event === 'join_refused' && of === name).length
  return {
    renewals,
    refusals: questions - renewals.length,
    recorded,
    membership,
    kept: await new IdentityFiles(at).member(),
  }
}

describe('the certificate of a member that lives for months', () => {
  it.each([
    ['right', 0],
    ['an hour ahead', HOUR_MS],
    ['an hour behind', -HOUR_MS],
    ['ten years ahead', 10 * YEAR_MS],
    ['ten years behind', -10 * YEAR_MS],
  ])('is renewed in time and no oftener, by a clock that is %s', async (_, ms) => {
    const { renewals, kept } = await lives({ days: 60, offsetMs: () => ms })
    // A clock that cannot be right renews what it finds at its start, once.
    const isWrong = Math.abs(ms) > DAY_MS
    expect(renewals).toHaveLength(isWrong ? 3 : 2)
    for (const [index, at] of renewals.entries()) {
      const since = at - (renewals[index - 1] ?? 0)
      if (!isWrong || index > 0) expect(since).toBeGreaterThan(19)
      expect(since).toBeLessThan(23)
    }
    expect(Date.parse(new X509Certificate(kept?.certificate ?? '').validTo)).toBeGreaterThan(nowMs)
  })

  it.each([
    ['ten years ahead', 10 * YEAR_MS],
    ['ten years behind', -10 * YEAR_MS],
  ])('is renewed in time where the clock was %s and is set right', async (_, ms) => {
    const { renewals } = await lives({ days: 45, offsetMs: (day) => (day < 10 ? ms : 0) })
    expect(renewals.length).toBeLessThanOrEqual(4)
    expect(renewals.filter((day) => day >= 10 && day < 30)).not.toEqual([])
    expect(Math.max(...renewals.map((day, index) => day - (renewals[index - 1] ?? 0)))).toBeLessThan(23)
  })

  it('is not renewed while the member is denied, asked for once a day, and renewed when it is accepted again, also after its end', async () => {
    const isAccepted = (name: ClusterName, is: boolean) => expect.poll(() => hub.members.isAccepted(name)).toBe(is)
    const { renewals, refusals, recorded } = await lives({
      days: 50,
      events: [
        [10, (name) => refuse({ hub: hub.kube, cluster: name }).then(() => isAccepted(name, false))],
        [40, (name) => accept({ hub: hub.kube, cluster: name }).then(() => isAccepted(name, true))],
      ],
    })
    expect(renewals).toHaveLength(1)
    expect(renewals[0]).toBeGreaterThan(40)
    expect(renewals[0]).toBeLessThan(41.1)
    expect(refusals).toBeGreaterThan(15)
    expect(refusals).toBeLessThan(21)
    // The same answer to the same certificate is no news for the trail.
    expect(recorded).toBe(1)
  })

  it.each([
    ['before its end', 25],
    ['long after its end', 55],
  ])('is renewed as soon as the hub is back, where that was away %s', async (_, back) => {
    const { renewals, membership, kept } = await lives({ days: back + 5, backAt: back })
    expect(renewals).toHaveLength(1)
    expect(renewals[0]).toBeGreaterThanOrEqual(back)
    expect(renewals[0]).toBeLessThan(back + 0.1)
    expect(kept?.certificate).toBe(membership.identity.certificate)
  })
})
