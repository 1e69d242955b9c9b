import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, type ApiObject, ApiServer, listenApi } from '#apiserver'
import { ocmKinds } from '#kinds'
import { createKubeClient, type KubeClient } from '#kube'
import { type MemberAct, parseClusterName, systemClock } from '#model'
import { aRequest, signingRequest, subjectOfMember } from '../../platform/authority/test/requests.ts'
import { certificateRequests, stateOf } from './certificate-request.ts'
import { accept, type DecidingOptions, detach, refuse, revokeMember } from './decisions.ts'
import { JoinTokens } from './join-tokens.ts'
import { AUDITED_GROUPS, auditEntryOfWrite } from './member-writes.ts'
import { managedClusters } from './members.ts'

const NAMESPACE = 'clusterpulse'
const cluster = parseClusterName('east')

/** What was decided: about which request, where it is about one. */
type Decided = readonly [what: string, request: string | undefined]

let server: ApiServer
let listener: ApiListener
let hub: KubeClient
/** as the trail has them that hears every write to the API, whoever writes */
const written: Decided[] = []
/** route, id and reason of each */
const entries: (readonly [string, string, string])[] = []
const told: MemberAct[] = []

beforeAll(async () => {
  server = await ApiServer.open({
    storage: { kind: 'memory' },
    name: 'hub',
    observer: {
      groups: AUDITED_GROUPS,
      async wrote(write) {
        const { route, requestId = '', reason = '' } = auditEntryOfWrite(write, systemClock.now()) ?? {}
        if (route) entries.push([route, requestId, reason])
        if (route && !/_made$|_declared$/.test(route))
          written.push([route, route.startsWith('request') ? requestId : undefined])
      },
      refused: () => undefined,
    },
  })
  for (const kind of ocmKinds) await server.objects.put(kind.crd() as unknown as ApiObject)
  await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } })
  listener = await listenApi({
    tokens: [{ token: 't', user: 'system:serviceaccount:clusterpulse:clusterpulse-api', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
  })
  hub = createKubeClient({
    ...{ server: listener.url, ca: listener.caPem, verifyTls: true, credentials: { kind: 'token', token: 't' } },
  })
  await hub.create(managedClusters, { metadata: { name: cluster } })
})
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await listener?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

async function asks(name: string): Promise<void> {
  const { pem } = await aRequest(subjectOfMember(cluster, 'a1'))
  const { metadata, spec } = signingRequest(pem)
  const { username: _, groups: __, ...given } = spec ?? {}
  await hub.create(certificateRequests, { metadata: { name, ...metadata }, spec: given } as never) // the API adds who asks
}

/** Of one decision: its acts, and what the API was written. */
async function decided(
  decide: (what: DecidingOptions) => Promise<readonly string[]>,
): Promise<{ acts: Decided[]; writes: Decided[]; words: string[]; said: readonly string[] }> {
  const [before, first] = [written.length, told.length]
  const said = await decide({ hub, cluster, did: (act) => void told.push(act) })
  const acts = told.slice(first)
  return {
    acts: acts.map(({ act, request }): Decided => [act, request]),
    writes: written.slice(before),
    words: acts.map(({ words }) => words),
    said,
  }
}

const revoke = (what: DecidingOptions) =>
  revokeMember({
    ...what,
    tokens: new JoinTokens({ hub, namespace: NAMESPACE, clock: systemClock }),
    credentials: { revoke: async () => false } as unknown as Parameters<typeof revokeMember>[0]['credentials'], // none has a token
  })

