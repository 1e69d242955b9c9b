import { randomBytes, X509Certificate } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CLUSTER_LABEL } from '#authority'
import { approve, STREAM_SIGNER } from '#certificates'
import type { JoinStep } from '#ingest'
import { CERTIFICATE_LIFE_ANNOTATION, certificateLifeIn, TRANSPORT_ANNOTATION } from '#kinds'
import { type KubeClient, secrets, whole } from '#kube'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { certificateRequest, keyId, newKey, proofOf } from '../../pipeline/agent/join/certificate-request.ts'
import { TestAuthority } from '../../pipeline/ingest/stream/test/certificates.ts'
import { aRequest, opensslRequest, signingRequest, subjectOfMember } from '../../platform/authority/test/requests.ts'
import { askersOf } from './askers.ts'
import { certificateRequests, keyOf, stateOf } from './certificate-request.ts'
import { accept, detach, MembershipError, refuse, revokeMember } from './decisions.ts'
import { HubJoins } from './join-desk.ts'
import {
  CERTIFICATES_ANNOTATION,
  certificatesOf,
  lostAuthority,
  type Members,
  managedClusterOf,
  managedClusters,
  revokedAt,
} from './members.ts'
import type { JoinFact } from './record.ts'
import { RequestIndex } from './request-index.ts'
import { aJoiningHub, aMachine, cluster, type JoiningHub, NAMESPACE, told } from './testing/joining-hub.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
let hub: JoiningHub
/** how far the clock of the hub is ahead */
let aheadMs = 0
beforeAll(async () => {
  const clock = { now: () => systemClock.now() + aheadMs, sleep: systemClock.sleep }
  hub = await aJoiningHub({ clock })
})
afterEach(() => {
  aheadMs = 0
})
afterAll(() => hub?.[Symbol.asyncDispose]())

let n = 0
const aName = () => cluster(`c${n++}`)
const over = (code: string, message: RegExp) =>
  expect.objectContaining({ kind: 'over', code, message: expect.stringMatching(message) })
