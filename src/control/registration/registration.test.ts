import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLUSTER_LABEL } from '#authority'
import { approve, type CertificateRequestObject, certificateRequests, deny, denyApproved } from '#certificates'
import { CERTIFICATE_LIFE_ANNOTATION, CERTIFICATES_ANNOTATION, CLUSTER_SET_LABEL, DECIDED_ANNOTATION } from '#kinds'
import { isKubeError, type KubeObject, namespaces, whole } from '#kube'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { aRequest, openssl, signingRequest, subjectOfMember } from '../../platform/authority/test/requests.ts'
import { certificateLifeOf } from './certificate-life.ts'
import { MemberIndex, memberFactsOf, stateOf } from './member-index.ts'
import {
  clusterRoleBindings,
  clusterRoles,
  managedClusterAddOns,
  managedClusterSetBindings,
  managedClusterSets,
  managedClusters,
  manifestWorks,
  monitored,
  roleBindings,
} from './objects.ts'
import { bindingsOf, roleNameOf } from './rights.ts'
import {
  aHub,
  aMember,
  apis,
  change,
  exists,
  HUB_NAMESPACE,
  may,
  memberOf,
  said,
  type TestApi,
  type TestHub,
  until,
} from './testing/hub.ts'
import { CLEANUP_PRIORITY, CONDITIONS, FINALIZERS, groupsOf } from './words.ts'

// A real kube-apiserver gets members by the journeys of joining, with every part of the hub at work: here it is the same once more.
for (const api of apis) describe(`members on ${api.title}`, { tags: api.isReal ? ['again'] : [] }, () => registers(api))