describe('the acts of a decision', () => {
  it('are those that the trail has where somebody writes the same to the API, in the same order', async () => {
    await asks('one')
    const accepted = await decided(accept)
    expect(accepted.acts).toEqual([
      ['request_approved', 'one'],
      ['cluster_accepted', undefined],
    ])
    expect(accepted.words).toEqual([expect.stringMatching(/^request one is approved/), 'east is accepted as a member'])
    await asks('two')
    const denied = await decided(refuse)
    expect(denied.acts).toEqual([
      ['request_denied', 'two'],
      ['cluster_denied', undefined],
    ])
    expect(denied.said.at(-1)).toMatch(/^ManagedCluster east stays; to undo: .*accept east.*comes back by itself/)
    await asks('three')
    const revoked = await decided(revoke)
    expect(revoked.acts).toEqual([
      ['cluster_revoked', undefined],
      ['request_denied', 'one'], // which was approved, and that nobody signed
      ['request_denied', 'three'],
    ])
    const detached = await decided(detach)
    expect(detached.acts).toEqual([['cluster_deleted', undefined]])
    for (const { acts, writes } of [accepted, denied, revoked, detached]) expect(acts).toEqual(writes)
  })

  it('are none where nothing changes', async () => {
    await hub.create(managedClusters, { metadata: { name: cluster }, spec: { hubAcceptsClient: true } })
    expect((await decided(accept)).acts).toEqual([])
  })

  it('that turns a request down come with what becomes of the cluster, and what undoes it', async () => {
    const out = { spec: { hubAcceptsClient: false } }
    await hub.patch(managedClusters, { name: cluster }, out, { kind: 'merge' })
    for (const name of ['this', 'that']) await asks(name)
    const one = await decided((what) => refuse({ ...what, request: 'this' }))
    expect(one.said.at(-1)).toMatch(
      /^of the requests of east 1 other waits still; cluster east itself is no member, as/,
    )
    const outside = await decided(refuse)
    expect(outside.acts).toEqual([['request_denied', 'that']])
    expect(outside.said.at(-1)).toMatch(
      /^cluster east is no member, and has no rights.*stays, until .*detach east.*asks anew \(`clusterpulse connect east`.*accept east/,
    )
    expect((await decided(refuse)).said).toEqual(['no request of east waits, and it is no member'])
  })

  it('about a cluster that is being detached say so, and of nothing that it could be undone', async () => {
    const write = (body: object) => hub.patch(managedClusters, { name: cluster }, body, { kind: 'merge' })
    await write({ metadata: { finalizers: ['example.com/held'] }, spec: { hubAcceptsClient: true } })
    for (const name of ['these', 'those']) await asks(name)
    await decided(detach)
    const leaving =
      /east is being detached: what belongs to it is cleaned up first; .* ask anew, with a new join token$/
    const one = await decided((what) => refuse({ ...what, request: 'these' }))
    expect(one.said.at(-1)).toMatch(leaving)
    const denied = await decided(refuse)
    expect(denied.acts).toEqual([
      ['request_denied', 'those'],
      ['cluster_denied', undefined],
    ])
    expect(denied.said.at(-1)).toMatch(/^there is nothing to undo: east is/)
    expect(denied.said.at(-1)).toMatch(leaving)
    expect(denied.said.join()).not.toMatch(/stays|to undo: `/)
    expect((await decided(refuse)).said, 'once more').toEqual([denied.said.at(-1)])
    await write({ metadata: { finalizers: null } })
    await expect(decided(refuse)).rejects.toThrow(/knows no cluster east/)
    await hub.create(managedClusters, { metadata: { name: cluster }, spec: { hubAcceptsClient: false } })
  })
})

describe('a decision on the page', () => {
  const by = { username: 'ann (ops)', requestId: 'page-1' }
  const since = async (decide: (what: DecidingOptions) => Promise<unknown>, who: DecidingOptions['by'] = by) => {
    const first = entries.length
    await decide({ hub, cluster, ...(who && { by: who }) })
    return entries.slice(first)
  }

  it('names the person and the request of the page in all that is written, and one by a command names none of before', async () => {
    const other = { spec: { hubAcceptsClient: false } }
    await hub.patch(managedClusters, { name: cluster }, other, { kind: 'merge' })
    await asks('four')
    const words = 'by ann (ops) on the page'
    expect(await since(accept)).toEqual([
      ['request_approved', 'four', `approved ${words} (request page-1)`],
      ['cluster_accepted', 'page-1', `hubAcceptsClient is set to true, ${words}`],
    ])
    await asks('five')
    expect(await since(refuse)).toEqual([
      ['request_denied', 'five', `denied ${words} (request page-1)`],
      ['cluster_denied', 'page-1', `hubAcceptsClient is set to false, ${words}`],
    ])
    const five = (await hub.get(certificateRequests, { name: 'five' })) ?? {}
    expect(stateOf(five)).toEqual({ kind: 'denied', why: "denied on the hub's page" }) // as its machine is told
    const command = { hub, cluster }
    const first = entries.length
    await accept(command)
    expect(entries.slice(first)).toEqual([['cluster_accepted', expect.any(String), 'hubAcceptsClient is set to true']])
    expect((await hub.get(managedClusters, { name: cluster }))?.metadata.annotations ?? {}).not.toHaveProperty([
      'clusterpulse.io/decided',
    ])
    expect(await since(revoke)).toEqual([
      ['cluster_revoked', 'page-1', `no certificate of it counts any more, ${words}`],
    ])
    expect(await since(detach)).toEqual([['cluster_deleted', 'page-1', `the ManagedCluster is deleted, ${words}`]])
  })
})