const derOf = (pem: string) => new Uint8Array(Buffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64'))
const noCredentials = { revoke: async () => false }
const revoke = (name: ReturnType<typeof aName>) =>
  revokeMember({
    ...{ hub: hub.kube, cluster: name, tokens: hub.tokens },
    credentials: noCredentials as unknown as Parameters<typeof revokeMember>[0]['credentials'], // no agent has a token here
  })
const denied = (name: ReturnType<typeof aName>) => refuse({ hub: hub.kube, cluster: name })
const requestsOf = (name: string) =>
  hub.kube.listAll(certificateRequests, { labelSelector: `open-cluster-management.io/cluster-name=${name}` })
const joinedBy = (steps: readonly JoinStep[]) => {
  const last = steps.at(-1)
  if (last?.kind !== 'joined') throw new Error(`not joined: ${JSON.stringify(last)}`)
  return last
}

/** A cluster that has joined, with what its machine holds. */
async function aMember() {
  const name = aName()
  const { key, asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
  const [pending] = await told(hub, asked, 1)
  expect(pending?.kind).toBe('pending')
  await accept({ hub: hub.kube, cluster: name })
  const { certificate } = joinedBy(await told(hub, asked))
  return { name, key, asked, certificate }
}

function renewal(former: { name: string; key: string; certificate: string }, agent = 'a1') {
  const key = newKey()
  const csr = certificateRequest(key, { cluster: former.name, agent })
  const asked = {
    ...{ token: '', cluster: former.name, agent, csr, version: '1.2.3', address: '10.0.0.1' },
    certificate: new Uint8Array(new X509Certificate(former.certificate).raw),
    proof: new Uint8Array(proofOf(former.key, csr)),
  }
  return { key, asked }
}

describe('the desk of a hub', () => {
  it('makes a ManagedCluster and a request of a machine with a token, and gives the certificate when both were said yes to', async () => {
    const name = aName()
    const { key, asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    const [pending] = await told(hub, asked, 1)
    expect(pending).toMatchObject({ kind: 'pending', message: expect.stringContaining(`clusterpulse accept ${name}`) })
    expect(await hub.kube.get(managedClusters, { name })).toMatchObject({ spec: { hubAcceptsClient: false } })
    expect(await accept({ hub: hub.kube, cluster: name })).toEqual([
      expect.stringMatching(/is approved \(from 10\.0\.0\.1, key [0-9a-f]{16}/),
      `${name} is accepted as a member`,
    ])
    const { certificate, roots } = joinedBy(await told(hub, asked))
    const read = new X509Certificate(certificate)
    const group = `system:open-cluster-management:${name}`
    expect(read.subject.split('\n').toSorted()).toEqual([`CN=${group}:a1`, `O=${group}`])
    expect(read.subjectAltName).toBeUndefined()
    expect(read.checkPrivateKey((await import('node:crypto')).createPrivateKey(key))).toBe(true)
    expect(roots).toBe('ROOTS')
    expect(hub.facts.filter((fact) => fact.cluster === name).map(({ event }) => event)).toEqual([
      'join_asked',
      'member_accepted',
      'join_granted',
    ])
  })

  it.each([
    ['approved alone', false],
    ['accepted alone', true],
  ])('gives nothing to one that was %s, and says what is missing', async (_, isAccepted) => {
    const name = aName()
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await told(hub, asked, 1)
    if (isAccepted)
      await hub.kube.patch(managedClusters, { name }, { spec: { hubAcceptsClient: true } }, { kind: 'merge' })
    else {
      await accept({ hub: hub.kube, cluster: name })
      await hub.kube.patch(managedClusters, { name }, { spec: { hubAcceptsClient: false } }, { kind: 'merge' })
      await expect.poll(async () => stateOf((await requestsOf(name))[0]!).kind).toBe('signed')
      await expect.poll(() => hub.members.isAccepted(name)).toBe(false)
    }
    await expect
      .poll(async () => (await told(hub, asked, 1))[0])
      .toMatchObject({
        kind: 'pending',
        message: expect.stringMatching(isAccepted ? /must be approved/ : /hubAcceptsClient: true/),
      })
  })

  it('needs no second look where whoever made the token accepted the cluster, and a person where it was denied since', async () => {
    const name = aName()
    await hub.kube.create(managedClusters, managedClusterOf(name, { hubAcceptsClient: true }))
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS, { isApproved: true }))
    joinedBy(await told(hub, asked))
    const [request] = await requestsOf(name)
    expect(request?.status?.conditions).toMatchObject([
      { type: 'Approved', message: expect.stringContaining('made with --accept') },
    ])
    // The key is the one that showed the token first, as with every other.
    expect(await told(hub, aMachine(name, asked.token).asked)).toEqual([over('join_refused', /used already/)])
    expect(hub.facts.filter((fact) => fact.cluster === name).map(({ event }) => event)).toContain('join_granted')

    const other = aName()
    await hub.kube.create(managedClusters, managedClusterOf(other, { hubAcceptsClient: false }))
    const late = aMachine(other, await hub.tokens.issue(other, HOUR_MS, { isApproved: true }))
    expect(await told(hub, late.asked, 1)).toMatchObject([{ kind: 'pending' }])
    expect(stateOf((await requestsOf(other))[0]!).kind).toBe('pending')
  })

  it('is told when the trail has that it joined', async () => {
    let release: () => void = () => undefined
    const written = new Promise<void>((resolve) => {
      release = resolve
    })
    const facts: string[] = []
    const record = ({ event }: JoinFact) => {
      facts.push(event)
      return event === 'join_granted' ? written : Promise.resolve()
    }
    await using other = await aJoiningHub({ record })
    const name = aName()
    await other.kube.create(managedClusters, managedClusterOf(name, { hubAcceptsClient: true }))
    const { asked } = aMachine(name, await other.tokens.issue(name, HOUR_MS, { isApproved: true }))
    const steps: string[] = []
    const joined = (async () => {
      for await (const { kind } of other.desk.ask(asked, new AbortController().signal)) steps.push(kind)
    })()
    await expect.poll(() => facts).toContain('join_granted')
    expect(steps).not.toContain('joined')
    release()
    await joined
    expect(steps.at(-1)).toBe('joined')
  })

  it('answers the same question with the same certificate, as after a crash of the machine', async () => {
    const { name, asked, certificate } = await aMember()
    expect(joinedBy(await told(hub, asked)).certificate).toBe(certificate)
    expect(await requestsOf(name)).toHaveLength(1)
  })

  it('takes a token once, for one cluster, in its time; the trail has each refusal', async () => {
    const name = aName()
    const token = await hub.tokens.issue(name, HOUR_MS)
    await told(hub, aMachine(name, token).asked, 1)
    expect(await told(hub, aMachine(name, token).asked)).toEqual([over('join_refused', /used already/)])
    expect(await told(hub, aMachine('other', await hub.tokens.issue(name, HOUR_MS)).asked)).toEqual([
      over('join_refused', /another cluster/),
    ])
    // The second was made by a clock that was years ahead.
    for (const lifeMs of [-1, 87_600 * HOUR_MS])
      expect(await told(hub, aMachine(name, await hub.tokens.issue(name, lifeMs)).asked)).toEqual([
        over('join_refused', /expired/),
      ])
    expect(await told(hub, aMachine(name, randomBytes(32).toString('base64url')).asked)).toEqual([
      over('join_refused', /does not know/),
    ])
    const refusals = hub.facts.filter(
      ({ event, cluster: of }) => event === 'join_refused' && (of === name || of === 'other'),
    )
    expect(refusals.map(({ address }) => address)).toEqual(Array(5).fill('10.0.0.1'))
  })

  it('lets one of two keys spend a token that come at the same moment', async () => {
    const name = aName()
    const token = await hub.tokens.issue(name, HOUR_MS)
    const keys = Array.from({ length: 8 }, (_, index) => String(index))
    const { signal } = new AbortController()
    const spent = await Promise.all(
      keys.map(async (key) => {
        const shown = await hub.tokens.look(token, { cluster: name, key }, signal)
        if (typeof shown === 'string') return shown
        return hub.tokens.spend(token, { cluster: name, key, member: 'uid' }, shown, signal)
      }),
    )
    expect(spent.filter((one) => one === 'spent')).toHaveLength(1)
    expect(spent.filter((one) => one === 'used')).toHaveLength(7)
  })

  it('takes a token for the ManagedCluster that was asked for with it, and for none that takes its name', async () => {
    const former = await aMember()
    const { name } = former
    await hub.kube.delete(managedClusters, { name })
    await expect.poll(() => hub.members.get(name)).toBeUndefined()
    expect(await told(hub, former.asked)).toEqual([over('join_refused', /was deleted.*new join token/)])
    expect(await told(hub, renewal(former).asked)).toEqual([over('join_refused', /knows no ManagedCluster.*join anew/)])
    const next = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await told(hub, next.asked, 1)
    expect(await told(hub, renewal(former).asked)).toEqual([
      over('join_refused', /has handed no certificate out to this ManagedCluster c\d+: .*`clusterpulse connect c\d+`/),
    ])
    await accept({ hub: hub.kube, cluster: name })
    expect(joinedBy(await told(hub, next.asked)).certificate).not.toBe(former.certificate)
    // Though the cluster of its name is accepted.
    expect(await told(hub, former.asked)).toEqual([over('join_refused', /was deleted.*new join token/)])
    expect(await told(hub, renewal(former).asked)).toEqual([
      over('join_refused', /by another certificate, as after another machine joined .*`clusterpulse connect c\d+`/),
    ])
  })

  it('names the next step with each token that does not count', async () => {
    const name = aName()
    const token = await hub.tokens.issue(name, HOUR_MS)
    await told(hub, aMachine(name, token).asked, 1)
    const anew = `\`clusterpulse connect ${name}\` on the hub prints a new one`
    const faults = [
      [token, /used already, with another key, by another machine or .*`clusterpulse deny c\d+` turns that one down$/],
      [await hub.tokens.issue(name, -1), /has expired; .*--ttl/],
      [await hub.tokens.issue(cluster('other'), HOUR_MS), /is for another cluster than c\d+/],
      [randomBytes(32).toString('base64url'), /does not know this join token: it was revoked, is of another hub/],
    ] as const
    for (const [shown, words] of faults) {
      const steps = await told(hub, aMachine(name, shown).asked)
      expect(steps).toEqual([over('join_refused', words)])
      expect(steps).toEqual([expect.objectContaining({ message: expect.stringContaining(anew) })])
    }
  })

  it('warns whoever lets a second machine in under the name of a member, and nobody else', async () => {
    const { name, key } = await aMember()
    const second = aMachine(name, await hub.tokens.issue(name, HOUR_MS), { address: '10.6.6.6' })
    await told(hub, second.asked, 1)
    const [warning, ...done] = await accept({ hub: hub.kube, cluster: name })
    expect(warning).toMatch(
      new RegExp(
        `^warning: a machine is a member as ${name} already, with key ${keyId(key).slice(0, 16)}; .*is made to wait`,
      ),
    )
    expect(done[0]).toMatch(/is approved \(from 10\.6\.6\.6/)
    joinedBy(await told(hub, second.asked))
    const third = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await told(hub, third.asked, 1)
    const [again] = await accept({ hub: hub.kube, cluster: name })
    expect(again).toMatch(/ already, with one of the keys [0-9a-f]{16} and [0-9a-f]{16};/)
    for (const one of [key, second.key]) expect(again).toContain(keyId(one).slice(0, 16))
    await revoke(name)
    const right = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await expect.poll(() => hub.members.revocation(name)).toBeDefined()
    await told(hub, right.asked, 1)
    expect((await accept({ hub: hub.kube, cluster: name })).join()).not.toContain('warning')
  })

  it('lets a second machine in beside a member that is connected only where its request is named', async () => {
    const { name, key } = await aMember()
    const available = { type: 'ManagedClusterConditionAvailable', status: 'True', reason: 'Test', message: '' }
    const conditions = [{ ...available, lastTransitionTime: new Date().toISOString() }]
    const how = { kind: 'merge', subresource: 'status' } as const
    await hub.kube.patch(managedClusters, { name }, { status: { conditions } }, how)
    const second = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await told(hub, second.asked, 1)
    const asks = accept({ hub: hub.kube, cluster: name })
    await expect(asks).rejects.toMatchObject({
      code: 'several_requests',
      message: expect.stringMatching(/with key [0-9a-f]{16}, and is connected, and another one asks .*--request c\d+-/),
    })
    await expect(asks).rejects.toThrow(`with key ${keyId(key).slice(0, 16)}`)
    await expect(asks).rejects.toThrow(`key ${keyId(second.key).slice(0, 16)}`)
    const [warning] = await accept({ hub: hub.kube, cluster: name, request: keyId(second.key).slice(0, 16) })
    expect(warning).toMatch(/^warning: .*and is connected; where it is another one/)
    joinedBy(await told(hub, second.asked))
  })

  it('lets no second machine in beside a member with an agent of OCM that is connected, either', async () => {
    const name = aName()
    const asked = async (agent: string) => {
      const { pem } = await aRequest(subjectOfMember(name, agent))
      const { spec } = signingRequest(pem, {}, { [CLUSTER_LABEL]: name })
      const metadata = { name: `${name}-${agent}`, labels: { [CLUSTER_LABEL]: name } }
      const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' }
      await hub.kube.create(certificateRequests, { ...kind, metadata, spec } as never)
      return metadata.name
    }
    const annotations = { [TRANSPORT_ANNOTATION]: 'api' }
    await hub.kube.create(managedClusters, managedClusterOf(name, { hubAcceptsClient: false }, annotations))
    await asked('first')
    await accept({ hub: hub.kube, cluster: name })
    const condition = (type: string) => ({ type, status: 'True', reason: 'Test', message: '' })
    const conditions = ['ManagedClusterJoined', 'ManagedClusterConditionAvailable'].map((type) => ({
      ...condition(type),
      lastTransitionTime: new Date().toISOString(),
    }))
    const how = { kind: 'merge', subresource: 'status' } as const
    await hub.kube.patch(managedClusters, { name }, { status: { conditions } }, how)
    const second = await asked('second')
    const accepts = (request?: string) => accept({ hub: hub.kube, cluster: name, ...(request && { request }) })
    await expect(accepts()).rejects.toMatchObject({
      code: 'several_requests',
      message: expect.stringContaining(second),
    })
    expect((await accepts(second))[0]).toMatch(/^warning: a machine is a member .*and is connected/)
  })

  it('warns of no machine whose certificate is of an authority that was ended', async () => {
    await using own = await aJoiningHub()
    const name = aName()
    const lets = () => accept({ hub: own.kube, cluster: name, trusted: async () => own.authority.pem })
    const joins = async () => {
      const machine = aMachine(name, await own.tokens.issue(name, HOUR_MS))
      await told(own, machine.asked, 1)
      const said = (await lets()).filter((line) => line.startsWith('warning: '))
      joinedBy(await told(own, machine.asked))
      return { said, key: keyId(machine.key).slice(0, 16) }
    }
    const first = await joins()
    const [former] = own.authority.roots()
    await own.authority.rotate()
    await own.authority.end(former?.id ?? '')
    const second = await joins()
    expect([first.said, second.said]).toEqual([[], []])
    // Of those that the member lists, the first is not meant.
    const { said } = await joins()
    expect(said).toEqual([expect.stringContaining(`a machine is a member as ${name} already, with key ${second.key}`)])
  })

  it('has in the trail that a member ended because it was deleted, not denied', async () => {
    const [deleted, ended] = [await aMember(), await aMember()]
    await hub.kube.delete(managedClusters, { name: deleted.name })
    await denied(ended.name)
    const reasonOf = (name: string) =>
      hub.facts.find(({ event, cluster: of }) => event === 'member_ended' && of === name)?.reason
    await expect.poll(() => reasonOf(deleted.name)).toBe('the ManagedCluster was deleted')
    await expect.poll(() => reasonOf(ended.name)).toBe('hubAcceptsClient is no longer true')
  })

  it('follows no certificate of a ManagedCluster that is being deleted', async () => {
    const member = await aMember()
    const { name } = member
    const hold = (finalizers: readonly string[] | null) =>
      hub.kube.patch(managedClusters, { name }, { metadata: { finalizers } }, { kind: 'merge' })
    await hold(['example.com/held'])
    await hub.kube.delete(managedClusters, { name })
    await expect.poll(() => hub.members.get(name)?.metadata.deletionTimestamp).toBeDefined()
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_refused', /is being deleted.*join anew/)])
    await hold(null)
  })

  it.each([
    ['while it waits, by another member', true],
    ['while it waits, without a label', false],
  ])('takes no other request for its own that was given its name %s', async (_, isLabelled) => {
    const other = await aMember()
    const name = aName()
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await told(hub, asked, 1)
    await hub.kube.patch(managedClusters, { name }, { spec: { hubAcceptsClient: true } }, { kind: 'merge' })
    const [mine] = await requestsOf(name)
    if (!mine) throw new Error('no request')
    const waits = told(hub, asked)
    await hub.kube.delete(certificateRequests, { name: mine.metadata.name })
    const { pem } = await aRequest(subjectOfMember(other.name, 'a2'))
    const labels = isLabelled ? { 'open-cluster-management.io/cluster-name': other.name } : {}
    const { spec } = signingRequest(pem, {}, labels)
    const made = await hub.kube.create(certificateRequests, {
      ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
      ...{ metadata: { name: mine.metadata.name, labels }, spec: spec ?? mine.spec },
    })
    await approve(hub.kube, made, { reason: 'Test', message: '' })
    expect((await waits).at(-1)).toEqual(over('join_unavailable', /another request has the name|was deleted before/))
    await expect
      .poll(async () => (await told(hub, asked)).at(-1))
      .toEqual(
        over('join_unavailable', new RegExp(`another request has the name ${mine.metadata.name}.*kubectl delete`)),
      )
    expect(certificatesOf((await hub.kube.get(managedClusters, { name }))!)).toEqual([])
    await hub.kube.delete(certificateRequests, { name: mine.metadata.name })
    await expect.poll(async () => (await told(hub, asked, 1))[0]?.kind).toBe('pending')
    await accept({ hub: hub.kube, cluster: name })
    joinedBy(await told(hub, asked))
  })

  it('tells a machine that waits when its ManagedCluster is deleted', async () => {
    const name = aName()
    const waiting = told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked)
    await expect.poll(() => hub.members.get(name)).toBeDefined()
    await expect.poll(() => requestsOf(name)).toHaveLength(1)
    await hub.kube.delete(managedClusters, { name })
    expect((await waiting).at(-1)).toEqual(over('join_refused', /was deleted/))
  })

  it('answers a request that was approved and is sent again by somebody else with what nobody else can use', async () => {
    const member = await aMember()
    const replayed = joinedBy(await told(hub, { ...member.asked, address: '10.0.0.66' }))
    expect(replayed.certificate).toBe(member.certificate)
    expect(await requestsOf(member.name)).toHaveLength(1)
    const thief = renewal({ ...member, key: newKey(), certificate: replayed.certificate })
    expect(await told(hub, thief.asked)).toEqual([over('join_refused', /not signed with the key/)])
    const another = { ...member.asked, token: await hub.tokens.issue(cluster('other'), HOUR_MS) }
    expect(await told(hub, another)).toEqual([over('join_refused', /for another cluster/)])
  })

  it.each([
    ['RSA', ['rsa:2048']],
    ['Ed25519', ['ed25519']],
  ])(
    'takes no request of a key on no elliptic curve (%s), whose next certificate could not be asked for',
    async (_, key) => {
      const name = aName()
      const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
      const group = `system:open-cluster-management:${name}`
      const csr = derOf(opensslRequest(`/O=${group}/CN=${group}:a1`, { key }))
      expect(await told(hub, { ...asked, csr })).toEqual([over('join_refused', /elliptic curve/)])
    },
  )

  it('keeps no token, only its hash', async () => {
    const token = await hub.tokens.issue(aName(), HOUR_MS)
    const all = await hub.kube.listAll(secrets, { namespace: NAMESPACE })
    const text = all.flatMap(({ data }) =>
      Object.values((data ?? {}) as Record<string, string>).map((one) => Buffer.from(one, 'base64').toString()),
    )
    expect(text.join()).not.toContain(token)
  })

  it.each([
    ['another cluster in its subject', { cluster: 'other', agent: 'a1' }],
    ['another agent in its subject', { cluster: '', agent: 'a2' }],
  ])('refuses a request with %s, and makes nothing of it', async (_, subject) => {
    const name = aName()
    const csr = certificateRequest(newKey(), { ...subject, cluster: subject.cluster || name })
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS), { csr })
    expect(await told(hub, asked)).toEqual([expect.objectContaining({ kind: 'over', code: 'join_refused' })])
    expect(await hub.kube.get(managedClusters, { name })).toBeUndefined()
    expect(await requestsOf(name)).toEqual([])
  })

  it.each([
    ['no bytes', new Uint8Array()],
    ['random bytes', new Uint8Array(randomBytes(300))],
    ['too many bytes', new Uint8Array(100_000)],
  ])('refuses %s in place of a request', async (_, csr) => {
    const name = aName()
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS), { csr })
    expect(await told(hub, asked)).toEqual([expect.objectContaining({ kind: 'over', code: 'join_refused' })])
  })

  it('shows both of two machines that ask to be one cluster, and signs for none until a person chooses', async () => {
    const name = aName()
    const machines = [
      aMachine(name, await hub.tokens.issue(name, HOUR_MS), { address: '10.0.0.1' }),
      aMachine(name, await hub.tokens.issue(name, HOUR_MS), { address: '10.6.6.6' }),
    ]
    for (const { asked } of machines) await told(hub, asked, 1)
    const choosing = accept({ hub: hub.kube, cluster: name })
    await expect(choosing).rejects.toThrow(MembershipError)
    await expect(choosing).rejects.toThrow(/2 machines ask/)
    await expect(choosing).rejects.toThrow(/from 10\.0\.0\.1, key [0-9a-f]{16}/)
    await expect(choosing).rejects.toThrow(/from 10\.6\.6\.6, key [0-9a-f]{16}/)
    expect((await requestsOf(name)).map((one) => stateOf(one).kind)).toEqual(['pending', 'pending'])
    const mine = (await requestsOf(name)).find((one) => keyOf(one) === keyId(machines[0]!.key))
    await accept({ hub: hub.kube, cluster: name, request: mine?.metadata.name ?? '' })
    expect(joinedBy(await told(hub, machines[0]!.asked)).kind).toBe('joined')
    expect((await told(hub, machines[1]!.asked, 1))[0]?.kind).toBe('pending')

    // By the key that the machine says, and not by less of it than it says.
    const key = keyId(machines[1]!.key).slice(0, 16)
    await expect(accept({ hub: hub.kube, cluster: name, request: key.slice(0, 8) })).rejects.toThrow(/no request/)
    expect(await accept({ hub: hub.kube, cluster: name, request: key })).toEqual(
      expect.arrayContaining([expect.stringContaining(`key ${key}`)]),
    )
    expect(joinedBy(await told(hub, machines[1]!.asked)).kind).toBe('joined')
  })

  it('turns down the one of two requests that is named, and lists who waits with address and key', async () => {
    const name = aName()
    const index = new RequestIndex({ hub: hub.kube, logger: silentLogger, clock: systemClock })
    index.start()
    for (const address of ['10.0.0.1', '10.6.6.6'])
      await told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS), { address }).asked, 1)
    const waiting = () => index.requests().filter(({ cluster }) => cluster === name)
    await expect
      .poll(() =>
        waiting()
          .map(({ address }) => address)
          .sort(),
      )
      .toEqual(['10.0.0.1', '10.6.6.6'])
    expect(new Set(waiting().map(({ key }) => key)).size).toBe(2)
    expect(waiting()[0]).toMatchObject({ key: expect.stringMatching(/^[0-9a-f]{64}$/), agentVersion: '1.2.3' })
    const [thief] = waiting().filter(({ address }) => address === '10.6.6.6')
    const refused = await refuse({ hub: hub.kube, cluster: name, request: thief?.name ?? '' })
    expect(refused).toEqual([
      expect.stringMatching(/is denied \(from 10\.6\.6\.6/),
      expect.stringMatching(/1 other waits still; cluster .* itself is no member, as before/),
    ])
    await expect.poll(() => waiting().map(({ address }) => address)).toEqual(['10.0.0.1'])
    await expect(refuse({ hub: hub.kube, cluster: name, request: 'none' })).rejects.toThrow(/no request none/)
    await index[Symbol.asyncDispose]()
  })

  it('says where a machine comes from on its ManagedCluster alone, which no other member reads, and only while it waits', async () => {
    const name = aName()
    const machines = ['192.0.2.7', '192.0.2.8'].map(async (address) =>
      aMachine(name, await hub.tokens.issue(name, HOUR_MS), { address }),
    )
    const [first, second] = await Promise.all(machines)
    for (const one of [first, second]) await told(hub, one!.asked, 1)
    const askers = async () => askersOf(await hub.kube.get(managedClusters, { name }))
    expect((await askers()).map(({ key, address, version }) => [key, address, version])).toEqual([
      [keyId(second!.key), '192.0.2.8', '1.2.3'],
      [keyId(first!.key), '192.0.2.7', '1.2.3'],
    ])
    const requests = JSON.stringify(await requestsOf(name))
    expect(requests).not.toMatch(/192\.0\.2|1\.2\.3/)
    await accept({ hub: hub.kube, cluster: name, request: keyId(first!.key) })
    joinedBy(await told(hub, first!.asked))
    expect((await askers()).map(({ address }) => address)).toEqual(['192.0.2.8'])
    // Where a machine moved meanwhile, the newer address counts.
    await told(hub, { ...second!.asked, address: '192.0.2.9' }, 1)
    expect((await askers()).map(({ address }) => address)).toEqual(['192.0.2.9'])
    await revoke(name)
    expect(await askers()).toEqual([])
  })

  it('is not kept out, nor are people, by requests that others label with a cluster', async () => {
    const name = aName()
    const labels = { 'open-cluster-management.io/cluster-name': name }
    const forged = async (one: number) => {
      const { pem } = await aRequest(subjectOfMember('another', 'a1'))
      const { spec } = signingRequest(pem)
      const { username: _, groups: __, ...given } = spec ?? {}
      const metadata = { name: `${name}-forged-${one}`, labels }
      await hub.kube.create(certificateRequests, { metadata, spec: given } as never)
    }
    await Promise.all(Array.from({ length: 12 }, (_, one) => forged(one)))
    const index = new RequestIndex({ hub: hub.kube, logger: silentLogger, clock: systemClock })
    index.start()
    await expect.poll(async () => (await requestsOf(name)).length).toBe(12)
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    await expect.poll(async () => (await told(hub, asked, 1))[0]?.kind).toBe('pending')
    const shown = () => index.requests().filter((one) => one.cluster === name)
    await expect.poll(() => shown().map(({ address }) => address)).toEqual(['10.0.0.1'])
    await index[Symbol.asyncDispose]()

    await expect(accept({ hub: hub.kube, cluster: name, request: `${name}-forged-3` })).rejects.toThrow(
      `request ${name}-forged-3 is none of ${name}, though its label says so: the subject names cluster "another"`,
    )
    const done = await accept({ hub: hub.kube, cluster: name })
    expect(done[0]).toMatch(/is approved \(from 10\.0\.0\.1/)
    expect(
      done.filter((line) => /forged.* is left alone, as it can never be signed: .*"another"/.test(line)),
    ).toHaveLength(10)
    expect(done).toContain('and 2 more of that sort')
    joinedBy(await told(hub, asked))
    const forgeries = (await requestsOf(name)).filter(({ metadata }) => metadata.name.includes('forged'))
    expect(new Set(forgeries.map((one) => stateOf(one).kind))).toEqual(new Set(['pending']))
  })

  it('accepts the ManagedCluster it looked at, and no other that took its name meanwhile', async () => {
    const name = aName()
    await told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked, 1)
    const racing = new Proxy(hub.kube, {
      get(kube, what) {
        const member: unknown = Reflect.get(kube, what)
        if (what !== 'listAll') return typeof member === 'function' ? member.bind(kube) : member
        return async (...words: Parameters<KubeClient['listAll']>) => {
          const found = await kube.listAll(...words)
          await kube.delete(managedClusters, { name })
          await kube.create(managedClusters, managedClusterOf(name, { hubAcceptsClient: false }))
          return found
        }
      },
    })
    await expect(accept({ hub: racing, cluster: name })).rejects.toThrow(/uid/i)
    expect(await hub.kube.get(managedClusters, { name })).toMatchObject({ spec: { hubAcceptsClient: false } })
  })

  it('accepts nobody who is leaving', async () => {
    const { name } = await aMember()
    const finalizers = ['example.com/held']
    await hub.kube.patch(managedClusters, { name }, { metadata: { finalizers } }, { kind: 'merge' })
    await detach({ hub: hub.kube, cluster: name })
    expect(await detach({ hub: hub.kube, cluster: name })).toEqual([`${name} is being detached already`])
    await expect(accept({ hub: hub.kube, cluster: name })).rejects.toMatchObject({
      code: 'member_leaving',
      message: expect.stringMatching(/is being detached: .* it can ask anew, with a new join token/),
    })
    await hub.kube.patch(managedClusters, { name }, { metadata: { finalizers: null } }, { kind: 'merge' })
  })

  it('takes a member off the hub, once, and knows none that is none', async () => {
    const { name } = await aMember()
    expect(await detach({ hub: hub.kube, cluster: name })).toEqual([expect.stringMatching(/is being detached/)])
    expect(await hub.kube.get(managedClusters, { name })).toBeUndefined()
    await expect(detach({ hub: hub.kube, cluster: name })).rejects.toThrow(/knows no cluster/)
  })

  it('takes no eleventh undecided request of a cluster', async () => {
    const name = aName()
    for (let one = 0; one < 10; one++) await told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked, 1)
    expect(await told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked)).toEqual([
      over('join_busy', /10 requests/),
    ])
    await refuse({ hub: hub.kube, cluster: name })
    expect((await told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked, 1))[0]?.kind).toBe('pending')
  })

  it('takes no more of them that come at the same moment', async () => {
    const name = aName()
    const { key, asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    const again = () => ({ ...asked, csr: certificateRequest(key, { cluster: name, agent: 'a1' }) })
    const steps = await Promise.all(Array.from({ length: 30 }, () => told(hub, again(), 1)))
    expect(steps.filter(([step]) => step?.kind === 'pending')).toHaveLength(10)
    expect(await requestsOf(name)).toHaveLength(10)
  })

  it('tells a machine that waits when it is denied', async () => {
    const name = aName()
    const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    const waiting = told(hub, asked)
    await expect.poll(() => requestsOf(name)).toHaveLength(1)
    await refuse({ hub: hub.kube, cluster: name })
    expect((await waiting).at(-1)).toEqual(
      over('join_denied', /denied by clusterpulse deny; .*new join token \(`clusterpulse connect c\d+`/),
    )
    expect(hub.facts).toContainEqual(expect.objectContaining({ event: 'join_denied', cluster: name }))
  })

  it('bounds what waits, of one address and of all', async () => {
    await using small = await aJoiningHub({ maxPerAddress: 2, maxInAll: 3 })
    const stop = new AbortController()
    const wait = async (address: string) => {
      const name = aName()
      const { asked } = aMachine(name, await small.tokens.issue(name, HOUR_MS), { address })
      const steps = small.desk.ask(asked, stop.signal)[Symbol.asyncIterator]()
      return (await steps.next()).value as JoinStep
    }
    expect((await wait('10.0.0.1')).kind).toBe('pending')
    expect((await wait('10.0.0.1')).kind).toBe('pending')
    expect(await wait('10.0.0.1')).toEqual(over('join_busy', /too many/))
    expect((await wait('10.0.0.2')).kind).toBe('pending')
    expect(await wait('10.0.0.3')).toEqual(over('join_busy', /too many/))
    stop.abort()
  })
})