function registers({ skip, open }: (typeof apis)[number]): void {
  let api: TestApi
  let hub: TestHub
  beforeAll(async () => {
    if (skip) return
    api = await open()
    hub = await aHub(api)
  })
  afterAll(async () => {
    await hub?.stop()
    await api?.[Symbol.asyncDispose]()
  })

  /** A request of it, made and not decided. */
  async function asked(cluster: string, name: string): Promise<CertificateRequestObject> {
    const { pem } = await aRequest(subjectOfMember(cluster, 'a'))
    const labels = { [CLUSTER_LABEL]: cluster }
    const { spec } = signingRequest(pem, {}, labels)
    const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' }
    const metadata = { name: `${cluster}-${name}`, labels }
    await api.kube.create(certificateRequests, { ...kind, metadata, ...(spec && { spec }) })
    const made = await api.kube.get(certificateRequests, { name: metadata.name })
    if (!made) throw new Error('not made')
    return made
  }
  async function signed(cluster: string, days: number): Promise<void> {
    const pem = openssl(['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=x', '-days', `${days}`])
    const made = await asked(cluster, String(days))
    await approve(api.kube, made, { reason: 'Test', message: '' })
    const status = { certificate: Buffer.from(pem).toString('base64') }
    await api.kube.patch(
      certificateRequests,
      { name: made.metadata.name },
      { status },
      { kind: 'merge', subresource: 'status' },
    )
  }
  const lifeDays = (member: KubeObject): number | null => {
    const life = certificateLifeOf(member)
    return life && Math.round((life.until - life.from) / 86_400_000)
  }
  const leases = (namespace: string) => ({
    verb: 'update',
    group: 'coordination.k8s.io',
    resource: 'leases',
    namespace,
  })
  const self = (name: string, verb: string) => ({
    verb,
    group: managedClusters.group,
    resource: 'managedclusters',
    name,
  })

  it.skipIf(skip)(
    'one that is revoked while no hub runs is revoked at the API by the next one, and by every one after it as the same',
    async () => {
      await aMember(api, 'lost', {})
      await until(async () => expect(await exists(api, clusterRoles, roleNameOf('lost'))).toBe(true))
      await hub.stop()
      const annotations = { [CERTIFICATES_ANNOTATION]: 'revoked-2026-11-26T12:00:00.000Z' }
      await change(api, 'lost', { metadata: { annotations }, spec: { hubAcceptsClient: false } })
      const told: unknown[] = []
      let faults = 2
      const revoke = async (of: { readonly cluster: string }) => {
        if (faults-- > 0) throw new Error('no space left on device')
        told.push(of)
      }
      for (let start = 0; start < 2; start++) {
        const before = told.length
        hub = await aHub(api, { revoke })
        await until(() => expect(told.length).toBeGreaterThan(before))
        await hub.stop()
      }
      const decidedMs = Date.parse('2026-11-26T12:00:00.000Z')
      expect(new Set(told.map((one) => JSON.stringify(one)))).toEqual(
        new Set([JSON.stringify({ cluster: 'lost', decidedMs })]),
      )
      hub = await aHub(api)
    },
  )

  it.skipIf(skip)('what one was given does not count for a later one of its name, whichever way it went', async () => {
    await hub.stop()
    const told: string[] = []
    hub = await aHub(api, { revoke: async ({ cluster }) => void told.push(cluster) })
    for (const name of ['leaves', 'vanishes']) {
      await aMember(api, name, {})
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toBe('True HubClusterAdminAccepted'))
    }
    expect(told).not.toContain('leaves')
    await api.kube.delete(managedClusters, { name: 'leaves' })
    await until(async () => expect(await exists(api, managedClusters, 'leaves')).toBe(false))
    expect(told).toContain('leaves')
    await hub.stop()
    await api.kube.delete(managedClusters, { name: 'vanishes' })
    await change(api, 'vanishes', { metadata: { finalizers: null } })
    expect(await exists(api, managedClusters, 'vanishes')).toBe(false)
    hub = await aHub(api, { revoke: async ({ cluster }) => void told.push(cluster) })
    await until(() => expect(told).toContain('vanishes'))
    await until(async () => expect(await exists(api, clusterRoles, roleNameOf('vanishes'))).toBe(false))
    await hub.stop()
    hub = await aHub(api)
  })

  it.skipIf(skip)('one that leaves leaves no request of its own waiting for a later one of its name', async () => {
    await aMember(api, 'asking', {})
    await until(async () => expect(await said(api, 'asking', CONDITIONS.accepted)).toBe('True HubClusterAdminAccepted'))
    // For another agent than the one that asks: a person decides.
    const { pem } = await aRequest(subjectOfMember('asking', 'b'))
    const labels = { [CLUSTER_LABEL]: 'asking' }
    const { spec } = signingRequest(pem, {}, labels)
    const waits = (name: string) => ({
      ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name, labels } },
      ...(spec && { spec }),
    })
    const as = { user: `${groupsOf('asking')[0]}:a`, groups: [...groupsOf('asking'), 'system:authenticated'] }
    await until(async () => void (await api.kube.create(certificateRequests, waits('asking-own'), undefined, { as })))
    await api.kube.create(certificateRequests, waits('asking-other'))
    await api.kube.delete(managedClusters, { name: 'asking' })
    await until(async () => expect(await exists(api, managedClusters, 'asking')).toBe(false))
    const conditionOf = async (name: string) =>
      (await api.kube.get(certificateRequests, { name }))?.status?.conditions?.map(({ type }) => type)
    expect(await conditionOf('asking-own')).toEqual(['Denied'])
    expect(await conditionOf('asking-other')).toBeUndefined()
  })

  it.skipIf(skip)('one that somebody else holds back says by what, and is a member no more', async () => {
    await aMember(api, 'held', {})
    await until(async () => expect(await said(api, 'held', CONDITIONS.accepted)).toBe('True HubClusterAdminAccepted'))
    const { finalizers = [] } = (await memberOf(api, 'held')).metadata
    await change(api, 'held', { metadata: { finalizers: [...finalizers, 'example.com/stay'] } })
    await api.kube.delete(managedClusters, { name: 'held' })
    await until(async () => expect(await said(api, 'held', CONDITIONS.deleting)).toBe('False FinalizersRemaining'))
    const conditions = (await memberOf(api, 'held')).status?.conditions ?? []
    expect(conditions.find(({ type }) => type === CONDITIONS.deleting)?.message).toContain('example.com/stay')
    expect(await said(api, 'held', CONDITIONS.accepted)).toBe('False HubClusterAdminDenied')
    await change(api, 'held', { metadata: { finalizers: null } })
    await until(async () => expect(await exists(api, managedClusters, 'held')).toBe(false))
  })

  it.skipIf(skip)('one that asks sees itself and has nothing else, and is in the default set', async () => {
    await aMember(api, 'asks', { accepted: false })
    const [group] = groupsOf('asks')
    await until(async () => expect(await may(api, group, self('asks', 'get'))).toBe(true))
    expect(await may(api, group, self('asks', 'update'))).toBe(false)
    expect(await may(api, group, self('other', 'get'))).toBe(false)
    await until(async () => expect((await memberOf(api, 'asks')).metadata.labels?.[CLUSTER_SET_LABEL]).toBe('default'))
    expect(await exists(api, whole(namespaces), 'asks')).toBe(false)
    expect(await said(api, 'asks', CONDITIONS.accepted)).toBeUndefined()
    // Who only asked goes without a trace.
    await api.kube.delete(managedClusters, { name: 'asks' })
    await until(async () => expect(await exists(api, clusterRoles, roleNameOf('asks'))).toBe(false))
    expect(await exists(api, clusterRoleBindings, roleNameOf('asks'))).toBe(false)
  })

  it.skipIf(skip)(
    'one that is accepted gets its namespace, its rights there and nowhere else, and is monitored',
    async () => {
      await aMember(api, 'east', { accepted: false, transport: 'stream' })
      await change(api, 'east', { spec: { hubAcceptsClient: true } })
      await until(async () => expect(await said(api, 'east', CONDITIONS.accepted)).toBe('True HubClusterAdminAccepted'))
      const namespace = await api.kube.get(whole(namespaces), { name: 'east' })
      expect(namespace?.metadata.labels).toMatchObject({ 'open-cluster-management.io/cluster-name': 'east' })
      const [group] = groupsOf('east')
      expect(await may(api, group, leases('east'))).toBe(true)
      expect(await may(api, group, leases('default'))).toBe(false)
      expect(await may(api, group, self('east', 'update'))).toBe(true)
      const { metadata } = await memberOf(api, 'east')
      expect(metadata.finalizers).toEqual(expect.arrayContaining([FINALIZERS.rights, FINALIZERS.resources]))
      const connection = await api.kube.get(whole(monitored), { name: 'east', namespace: HUB_NAMESPACE })
      expect(connection).toMatchObject({
        metadata: { ownerReferences: [{ kind: 'ManagedCluster', name: 'east', uid: metadata.uid }] },
        spec: { collectionMode: 'push' },
      })
    },
  )

  it.skipIf(skip)('its set goes with its connection, for policies to select by', async () => {
    await aMember(api, 'moves', { transport: 'stream' })
    const setOf = async () =>
      (await api.kube.get(whole(monitored), { name: 'moves', namespace: HUB_NAMESPACE }))?.metadata.labels?.[
        CLUSTER_SET_LABEL
      ]
    await until(async () => expect(await setOf()).toBe('default'))
    await change(api, 'moves', { metadata: { labels: { [CLUSTER_SET_LABEL]: 'moved-to', team: 'shop' } } })
    await until(async () => expect(await setOf()).toBe('moved-to'))
    const connection = await api.kube.get(whole(monitored), { name: 'moves', namespace: HUB_NAMESPACE })
    expect(connection?.metadata.labels).not.toHaveProperty('team')
  })

  it.skipIf(skip)(
    'its set goes with its connection also while it leaves, and waits for what is to be cleaned up',
    async () => {
      await aMember(api, 'moves-out', { transport: 'stream' })
      const setOf = async () =>
        (await api.kube.get(whole(monitored), { name: 'moves-out', namespace: HUB_NAMESPACE }))?.metadata.labels?.[
          CLUSTER_SET_LABEL
        ]
      await until(async () => expect(await setOf()).toBe('default'))
      await there(api, 'moves-out')
      await api.kube.create(managedClusterAddOns, anAddOn('moves-out', 'metrics'))
      await api.kube.delete(managedClusters, { name: 'moves-out' })
      await until(async () => expect(await said(api, 'moves-out', CONDITIONS.deleting)).toBe('False ResourceRemaining'))
      await change(api, 'moves-out', { metadata: { labels: { [CLUSTER_SET_LABEL]: 'moved-to' } } })
      await until(async () => expect(await setOf()).toBe('moved-to'))
      await letGo(api, managedClusterAddOns, 'moves-out', 'metrics')
      await until(async () => expect(await setOf()).toBeUndefined())
    },
  )

  it.skipIf(skip)('keeps how long its newest certificate lives, also when the request is gone', async () => {
    await aMember(api, 'certified')
    const days = async () => lifeDays(await memberOf(api, 'certified'))
    await signed('certified', 60)
    await until(async () => expect(await days()).toBe(60))
    await api.kube.delete(certificateRequests, { name: 'certified-60' })
    expect(await days()).toBe(60)
    await signed('certified', 90)
    await until(async () => expect(await days()).toBe(90))
  })

  it.skipIf(skip)('of the name of one that was deleted has nothing of the life of that one', async () => {
    await aMember(api, 'again')
    await signed('again', 60)
    await until(async () => expect(certificateLifeOf(await memberOf(api, 'again'))).not.toBeNull())
    await api.kube.delete(managedClusters, { name: 'again' })
    await until(async () => expect(await exists(api, managedClusters, 'again')).toBe(false))
    // Times at the API are whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    await aMember(api, 'again', { accepted: false })
    await signed('again', 90)
    await until(async () => expect(lifeDays(await memberOf(api, 'again'))).toBe(90))
    await api.kube.delete(managedClusters, { name: 'again' })
    await until(async () => expect(await exists(api, managedClusters, 'again')).toBe(false))
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    await aMember(api, 'again', { accepted: false })
    // What is looked at after it is done: the requests of before were looked at again when it came.
    await aMember(api, 'after', { accepted: false })
    await signed('after', 30)
    await until(async () => expect(lifeDays(await memberOf(api, 'after'))).toBe(30))
    expect(certificateLifeOf(await memberOf(api, 'again'))).toBeNull()
  })

  it.skipIf(skip)('that was never accepted is denied when all it asked for is, and not before', async () => {
    await aMember(api, 'newcomer', { accepted: false })
    const requests = [await asked('newcomer', 'one'), await asked('newcomer', 'two')]
    const refused = { reason: 'Test', message: 'no' }
    await deny(api.kube, requests[0] as CertificateRequestObject, refused)
    await aMember(api, 'other-newcomer', { accepted: false })
    await deny(api.kube, await asked('other-newcomer', 'one'), refused)
    await until(async () =>
      expect(await said(api, 'other-newcomer', CONDITIONS.accepted)).toBe('False HubClusterAdminDenied'),
    )
    expect(await said(api, 'newcomer', CONDITIONS.accepted)).toBeUndefined()
    const waits = await memberOf(api, 'newcomer')
    expect(stateOf(waits)).toBe('not accepted yet')
    expect(memberFactsOf(waits, [])).toMatchObject({
      reason: 'NotAccepted',
      message: expect.stringContaining('`clusterpulse accept newcomer` lets it in'),
      since: Date.parse(waits.metadata.creationTimestamp ?? ''),
    })
    await deny(api.kube, requests[1] as CertificateRequestObject, refused)
    await until(async () => expect(stateOf(await memberOf(api, 'newcomer'))).toBe('denied'))
    await change(api, 'newcomer', { spec: { hubAcceptsClient: true } })
    await until(async () => expect(stateOf(await memberOf(api, 'newcomer'))).toBe('not joined yet'))
  })

  it.skipIf(skip)(
    'that was never accepted is denied where it is turned down after it was approved, or revoked',
    async () => {
      await aMember(api, 'half', { accepted: false, transport: 'stream' })
      await signed('half', 20)
      const [request] = await api.kube.listAll(certificateRequests, { labelSelector: `${CLUSTER_LABEL}=half` })
      await denyApproved(api.kube, request as CertificateRequestObject, { message: 'no' })
      await until(async () => expect(stateOf(await memberOf(api, 'half'))).toBe('denied'))
      // OCM's agent may ask before it makes its cluster; what was decided by then was about another one of the name.
      const [early, former] = [await asked('early', 'one'), await asked('former', 'one')]
      await deny(api.kube, former, { reason: 'Test', message: 'no' })
      await new Promise((resolve) => setTimeout(resolve, 1_100)) // times at the API are whole seconds
      await aMember(api, 'former', { accepted: false })
      await aMember(api, 'early', { accepted: false })
      await approve(api.kube, early, { reason: 'Test', message: '' })
      const approved = await api.kube.get(certificateRequests, { name: early.metadata.name })
      await denyApproved(api.kube, approved as CertificateRequestObject, { message: 'no' })
      await until(async () => expect(stateOf(await memberOf(api, 'early'))).toBe('denied'))
      expect(stateOf(await memberOf(api, 'former'))).toBe('not accepted yet')
      await aMember(api, 'over-before', { accepted: false, transport: 'stream' })
      await change(api, 'over-before', {
        metadata: { annotations: { [CERTIFICATES_ANNOTATION]: 'revoked-2026-11-26T10:00:00.000Z' } },
      })
      await until(async () =>
        expect(await said(api, 'over-before', CONDITIONS.accepted)).toBe('False HubClusterAdminDenied'),
      )
      expect(stateOf(await memberOf(api, 'over-before'))).toBe('revoked')
    },
  )

  it.skipIf(skip)('that was revoked says so, accepted again or not, and shows no certificate as good', async () => {
    await aMember(api, 'over', { transport: 'stream' })
    const index = new MemberIndex({ hub: api.kube, logger: silentLogger, clock: systemClock })
    index.start()
    const life = '2026-01-01T00:00:00.000Z/2036-01-01T00:00:00.000Z'
    await change(api, 'over', {
      metadata: { annotations: { [CERTIFICATES_ANNOTATION]: 'ab'.repeat(32), [CERTIFICATE_LIFE_ANNOTATION]: life } },
    })
    await until(() =>
      expect(index.member('over')).toMatchObject({ state: 'not joined yet', certificate: { from: 1767225600000 } }),
    )
    // Nobody waits for an agent that is to join anew.
    const isMonitored = () => exists(api, monitored, 'over', HUB_NAMESPACE)
    for (const hubAcceptsClient of [false, true]) {
      await change(api, 'over', {
        metadata: { annotations: { [CERTIFICATES_ANNOTATION]: 'revoked-2026-11-26T10:00:00.000Z' } },
        spec: { hubAcceptsClient },
      })
      await until(async () =>
        expect(await said(api, 'over', CONDITIONS.accepted)).toMatch(hubAcceptsClient ? /^True/ : /^False/),
      )
      expect(await isMonitored()).toBe(false)
      await until(() => expect(index.member('over')).toMatchObject({ state: 'revoked', accepted: hubAcceptsClient }))
      const since = Date.parse('2026-11-26T10:00:00Z')
      expect(index.member('over')).toMatchObject({ reason: 'Revoked', certificate: null, since })
      expect(index.member('over')?.message).toMatch(
        /^Revoked at the hub's API at 2026-11-26T10:00:00Z, .*audit trail: .*clusterpulse connect over/,
      )
    }
    await change(api, 'over', { metadata: { annotations: { [CERTIFICATES_ANNOTATION]: 'ab'.repeat(32) } } })
    await until(async () => expect(await isMonitored()).toBe(true))
    await change(api, 'over', {
      metadata: { annotations: { [CERTIFICATES_ANNOTATION]: 'revoked-2026-11-26T10:00:00.000Z' } },
    })
    await until(() => expect(index.member('over')?.state).toBe('revoked'))
    const at = Date.parse('2026-11-26T10:00:00.123Z')
    const note = async (said: object) => {
      const text = JSON.stringify({ decision: 'revoke', by: 'ann', request: 'r1', at, ...said })
      await change(api, 'over', { metadata: { annotations: { [DECIDED_ANNOTATION]: text } } })
    }
    await note({})
    await until(() => expect(index.member('over')?.message).toMatch(/^Revoked by ann on the page at 2026/))
    // What is noted of another decision, or of an earlier one, names nobody for this one.
    for (const other of [{ decision: 'deny' }, { at: at - 600_000 }, { by: 7 }]) {
      await note(other)
      await until(() => expect(index.member('over')?.message).toMatch(/^Revoked at the hub's API/))
      await note({})
      await until(() => expect(index.member('over')?.message).toMatch(/^Revoked by ann/))
    }
    await index[Symbol.asyncDispose]()
  })

  it.skipIf(skip)('what gives rights is made anew when somebody deletes or widens it', async () => {
    await aMember(api, 'mended')
    const uidsOf = async () => {
      const all = await api.kube.listAll(roleBindings, { namespace: 'mended' })
      const there = all.filter(({ metadata }) => !metadata.deletionTimestamp)
      return new Map(there.map(({ metadata }) => [metadata.name, metadata.uid]))
    }
    await until(async () => expect((await uidsOf()).size).toBe(bindingsOf('mended').length))
    const before = await uidsOf()
    for (const name of before.keys()) await api.kube.delete(roleBindings, { name, namespace: 'mended' })
    await until(async () => {
      const now = await uidsOf()
      for (const [name, uid] of before) expect([now.has(name), now.get(name) === uid], name).toEqual([true, false])
    })
    const all = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]
    await api.kube.patch(clusterRoles, { name: roleNameOf('mended') }, { rules: all }, { kind: 'merge' })
    const [group] = groupsOf('mended')
    await until(async () => expect(await may(api, group, self('other', 'delete'))).toBe(false))
    await api.kube.delete(clusterRoles, { name: 'open-cluster-management:managedcluster:work' })
    await until(async () =>
      expect(
        await may(api, group, {
          verb: 'get',
          group: manifestWorks.group,
          resource: 'manifestworks',
          namespace: 'mended',
        }),
      ).toBe(true),
    )
  })

  it.skipIf(skip)('one that is denied loses its rights at once, though works exist, and is not monitored', async () => {
    await aMember(api, 'denied', { transport: 'stream' })
    await until(async () => expect(await said(api, 'denied', CONDITIONS.accepted)).toMatch(/^True/))
    await api.kube.create(manifestWorks, aWork('denied', 'w'))
    await change(api, 'denied', { spec: { hubAcceptsClient: false } })
    await until(async () => expect(await said(api, 'denied', CONDITIONS.accepted)).toBe('False HubClusterAdminDenied'))
    const [group] = groupsOf('denied')
    expect(await may(api, group, leases('denied'))).toBe(false)
    expect(await may(api, group, self('denied', 'update'))).toBe(false)
    expect(await may(api, group, self('denied', 'get'))).toBe(true)
    for (const { object } of bindingsOf('denied'))
      expect(await exists(api, roleBindings, object.metadata.name, 'denied')).toBe(false)
    expect(await exists(api, monitored, 'denied', HUB_NAMESPACE)).toBe(false)
    const lost = { type: CONDITIONS.available, status: 'Unknown', reason: 'ManagedClusterStreamLost' } as const
    const facts = memberFactsOf(
      {
        ...(await memberOf(api, 'denied')),
        status: {
          conditions: [
            ...((await memberOf(api, 'denied')).status?.conditions ?? []),
            { ...lost, message: 'No agent of the cluster is known.', lastTransitionTime: '2026-11-26T10:00:00Z' },
          ],
        },
      },
      [],
    )
    expect(facts.message).toMatch(/^Denied at the hub's API at 20.*Z, .*: it has no rights on the hub; .*accept denied/)
    expect(facts.conditions.find(({ type }) => type === CONDITIONS.available)?.message).toBe(facts.message)
    // And may come back.
    await change(api, 'denied', { spec: { hubAcceptsClient: true } })
    await until(async () => expect(await may(api, group, leases('denied'))).toBe(true))
  })

  it.skipIf(skip)('a connection that a person declared is neither owned nor deleted', async () => {
    await api.kube.create(monitored, {
      apiVersion: `${monitored.group}/${monitored.version}`,
      kind: monitored.kind,
      metadata: { name: 'watched', namespace: HUB_NAMESPACE },
      spec: { collectionMode: 'push' },
    })
    await aMember(api, 'watched')
    await until(async () => expect(await said(api, 'watched', CONDITIONS.accepted)).toMatch(/^True/))
    expect((await memberOf(api, 'watched')).metadata.annotations).toMatchObject({
      'clusterpulse.io/transport': 'stream',
    })
    await api.kube.delete(managedClusters, { name: 'watched' })
    await until(async () => expect(await exists(api, managedClusters, 'watched')).toBe(false))
    expect(await exists(api, monitored, 'watched', HUB_NAMESPACE)).toBe(true)
  })

  it.skipIf(skip)(
    'one that is deleted leaves in order: add-ons, works by priority, rights; its namespace stays',
    async () => {
      await aMember(api, 'leaving', { transport: 'api' })
      await until(async () => expect(await said(api, 'leaving', CONDITIONS.accepted)).toMatch(/^True/))
      // It is there, so its agent cleans up.
      await there(api, 'leaving')
      await api.kube.create(managedClusterAddOns, anAddOn('leaving', 'metrics'))
      await api.kube.create(manifestWorks, aWork('leaving', 'first'))
      await api.kube.create(manifestWorks, aWork('leaving', 'last', '10'))
      await api.kube.delete(managedClusters, { name: 'leaving' })
      const going = async (name: string) =>
        (await api.kube.get(manifestWorks, { name, namespace: 'leaving' }))?.metadata.deletionTimestamp !== undefined
      await until(async () => expect(await said(api, 'leaving', CONDITIONS.deleting)).toBe('False ResourceRemaining'))
      expect(await going('first')).toBe(false)
      await letGo(api, managedClusterAddOns, 'leaving', 'metrics')
      await until(async () => expect(await going('first')).toBe(true))
      expect(await going('last')).toBe(false)
      const [group] = groupsOf('leaving')
      // Its agent needs its rights to end them.
      expect(await may(api, group, leases('leaving'))).toBe(true)
      await letGo(api, manifestWorks, 'leaving', 'first')
      await until(async () => expect(await going('last')).toBe(true))
      await letGo(api, manifestWorks, 'leaving', 'last')
      await until(async () => expect(await exists(api, managedClusters, 'leaving')).toBe(false))
      expect(await may(api, group, leases('leaving'))).toBe(false)
      expect(await may(api, group, self('leaving', 'get'))).toBe(false)
      const namespace = await api.kube.get(whole(namespaces), { name: 'leaving' })
      expect(namespace?.metadata.deletionTimestamp).toBeUndefined()
    },
  )

  it.skipIf(skip)(
    'one that is denied while it leaves loses its rights at once, and holds nothing by its works',
    async () => {
      const name = 'thrown-out'
      await aMember(api, name, { transport: 'api' })
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toMatch(/^True/))
      // It is there, and ends nothing.
      await there(api, name)
      await api.kube.create(manifestWorks, aWork(name, 'kept'))
      await api.kube.delete(managedClusters, { name })
      await until(async () => expect(await said(api, name, CONDITIONS.deleting)).toBe('False ResourceRemaining'))
      const [group] = groupsOf(name)
      expect(await may(api, group, leases(name))).toBe(true)
      await change(api, name, { spec: { hubAcceptsClient: false } })
      await until(async () => expect(await may(api, group, leases(name))).toBe(false))
      await until(async () => expect(await exists(api, managedClusters, name)).toBe(false))
      expect(await exists(api, manifestWorks, 'kept', name)).toBe(false)
    },
  )

  it.skipIf(skip)(
    'one of the API that was revoked has no rights when it is accepted, until it has asked anew',
    async () => {
      const name = 'stolen'
      const [group] = groupsOf(name)
      await aMember(api, name, { transport: 'api' })
      await signed(name, 30)
      await until(async () => expect(await may(api, group, leases(name))).toBe(true))
      await there(api, name, 'True')
      await new Promise((resolve) => setTimeout(resolve, 1_100)) // times at the API are whole seconds
      await change(api, name, {
        metadata: { annotations: { [CERTIFICATES_ANNOTATION]: `revoked-${new Date().toISOString()}` } },
        spec: { hubAcceptsClient: false },
      })
      await until(async () => expect(await may(api, group, leases(name))).toBe(false))
      await change(api, name, { spec: { hubAcceptsClient: true } })
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toBe('False Revoked'))
      expect(await may(api, group, leases(name))).toBe(false)
      // Long before its lease is old.
      await until(async () =>
        expect(await said(api, name, CONDITIONS.available)).toBe('Unknown ManagedClusterLeaseUpdateStopped'),
      )
      const revoked = memberFactsOf(await memberOf(api, name), [])
      expect(revoked.state).toBe('revoked')
      expect(revoked.message).toMatch(/delete secret hub-kubeconfig-secret.*restart.*bootstrap kubeconfig/)
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      await signed(name, 60)
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toMatch(/^True/))
      expect(await may(api, group, leases(name))).toBe(true)
      expect(lifeDays(await memberOf(api, name))).toBe(60)
    },
  )

  it.skipIf(skip)('one that never joined holds nothing when it is deleted', async () => {
    await aMember(api, 'never')
    await until(async () => expect(await said(api, 'never', CONDITIONS.accepted)).toMatch(/^True/))
    await api.kube.create(manifestWorks, aWork('never', 'w'))
    await api.kube.delete(managedClusters, { name: 'never' })
    await until(async () => expect(await exists(api, managedClusters, 'never')).toBe(false))
    expect(await exists(api, manifestWorks, 'w', 'never')).toBe(false)
  })

  it.skipIf(skip)(
    'one with an agent of OCM that goes away while it cleans up is waited for from then on, and says until when',
    async () => {
      const name = 'goes-away'
      await hub.stop()
      hub = await aHub(api, { removalPatienceMs: 4000 })
      await aMember(api, name, { transport: 'api' })
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toMatch(/^True/))
      await there(api, name)
      await api.kube.create(manifestWorks, aWork(name, 'kept'))
      await api.kube.delete(managedClusters, { name })
      const words = async () =>
        (await memberOf(api, name)).status?.conditions?.find(({ type }) => type === CONDITIONS.deleting)?.message
      await until(async () =>
        expect(await words()).toMatch(/^0 add-ons and 1 work .* as long as it takes; .*deny goes-away$/),
      )
      await new Promise((resolve) => setTimeout(resolve, 5000)) // longer than one that is away is waited for
      await there(api, name, 'Unknown')
      await until(async () => expect(await words()).toMatch(/it is away: the hub waits for that until \d{4}-.*Z, and/))
      expect(await exists(api, manifestWorks, 'kept', name)).toBe(true)
      await until(async () => expect(await exists(api, managedClusters, name)).toBe(false))
      expect(await exists(api, manifestWorks, 'kept', name)).toBe(false)
      await hub.stop()
      hub = await aHub(api)
    },
  )

  it.skipIf(skip).each([
    ['is away', 'away', 'Unknown'],
    ['is here, and ends no works', 'unserved', 'True'],
  ] as const)(
    'one whose agent on our stream %s holds nothing for longer than it is waited for, by priority all the same',
    async (_, name, available) => {
      await aMember(api, name, { transport: 'stream' })
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toMatch(/^True/))
      await there(api, name, available)
      await api.kube.create(managedClusterAddOns, anAddOn(name, 'metrics'))
      await api.kube.create(manifestWorks, aWork(name, 'first'))
      await api.kube.create(manifestWorks, aWork(name, 'last', '10'))
      await api.kube.delete(managedClusters, { name })
      await until(async () => expect(await said(api, name, CONDITIONS.deleting)).toBe('False ResourceRemaining'))
      // It may come back: its add-on goes first, and nothing is torn from it.
      expect(
        (await api.kube.get(managedClusterAddOns, { name: 'metrics', namespace: name }))?.metadata.finalizers,
      ).toEqual(['example.com/cleanup'])
      expect(
        (await api.kube.get(manifestWorks, { name: 'first', namespace: name }))?.metadata.deletionTimestamp,
      ).toBeUndefined()
      await hub.stop()
      hub = await aHub(api, { removalPatienceMs: 0 })
      await until(async () => expect(await exists(api, managedClusters, name)).toBe(false))
      for (const work of ['first', 'last']) expect(await exists(api, manifestWorks, work, name)).toBe(false)
      expect(await exists(api, managedClusterAddOns, 'metrics', name)).toBe(false)
      const [group] = groupsOf(name)
      expect(await may(api, group, self(name, 'get'))).toBe(false)
      await hub.stop()
      hub = await aHub(api)
    },
  )

  it.skipIf(skip)(
    'one whose namespace does not end is told why, has no rights meanwhile, and gets it anew',
    async () => {
      const name = 'stuck'
      const namespace = {
        ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, finalizers: ['example.com/held'] } },
      }
      await api.kube.create(whole(namespaces), namespace)
      await api.kube.delete(whole(namespaces), { name })
      const { uid } = (await api.kube.get(whole(namespaces), { name }))?.metadata ?? {}
      await aMember(api, name, { accepted: false })
      // Kubernetes refuses the acceptance itself where its admission knows the namespace; whoever came past that is told.
      await change(api, name, { spec: { hubAcceptsClient: true } }).catch(() => undefined)
      if ((await memberOf(api, name)).spec?.hubAcceptsClient) {
        await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toBe('False Error'))
        const { status } = await memberOf(api, name)
        const condition = status?.conditions?.find(({ type }) => type === CONDITIONS.accepted)
        expect(condition?.message).toMatch(/namespace stuck is being deleted; .*kubectl get namespace stuck -o yaml/)
      }
      const [group] = groupsOf(name)
      expect(await may(api, group, leases(name))).toBe(false)
      await release(api, name)
      await until(() => change(api, name, { spec: { hubAcceptsClient: true } }).then(() => undefined))
      await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toBe('True HubClusterAdminAccepted'))
      expect((await api.kube.get(whole(namespaces), { name }))?.metadata.uid).not.toBe(uid)
      expect(await may(api, group, leases(name))).toBe(true)
    },
  )

  it.skipIf(skip).each(['kube-system', HUB_NAMESPACE])('none gets rights in the namespace %s', async (name) => {
    await aMember(api, name)
    await until(async () => expect(await said(api, name, CONDITIONS.accepted)).toBe('False Error'))
    const [group] = groupsOf(name)
    expect(await may(api, group, leases(name))).toBe(false)
    await api.kube.delete(managedClusters, { name })
    await until(async () => expect(await exists(api, managedClusters, name)).toBe(false))
  })

  it.skipIf(skip)('sets count their clusters, and the built-in ones are kept as they are meant', async () => {
    await until(async () => expect(await exists(api, managedClusterSets, 'global')).toBe(true))
    await api.kube.create(managedClusterSets, aSet('prod', { selectorType: 'ExclusiveClusterSetLabel' }))
    const isEmpty = async (name: string) => {
      const set = await api.kube.get(managedClusterSets, { name })
      const one = set?.status?.conditions?.find(({ type }) => type === 'ClusterSetEmpty')
      return one && `${one.status} ${one.message}`
    }
    await until(async () => expect(await isEmpty('prod')).toBe('True No ManagedCluster selected'))
    await aMember(api, 'counted', { accepted: false })
    await change(api, 'counted', { metadata: { labels: { [CLUSTER_SET_LABEL]: 'prod' } } })
    await until(async () => expect(await isEmpty('prod')).toBe('False 1 ManagedClusters selected'))
    const all = (await api.kube.listAll(managedClusters)).length
    await until(async () => expect(await isEmpty('global')).toBe(`False ${all} ManagedClusters selected`))
    const none = { clusterSelector: { selectorType: 'LabelSelector', labelSelector: { matchLabels: { a: 'b' } } } }
    await api.kube.patch(managedClusterSets, { name: 'global' }, { spec: none }, { kind: 'merge' })
    await until(async () =>
      expect(
        (await api.kube.get(managedClusterSets, { name: 'global' }))?.spec?.clusterSelector?.labelSelector,
      ).toEqual({}),
    )
    await api.kube.delete(managedClusterSets, { name: 'default' })
    await until(async () => expect(await exists(api, managedClusterSets, 'default')).toBe(true))
  })

  it.skipIf(skip)('a binding says whether there is its set', async () => {
    const bound = async () => {
      const binding = await api.kube.get(managedClusterSetBindings, { name: 'later', namespace: 'default' })
      return binding?.status?.conditions?.find(({ type }) => type === 'Bound')?.reason
    }
    await api.kube.create(managedClusterSetBindings, {
      apiVersion: 'cluster.open-cluster-management.io/v1beta2',
      kind: 'ManagedClusterSetBinding',
      metadata: { name: 'later', namespace: 'default' },
      spec: { clusterSet: 'later' },
    })
    await until(async () => expect(await bound()).toBe('ClusterSetNotFound'))
    await api.kube.create(managedClusterSets, aSet('later', {}))
    await until(async () => expect(await bound()).toBe('ClusterSetBound'))
    await api.kube.delete(managedClusterSets, { name: 'later' })
    await until(async () => expect(await bound()).toBe('ClusterSetNotFound'))
  })
}

