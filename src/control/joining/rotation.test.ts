import { X509Certificate } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { AgentCredentials } from '#connections'
import { AgentServer, type AgentServerOptions } from '#ingest'
import { clusterConnection } from '#kinds'
import type { Resource } from '#kube'
import { type Clock, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { decodeResponse, encodeRequest } from '#wire'
import { LinkError, type LinkFault } from '../../pipeline/agent/errors.ts'
import { pause } from '../../pipeline/agent/join/ask.ts'
import type { MemberIdentity } from '../../pipeline/agent/join/identity.ts'
import { IdentityFiles } from '../../pipeline/agent/join/identity-files.ts'
import { memberTransport } from '../../pipeline/agent/join/member-transport.ts'
import { Membership } from '../../pipeline/agent/join/membership.ts'
import { hello } from '../../pipeline/ingest/stream/test/own-agent.ts'
import { accept } from './decisions.ts'
import { aJoiningHub, aMachine, cluster, type JoiningHub, NAMESPACE, told } from './testing/joining-hub.ts'

/** Members at work while the hub's CAs rotate; more on request (`npm run soak rotation`). */
const MEMBERS = Number(process.env.ROTATION_MEMBERS ?? 12)
const LIMIT_MS = 120_000 + MEMBERS * 4_000
const DAY_MS = 86_400_000
/** Longer than the listener takes to hear of another CA. */
const ACTIVE_AFTER_MS = 3_000
/*
 * Members that join, renew or connect at the same time. Real ones renew at random moments of days; where all clocks of one process jump at
 * once, its turn of so many handshakes takes longer than the patience of each, and what is measured is that.
 */
const AT_ONCE = 16
/** An agent takes four seconds of silence for a dead connection. */
const STALL_MS = 2_000
const stalls = monitorEventLoopDelay()
/** Faults of the way to the hub, not of who is at its ends. */
const WAYS: ReadonlySet<LinkFault> = new Set(['ended', 'unreachable'])

const connections: Resource = {
  ...{ group: clusterConnection.group, version: clusterConnection.version },
  ...{ plural: clusterConnection.plural, kind: clusterConnection.kind, namespaced: true },
}

let directory = ''
let hub: JoiningHub
let credentials: AgentCredentials
let server: AgentServer
let files = { certFile: '', keyFile: '' }
/** PEM: CAs by which the hub is known */
let roots = ''
/** how often the listener looked for other files and CAs */
let reads = 0
/** how far the clock of the hub's CA is ahead */
let hubAheadMs = 0

/** Of one member; it jumps. */
class JumpingClock implements Clock {
  readonly #moved = new EventEmitter()
  #aheadMs = 0

  moveTo(aheadMs: number): void {
    this.#aheadMs = aheadMs
    this.#moved.emit('moved')
  }

  now(): number {
    return systemClock.now() + this.#aheadMs
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const over = new AbortController()
    const ends = signal ? AbortSignal.any([signal, over.signal]) : over.signal
    const moved = once(this.#moved, 'moved', { signal: ends })
    await Promise.race([systemClock.sleep(ms, ends), moved]).catch(() => undefined)
    over.abort('no longer needed')
  }
}

const ofNewCa = () => generateServingCertificate({ hosts: ['127.0.0.1'] })

/** Shows it from the next handshake on. @returns its CA */
async function serve({ cert, key, ca }: Awaited<ReturnType<typeof ofNewCa>>): Promise<string> {
  for (const [path, text] of [
    [files.keyFile, key],
    [files.certFile, `${cert}${ca}`],
  ] as const) {
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  return ca
}

/** What an agent of a member is to the hub, without a cluster: its membership, and its stream. */
class Member implements AsyncDisposable {
  readonly #stop = new AbortController()
  readonly #membership: Membership
  readonly #running: Promise<void>
  readonly #transport: ReturnType<typeof memberTransport>
  readonly clock = new JumpingClock()
  /** the certificate its stream was served with last */
  served = ''
  streams = 0
  /** what the hub said no with, in words */
  readonly refusals: string[] = []
  /** streams and dials that ended without a word, as on a machine that stands still for seconds; they are opened anew */
  interruptions = 0

  constructor(identity: MemberIdentity, at: string, random: number) {
    this.#membership = new Membership(identity, {
      ...{
        store: new IdentityFiles(at),
        version: '1',
        clock: this.clock,
        random: () => random,
        logger: silentLogger,
      },
      onRenewed: () => this.reconnect(),
    })
    // Whoever is cut off by a machine that stands still does not ask why: a CA whose clock is ahead would sign what is not valid yet.
    this.#transport = memberTransport(() => this.identity, { onWelcome: () => this.#membership.welcomed() })
    this.#running = this.#run()
  }

  get identity(): MemberIdentity {
    return this.#membership.identity
  }

  reconnect(): void {
    this.#transport.reopen()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.reconnect()
    await this.#running
    await this.#membership[Symbol.asyncDispose]()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    for (let attempt = 0; !signal.aborted; attempt++) {
      const before = this.streams
      try {
        await this.#stream(signal)
      } catch (error) {
        if (signal.aborted) break
        if (error instanceof LinkError && WAYS.has(error.fault)) this.interruptions++
        else this.refusals.push(error instanceof Error ? error.message : String(error))
      }
      if (this.streams > before) attempt = 0
      // As agents do: who was cut off with all others comes back at a moment of its own.
      await pause(attempt, 20, signal).catch(() => undefined)
    }
  }

  async #stream(signal: AbortSignal): Promise<void> {
    const { certificate } = this.identity
    await using link = await this.#transport.open(signal)
    link.send(encodeRequest({ payload: hello({ cluster: this.identity.cluster }) }))
    for await (const bytes of link.messages) {
      const { payload } = decodeResponse(bytes)
      if (payload.case === 'welcome') {
        this.served = certificate
        this.streams++
      }
      if (payload.case === 'joinState') this.#membership.trust(payload.value, this.#transport.address)
      if (payload.case === 'goodbye') this.refusals.push(payload.value.message)
    }
  }
}