describe('the certificate of a member', () => {
  it('counts from the write that notes how long it lives', async () => {
    const { name, certificate } = await aMember()
    const { validFrom, validTo } = new X509Certificate(certificate)
    const stored = await hub.kube.get(whole(managedClusters), { name })
    expect(certificatesOf(stored!)).toHaveLength(1)
    const noted = certificateLifeIn(stored?.metadata.annotations?.[CERTIFICATE_LIFE_ANNOTATION])
    const issuer = hub.authority.roots()[0]?.id.slice(0, 16)
    expect(noted).toEqual({ from: Date.parse(validFrom), until: Date.parse(validTo), issuer })
  })

  it('is followed by the next one, for another key, by proof of the former', async () => {
    const member = await aMember()
    const { asked } = renewal(member)
    const next = joinedBy(await told(hub, asked))
    expect(next.certificate).not.toBe(member.certificate)
    expect(hub.facts.filter(({ cluster: of }) => of === member.name).at(-1)?.event).toBe('certificate_renewed')
  })

  it.each([
    [
      'without the key of it',
      (asked: ReturnType<typeof renewal>['asked']) => ({ ...asked, proof: new Uint8Array(70) }),
    ],
    ['for another agent', (asked: ReturnType<typeof renewal>['asked']) => ({ ...asked, agent: 'a2' })],
    ['for another cluster', (asked: ReturnType<typeof renewal>['asked']) => ({ ...asked, cluster: 'other' })],
    [
      'of another authority',
      (asked: ReturnType<typeof renewal>['asked']) => ({ ...asked, certificate: new Uint8Array(randomBytes(200)) }),
    ],
  ])('is not followed by another one %s', async (_, change) => {
    const { asked } = renewal(await aMember())
    expect(await told(hub, change(asked))).toEqual([expect.objectContaining({ kind: 'over', code: 'join_refused' })])
  })

  it('that an older copy of the hub does not know is followed by the next one, and one that it knew of before is not', async () => {
    const member = await aMember()
    const known = (await hub.kube.get(managedClusters, { name: member.name }))?.metadata.annotations ?? {}
    aheadMs = HOUR_MS
    const second = renewal(member)
    const next = { ...member, key: second.key, certificate: joinedBy(await told(hub, second.asked)).certificate }
    // The copy knows the first one alone.
    const putBack = (annotations: Readonly<Record<string, string | null>>) =>
      hub.kube.patch(managedClusters, { name: member.name }, { metadata: { annotations } }, { kind: 'merge' })
    const knows = (fingerprint: string) => () =>
      hub.members.get(cluster(member.name))?.metadata.annotations?.[CERTIFICATES_ANNOTATION] === fingerprint
    await putBack(known)
    await expect.poll(knows(known[CERTIFICATES_ANNOTATION] ?? '')).toBe(true)
    joinedBy(await told(hub, renewal(next).asked))
    // Another one is known since, as after a join by another machine: what is older than that counts no more.
    const life = certificateLifeIn(known[CERTIFICATE_LIFE_ANNOTATION])
    if (!life) throw new Error('no life is known')
    const later = new Date(life.from + 2 * HOUR_MS).toISOString()
    const other = 'a'.repeat(64)
    await putBack({
      [CERTIFICATES_ANNOTATION]: other,
      [CERTIFICATE_LIFE_ANNOTATION]: `${later}/${new Date(life.until).toISOString()}`,
    })
    await expect.poll(knows(other)).toBe(true)
    expect((await told(hub, renewal(next).asked)).at(-1)).toEqual(over('join_refused', /by another certificate/))
    const revoked = revokedAt(systemClock.now())
    await putBack({
      [CERTIFICATES_ANNOTATION]: revoked,
      [CERTIFICATE_LIFE_ANNOTATION]: known[CERTIFICATE_LIFE_ANNOTATION] ?? null,
    })
    await expect.poll(knows(revoked)).toBe(true)
    expect((await told(hub, renewal(next).asked)).at(-1)).toEqual(over('join_refused', /is revoked/))
  })

  it('is followed by so many within an hour and no more, whoever asks for the next ones', async () => {
    const member = await aMember()
    for (let one = 1; one < 30; one++) {
      const { key, asked } = renewal(member)
      Object.assign(member, { key, certificate: joinedBy(await told(hub, asked)).certificate })
    }
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_busy', /30 requests .* within an hour/)])
    expect(await requestsOf(member.name)).toHaveLength(30)
  })

  /** Sets the clock of the hub to so long after the end of the certificate. */
  const isPast = ({ certificate }: { certificate: string }, ms: number) => {
    aheadMs = Date.parse(new X509Certificate(certificate).validTo) + ms - systemClock.now()
  }

  it.each([
    ['a minute', 60_000],
    ['a month less a minute', 30 * DAY_MS - 60_000],
  ])('is followed by the next one when it ended %s ago, by its key', async (_, ms) => {
    const member = await aMember()
    isPast(member, ms)
    const { asked } = renewal(member)
    const next = new X509Certificate(joinedBy(await told(hub, asked)).certificate)
    expect(Date.parse(next.validTo)).toBeGreaterThan(systemClock.now() + aheadMs + 29 * DAY_MS)
    expect(await told(hub, { ...renewal(member).asked, proof: asked.proof })).toEqual([
      over('join_refused', /not signed with the key/),
    ])
  })

  it('is followed by no other when it ended more than a month ago, with a sentence that says what helps', async () => {
    const member = await aMember()
    isPast(member, 30 * DAY_MS + 60_000)
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_refused', /more than 30 days ago.*join anew/)])
    expect(await requestsOf(member.name)).toHaveLength(1)
    expect(hub.facts.at(-1)).toMatchObject({ event: 'join_refused', cluster: member.name })
  })

  it.each([
    ['denied', denied, /does not accept the cluster any more; `clusterpulse accept c\d+` on the hub/],
    ['revoked', revoke, /is revoked.*join anew/],
    [
      'revoked and accepted anew',
      async (name: ReturnType<typeof aName>) => {
        await revoke(name)
        await accept({ hub: hub.kube, cluster: name })
      },
      /is revoked/,
    ],
  ])('that has ended is followed by no other where the member was %s', async (_, end, words) => {
    const member = await aMember()
    await end(member.name)
    const isAccepted = (await hub.kube.get(managedClusters, { name: member.name }))?.spec?.hubAcceptsClient
    await expect.poll(() => hub.members.isAccepted(member.name)).toBe(isAccepted)
    await expect.poll(() => hub.members.revocation(member.name) !== undefined).toBe(end !== denied)
    isPast(member, DAY_MS)
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_refused', words)])
  })

  it.each([
    ['ahead', HOUR_MS],
    ['behind', -HOUR_MS],
  ])(
    'is given and followed where the clock of the hub goes an hour %s of what it was when the token was made',
    async (_, ms) => {
      const name = aName()
      const token = await hub.tokens.issue(name, 2 * HOUR_MS)
      aheadMs = ms
      const { key, asked } = aMachine(name, token)
      await told(hub, asked, 1)
      await accept({ hub: hub.kube, cluster: name })
      const { certificate } = joinedBy(await told(hub, asked))
      aheadMs = -ms
      expect(joinedBy(await told(hub, renewal({ name, key, certificate }).asked)).certificate).not.toBe(certificate)
    },
  )

  it('is not followed by another one where the member was revoked, also after it was accepted anew', async () => {
    const member = await aMember()
    expect(await revoke(member.name)).toEqual([
      expect.stringMatching(/^1 join token/),
      expect.stringMatching(/no certificate .* counts any more/),
    ])
    await expect.poll(() => hub.members.isAccepted(member.name)).toBe(false)
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_refused', /is revoked/)])
    expect((await accept({ hub: hub.kube, cluster: member.name })).join()).toMatch(/were revoked.*connect/)
    await expect.poll(() => hub.members.isAccepted(member.name)).toBe(true)
    expect(await told(hub, renewal(member).asked)).toEqual([over('join_refused', /is revoked/)])
    const annotations = { 'clusterpulse.io/transport': 'api' }
    await hub.kube.patch(managedClusters, { name: member.name }, { metadata: { annotations } }, { kind: 'merge' })
    expect((await accept({ hub: hub.kube, cluster: member.name })).join()).toMatch(
      /were revoked.*delete secret hub-kubeconfig-secret.*bootstrap-kubeconfig/,
    )
    expect(hub.facts.filter(({ cluster: of }) => of === member.name).map(({ event }) => event)).toContain(
      'member_revoked',
    )
  })
})