const aSet = (name: string, clusterSelector: object): KubeObject => ({
  apiVersion: 'cluster.open-cluster-management.io/v1beta2',
  kind: 'ManagedClusterSet',
  metadata: { name },
  spec: { clusterSelector },
})

const aWork = (namespace: string, name: string, priority?: string): KubeObject => ({
  apiVersion: `${manifestWorks.group}/${manifestWorks.version}`,
  kind: manifestWorks.kind,
  metadata: {
    ...{ name, namespace, finalizers: [FINALIZERS.work] },
    ...(priority !== undefined && { annotations: { [CLEANUP_PRIORITY]: priority } }),
  },
  spec: {
    workload: { manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', namespace: 'default' } }] },
  },
})

const anAddOn = (namespace: string, name: string): KubeObject => ({
  apiVersion: `${managedClusterAddOns.group}/${managedClusterAddOns.version}`,
  kind: managedClusterAddOns.kind,
  metadata: { name, namespace, finalizers: ['example.com/cleanup'] },
  spec: {},
})

/** As the agent does once it has ended it on the member. */
const letGo = ({ kube }: TestApi, resource: typeof manifestWorks, namespace: string, name: string) =>
  kube.patch(resource, { name, namespace }, { metadata: { finalizers: null } }, { kind: 'merge' })

/** What holds the namespace lets go; a real API server alone has nobody who would end it. */
async function release({ kube }: TestApi, name: string): Promise<void> {
  await kube.patch(whole(namespaces), { name }, { metadata: { finalizers: null } }, { kind: 'merge' })
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name }, spec: { finalizers: [] } }
  await kube
    .request('PUT', `/api/v1/namespaces/${name}/finalize`, { body, contentType: 'application/json' })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'not_found')) throw error // it went already
    })
}

async function there(api: TestApi, name: string, available: 'True' | 'Unknown' = 'True'): Promise<void> {
  const now = new Date().toISOString()
  const { status } = await memberOf(api, name)
  const condition = (type: string, status = 'True') => ({
    ...{ type, status, reason: type, message: '' },
    lastTransitionTime: now,
  })
  const conditions = [
    ...(status?.conditions ?? []).filter(({ type }) => type !== CONDITIONS.joined && type !== CONDITIONS.available),
    condition(CONDITIONS.joined),
    condition(CONDITIONS.available, available),
  ]
  await api.kube.patch(managedClusters, { name }, { status: { conditions } }, { kind: 'merge', subresource: 'status' })
}
