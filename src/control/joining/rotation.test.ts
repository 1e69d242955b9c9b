import { X509Certificate } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generateServingCertificate } from '#apiserver'
import { AgentCredentials } from '#connections'
import { AgentServer, type AgentServerOptions } from '#ingest'
import { clusterConnection } from '#kinds'
import type { Resource } from '#kube'
import { type Clock, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { decodeResponse, encodeRequest } from '#wire'
import type { MemberIdentity } from '../../pipeline/agent/join/identity.ts'
import { IdentityFiles } from '../../pipeline/agent/join/identity-files.ts'
import { memberTransport } from '../../pipeline/agent/join/member-transport.ts'
import { Membership } from '../../pipeline/agent/join/membership.ts'
import { hello } from '../../pipeline/ingest/stream/test/own-agent.ts'
import { accept } from './decisions.ts'
import { aJoiningHub, aMachine, cluster, type JoiningHub, NAMESPACE, told } from './testing/joining-hub.ts'

/** Members at work while the hub's CAs rotate; more on request (`npm run soak rotation`). */
const MEMBERS = Number(process.env.ROTATION_MEMBERS ?? 12)
const LIMIT_MS = 60_000 + MEMBERS * 1_000
const DAY_MS = 86_400_000
/** Longer than the listener takes to hear of another CA. */
const ACTIVE_AFTER_MS = 3_000
const AT_ONCE = 16

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
/** how far the clock of the hub's CA is ahead */
let hubAheadMs = 0

/** Of all members; it jumps. */
const moved = new EventEmitter().setMaxListeners(0)
let membersAheadMs = 0
const membersClock: Clock = {
  now: () => systemClock.now() + membersAheadMs,
  async sleep(ms, signal) {
    const over = new AbortController()
    const ends = signal ? AbortSignal.any([signal, over.signal]) : over.signal
    await Promise.race([systemClock.sleep(ms, ends), once(moved, 'moved', { signal: ends })]).catch(() => undefined)
    over.abort()
  },
}
const moveMembersTo = (ms: number) => {
  membersAheadMs = ms
  moved.emit('moved')
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
  /** the certificate its stream was served with last */
  served = ''
  streams = 0
  /** in words */
  readonly refusals: string[] = []

  constructor(identity: MemberIdentity, at: string, random: number) {
    this.#membership = new Membership(identity, {
      ...{
        store: new IdentityFiles(at),
        version: '1',
        clock: membersClock,
        random: () => random,
        logger: silentLogger,
      },
      onRenewed: () => this.reconnect(),
    })
    this.#transport = memberTransport(() => this.identity, {
      onWelcome: () => this.#membership.welcomed(),
      onRefused: (how) => this.#membership.refused(how),
    })
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
    while (!signal.aborted) {
      try {
        await this.#stream(signal)
      } catch (error) {
        if (!signal.aborted) this.refusals.push(error instanceof Error ? error.message : String(error))
      }
      await sleep(20)
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

beforeAll(async () => {
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
    tls: { ...files, clientCas: async () => hub.authority.pem },
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
    const first = roots
    const joinedBy = new Map(members.map((one) => [one, one.identity.certificate]))

    // The one that the hub is known by: told before it is shown.
    const following = await ofNewCa()
    const { ca } = following
    roots = `${first}${ca}`
    await until(({ identity }) => identity.roots === roots)
    await serve(following)

    // The one that signs them. Who renews while it is trusted and does not sign yet is served as well.
    const next = await hub.authority.rotate()
    moveMembersTo(23 * DAY_MS)
    await until((one) => one.served === one.identity.certificate && one.served !== joinedBy.get(one))
    await expect.poll(() => hub.authority.roots().find(({ id }) => id === next.id)?.state).toBe('active')
    moveMembersTo(46 * DAY_MS)
    await until(({ served }) => isSignedBy(served, next.pem))

    // All that the former one signed has ended, and the hub is known by the new one alone.
    roots = ca
    hubAheadMs = 32 * DAY_MS
    expect(hub.authority.roots().map(({ id }) => id)).toEqual([next.id])
    await until(({ identity }) => identity.roots === ca)
    await sleep(2_000) // the listener has heard of it
    const before = new Map(members.map((one) => [one, one.streams]))
    for (const one of members) one.reconnect()
    await until((one) => one.streams > (before.get(one) ?? 0))
    expect(refusals()).toEqual([])
  })

  it('that are replaced without an overlap are noticed, and the member says what helps', {
    timeout: LIMIT_MS,
  }, async () => {
    const [one] = members
    await serve(await ofNewCa())
    await sleep(2_000) // the listener has heard of it
    one?.reconnect()
    await expect.poll(() => one?.refusals.at(-1)).toMatch(/replaced without an overlap.*former CA beside the new one/)
  })
})