describe('a hub whose CA was replaced', () => {
  const deskWith = (roots: string) => {
    const desk = new HubJoins({
      ...{ hub: hub.kube, tokens: hub.tokens, members: hub.members, clock: systemClock, logger: silentLogger },
      ...{ clientRoots: async () => roots, serverRoots: () => '', record: () => Promise.resolve() },
    })
    desk.start()
    return { ...hub, desk }
  }

  it('without an overlap says to its members what helps', async () => {
    const member = await aMember()
    const { asked } = renewal(member)
    const { pem } = await TestAuthority.make('another')
    const other = deskWith(pem)
    const why = (roots: string | undefined) => lostAuthority(hub.members.get(member.name)!, roots)
    expect([why(hub.authority.pem), why(undefined)]).toEqual([undefined, undefined])
    expect(why(pem)).toMatch(/authority that this hub no longer has; .*join anew.*`clusterpulse connect/)
    expect(await told(other, asked)).toEqual([over('join_refused', /replaced without an overlap.*join anew.*restore/)])
    await other.desk[Symbol.asyncDispose]()
  })

  it('and does not know yet by which refuses nobody for good', async () => {
    const { asked } = renewal(await aMember())
    const other = deskWith('')
    expect(await told(other, asked)).toEqual([over('join_unavailable', /does not know now/)])
    await other.desk[Symbol.asyncDispose]()
  })
})

describe('a hub that cannot sign', () => {
  it('says so and why to whoever was accepted, and goes on when it can', async () => {
    let fault: string | undefined = 'the Secret of its CA is cut'
    const desk = new HubJoins({
      ...{ hub: hub.kube, tokens: hub.tokens, members: hub.members, clock: systemClock, logger: silentLogger },
      ...{ clientRoots: async () => '', serverRoots: () => '', record: () => Promise.resolve() },
      ...{ signer: STREAM_SIGNER, signingFault: async () => fault },
    })
    desk.start()
    const name = aName()
    const steps: JoinStep[] = []
    const ended = new AbortController()
    const asking = (async () => {
      const { asked } = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
      for await (const step of desk.ask(asked, ended.signal)) steps.push(step)
    })()
    await expect.poll(() => requestsOf(name)).toHaveLength(1)
    await approve(hub.kube, (await requestsOf(name))[0]!, { reason: 'Test', message: 'by kubectl' })
    await accept({ hub: hub.kube, cluster: name })
    await expect.poll(() => steps.at(-1)).toMatchObject({ message: expect.stringMatching(/cannot sign.*is cut$/) })
    fault = undefined
    await hub.kube.patch(managedClusters, { name }, { metadata: { labels: { a: 'b' } } }, { kind: 'merge' })
    await expect.poll(() => steps.at(-1)).toMatchObject({ message: expect.stringMatching(/about to be signed$/) })
    ended.abort()
    await asking
    await desk[Symbol.asyncDispose]()
  })
})

describe('a revocation', () => {
  it('ends what was asked before, also a request that was signed and waits for the cluster to be accepted', async () => {
    const name = aName()
    const stolen = told(hub, aMachine(name, await hub.tokens.issue(name, HOUR_MS)).asked)
    await expect.poll(() => requestsOf(name)).toHaveLength(1)
    await approve(hub.kube, (await requestsOf(name))[0]!, { reason: 'Test', message: 'by kubectl' })
    await expect.poll(async () => stateOf((await requestsOf(name))[0]!).kind).toBe('signed')
    await revoke(name)
    await expect.poll(() => hub.members.revocation(name)).toBeDefined()
    const rightful = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
    const joining = told(hub, rightful.asked)
    await expect.poll(() => requestsOf(name)).toHaveLength(2)
    await accept({ hub: hub.kube, cluster: name })
    expect(joinedBy(await joining).kind).toBe('joined')
    expect((await stolen).at(-1)).toEqual(over('join_refused', /revoked/))
  })

  it('is not undone by a certificate that is handed out where nobody has heard of it yet', async () => {
    const member = await aMember()
    const { name } = member
    const before = hub.members.get(name)!
    await hub.kube.patch(
      managedClusters,
      { name },
      { metadata: { annotations: { [CERTIFICATES_ANNOTATION]: revokedAt(Date.now()) } } },
      { kind: 'merge' },
    )
    const behind = {
      ...{ isSynced: true, get: () => before, isAccepted: () => true, revocation: () => undefined },
      counts: (_: string, fingerprint: string) => certificatesOf(before).includes(fingerprint),
      fault: () => undefined,
      onChange: () => () => undefined,
    } as unknown as Members // as it looks a moment before the revocation arrives
    let handedOut = 0
    const patch: typeof hub.kube.patch = (...parameters) =>
      hub.kube.patch(...parameters).finally(() => {
        if (parameters[0].plural === managedClusters.plural) handedOut++
      })
    const watched = new Proxy(hub.kube, {
      get: (kube, name) => {
        if (name === 'patch') return patch
        const value: unknown = Reflect.get(kube, name, kube)
        return typeof value === 'function' ? value.bind(kube) : value
      },
    })
    await using desk = new HubJoins({
      ...{ hub: watched, tokens: hub.tokens, members: behind, clock: systemClock, logger: silentLogger },
      ...{ clientRoots: async () => hub.authority.pem, serverRoots: () => '', record: () => Promise.resolve() },
    })
    desk.start()
    const stop = new AbortController()
    const renewing = (async () => {
      for await (const step of desk.ask(renewal(member).asked, stop.signal)) if (step.kind !== 'pending') return step
      return undefined
    })()
    await expect.poll(() => handedOut).toBeGreaterThan(0)
    stop.abort()
    expect(await renewing).toBeUndefined()
    const after = await hub.kube.get(managedClusters, { name })
    expect(after?.metadata.annotations?.[CERTIFICATES_ANNOTATION]).toMatch(/^revoked-/)
  })
})

describe('deciding', () => {
  it('makes no member of a name whose namespace is the system’s, however it asks', async () => {
    await hub.kube.create(managedClusters, managedClusterOf('kube-foo', { hubAcceptsClient: false }))
    await expect(accept({ hub: hub.kube, cluster: cluster('kube-foo') })).rejects.toThrow(
      /no member may be called kube-foo/,
    )
    expect((await hub.kube.get(managedClusters, { name: 'kube-foo' }))?.spec?.hubAcceptsClient).toBe(false)
    await hub.kube.delete(managedClusters, { name: 'kube-foo' })
  })

  it('on a cluster nobody knows says so', async () => {
    const name = aName()
    await expect(accept({ hub: hub.kube, cluster: name })).rejects.toThrow(/knows no cluster/)
    await expect(refuse({ hub: hub.kube, cluster: name })).rejects.toThrow(/knows no cluster/)
    await expect(revoke(name)).rejects.toThrow(/knows no cluster/)
  })

  it('a second time changes nothing, and says so', async () => {
    const { name } = await aMember()
    expect(await accept({ hub: hub.kube, cluster: name })).toEqual([`${name} was accepted already`])
    await refuse({ hub: hub.kube, cluster: name })
    expect(await refuse({ hub: hub.kube, cluster: name })).toEqual([`no request of ${name} waits, and it is no member`])
  })
})