async function aMember(index: number): Promise<Member> {
  const name = cluster(`m${index}`)
  const { key, asked } = aMachine(name, await hub.tokens.issue(name, DAY_MS))
  await told(hub, asked, 1)
  await accept({ hub: hub.kube, cluster: name })
  const metadata = { name, namespace: NAMESPACE }
  const { apiVersion, kind } = clusterConnection
  await hub.kube.create(connections, { apiVersion, kind, metadata, spec: { collectionMode: 'push' } })
  const last = (await told(hub, asked)).at(-1)
  if (last?.kind !== 'joined') throw new Error(`${name} did not join: ${JSON.stringify(last)}`)
  const at = join(directory, name)
  const address = { addresses: [`127.0.0.1:${server.address.port}`] }
  const { certificate } = last
  const identity = { hub: address, roots, cluster: name, agent: 'a1', joinedBy: 'ab', key, certificate }
  await new IdentityFiles(at).keep(identity)
  return new Member(identity, at, index / MEMBERS)
}

const members: Member[] = []
const all = (is: (member: Member) => boolean) => () => members.filter((one) => !is(one)).length
/** None is left that is not so. */
const until = (is: (member: Member) => boolean) => expect.poll(all(is), { timeout: LIMIT_MS }).toBe(0)
const isSignedBy = (pem: string, authority: string) =>
  new X509Certificate(pem).checkIssued(new X509Certificate(authority))
const refusals = () => members.flatMap((one) => one.refusals)
/** All of them do it, a few at a time, each until it is so. */
async function inTurn(act: (member: Member) => void, isDone: (member: Member) => boolean): Promise<void> {
  const atOnce = pLimit(AT_ONCE)
  await Promise.all(
    members.map((one) =>
      atOnce(async () => {
        act(one)
        while (!isDone(one)) await sleep(20)
      }),
    ),
  )
}
/** It is so late by their clocks, and the hub serves each of them by its next certificate. */
async function renewed(aheadMs: number): Promise<void> {
  const before = new Map(members.map((one) => [one, one.identity.certificate]))
  await inTurn(
    ({ clock }) => clock.moveTo(aheadMs),
    (one) => one.served === one.identity.certificate && one.served !== before.get(one),
  )
}
/** The listener has read anew what it shows and takes: what is read at the moment may be from before. */
async function listenerReads(): Promise<void> {
  const before = reads
  await expect.poll(() => reads, { timeout: LIMIT_MS }).toBeGreaterThan(before + 2)
}

beforeAll(async () => {
  stalls.enable()
  directory = await mkdtemp(join(tmpdir(), 'rotation-'))
  files = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') }
  roots = await serve(await ofNewCa())
  const clock: Clock = { now: () => systemClock.now() + hubAheadMs, sleep: systemClock.sleep }
  hub = await aJoiningHub({ clock, activeAfterMs: ACTIVE_AFTER_MS, serverRoots: () => roots })
  credentials = new AgentCredentials({ hub: hub.kube, namespace: NAMESPACE, members: hub.members })
  await credentials.start()
  const ingester = { knows: () => true, received: () => [], heardTo: () => undefined, agent: async () => undefined }
  server = await AgentServer.start({
    ...{ host: '127.0.0.1', port: 0, verifier: credentials, joins: hub.desk },
    tls: {
      ...files,
      async clientCas() {
        reads++
        return hub.authority.pem
      },
    },
    trust: () => ({ roots, addresses: [] }),
    plans: { planOf: () => undefined, onChange: () => () => undefined },
    ingester: ingester as unknown as AgentServerOptions['ingester'], // nobody delivers anything here
  })
  for (let index = 0; index < MEMBERS; index += AT_ONCE)
    members.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, MEMBERS - index) }, (_, next) => aMember(index + next)),
      )),
    )
}, LIMIT_MS)
afterAll(async () => {
  await Promise.all(members.map((one) => one[Symbol.asyncDispose]()))
  await server?.[Symbol.asyncDispose]()
  await credentials?.[Symbol.asyncDispose]()
  await hub?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

describe(`the CAs of a hub with ${MEMBERS} members at work, none of which is touched by hand`, () => {
  it('follow one another: all renew, are trusted, trust, and none is ever refused', { timeout: LIMIT_MS }, async () => {
    await until(({ streams }) => streams > 0)
    const names = members.map(({ identity }) => identity.cluster)
    const first = roots

    // The one that the hub is known by: told before it is shown.
    const following = await ofNewCa()
    const { ca } = following
    roots = `${first}${ca}`
    await until(({ identity }) => identity.roots === roots)
    await serve(following)

    // The one that signs them. Who renews while it is trusted and does not sign yet is served as well.
    const next = await hub.authority.rotate()
    await renewed(23 * DAY_MS)
    await expect.poll(() => hub.authority.roots().find(({ id }) => id === next.id)?.state).toBe('active')
    await renewed(46 * DAY_MS)
    expect(members.filter(({ served }) => !isSignedBy(served, next.pem))).toEqual([])

    // All that the former one signed has ended, and the hub is known by the new one alone.
    roots = ca
    hubAheadMs = 32 * DAY_MS
    expect(hub.authority.roots().map(({ id }) => id)).toEqual([next.id])
    await until(({ identity }) => identity.roots === ca)
    await listenerReads()
    const before = new Map(members.map((one) => [one, one.streams]))
    await inTurn(
      (one) => one.reconnect(),
      (one) => one.streams > (before.get(one) ?? 0),
    )
    expect(refusals()).toEqual([])
    const interruptions = members.reduce((sum, one) => sum + one.interruptions, 0)
    // What ends without a word ends by silence: where this process never stood still, by nobody's.
    if (stalls.max / 1e6 < STALL_MS) expect(interruptions).toBe(0)
    expect(members.map(({ identity }) => identity.cluster)).toEqual(names)
  })

  it('that are replaced without an overlap are noticed, and the member says what helps', {
    timeout: LIMIT_MS,
  }, async () => {
    const [one] = members
    await serve(await ofNewCa())
    await listenerReads()
    one?.reconnect()
    await expect
      .poll(() => one?.refusals.at(-1), { timeout: LIMIT_MS })
      .toMatch(/replaced without an overlap.*former CA beside the new one/)
  })
})
