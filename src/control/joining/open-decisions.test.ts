import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { approve } from '#certificates'
import type { JoinStep } from '#ingest'
import { type MissingDecision, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { keyId } from '../../pipeline/agent/join/certificate-request.ts'
import { aRequest, signingRequest, subjectOfMember } from '../../platform/authority/test/requests.ts'
import { type CertificateRequest, certificateRequests, missingOf, stateOf } from './certificate-request.ts'
import { accept, refuse, revokeMember } from './decisions.ts'
import { CERTIFICATES_ANNOTATION, type ManagedCluster, managedClusterOf, managedClusters } from './members.ts'
import { RequestIndex } from './request-index.ts'
import { aJoiningHub, aMachine, cluster, type JoiningHub, told } from './testing/joining-hub.ts'

const HOUR_MS = 3_600_000
const bootstrap = 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'
let hub: JoiningHub
let index: RequestIndex
beforeAll(async () => {
  hub = await aJoiningHub()
  index = new RequestIndex({ hub: hub.kube, logger: silentLogger, clock: systemClock })
  index.start()
})
afterAll(async () => {
  await index?.[Symbol.asyncDispose]()
  await hub?.[Symbol.asyncDispose]()
})

let n = 0
const aName = () => cluster(`half-${n++}`)
const requestsOf = (name: string) =>
  hub.kube.listAll(certificateRequests, { labelSelector: `open-cluster-management.io/cluster-name=${name}` })
const listed = (name: string) => index.requests().filter((one) => one.cluster === name)
const over = (code: string, message: RegExp) =>
  expect.objectContaining({ kind: 'over', code, message: expect.stringMatching(message) })
const kinds = (steps: readonly JoinStep[]) => steps.map(({ kind }) => kind)

/** A machine that asks to be the cluster. */
async function asks(name: ReturnType<typeof aName>) {
  const machine = aMachine(name, await hub.tokens.issue(name, HOUR_MS))
  await told(hub, machine.asked, 1)
  const found = (await requestsOf(name)).find(
    (one) => one.metadata.annotations?.['clusterpulse.io/key'] === keyId(machine.key),
  )
  if (!found) throw new Error('it did not ask')
  return { ...machine, request: found.metadata.name }
}

/** As `kubectl certificate approve` alone; it is signed then. */
async function approved(request: string): Promise<void> {
  await approve(hub.kube, { metadata: { name: request } }, { reason: 'KubectlApprove', message: 'by kubectl' })
  await expect
    .poll(async () => stateOf((await hub.kube.get(certificateRequests, { name: request }))!).kind)
    .toBe('signed')
}

describe('a request that was approved alone', () => {
  it('is shown with what is missing, and is accepted', async () => {
    const name = aName()
    const { request, asked } = await asks(name)
    await expect.poll(() => listed(name)).toMatchObject([{ missing: ['approval', 'acceptance'] }])
    await approved(request)
    await expect.poll(() => listed(name)).toMatchObject([{ name: request, missing: ['acceptance'] }])
    expect(await accept({ hub: hub.kube, cluster: name })).toEqual([
      expect.stringMatching(`request ${request} was approved already \\(from 10\\.0\\.0\\.1, key`),
      `${name} is accepted as a member`,
    ])
    await expect.poll(() => listed(name)).toEqual([])
    expect(kinds(await told(hub, asked))).toContain('joined')
  })

  it('is turned down for good, also where the cluster is accepted for another machine later', async () => {
    const name = aName()
    const { request, asked } = await asks(name)
    const waiting = told(hub, asked)
    await approved(request)
    await expect.poll(() => listed(name)).toMatchObject([{ missing: ['acceptance'] }])
    expect(await refuse({ hub: hub.kube, cluster: name })).toEqual([
      expect.stringMatching(`request ${request} was approved already, and is turned down now`),
      expect.stringContaining(`cluster ${name} is no member`),
    ])
    expect((await waiting).at(-1)).toEqual(over('join_denied', /denied by clusterpulse deny.*new join token/))
    await expect.poll(() => listed(name)).toEqual([])
    expect((await hub.kube.get(certificateRequests, { name: request }))?.status?.conditions).toMatchObject([
      { type: 'Approved' },
      { type: 'Failed', reason: 'DeniedAfterApproval' },
    ])
    const right = await asks(name)
    await accept({ hub: hub.kube, cluster: name })
    expect(kinds(await told(hub, right.asked))).toContain('joined')
    expect(await told(hub, asked)).toEqual([over('join_denied', /denied by clusterpulse deny/)])
  })

  it('is let in beside no other one: the wrong one of two is turned down first', async () => {
    const name = aName()
    const [wrong, right] = [await asks(name), await asks(name)]
    await approved(wrong.request)
    await expect(accept({ hub: hub.kube, cluster: name })).rejects.toThrow(/2 machines ask/)
    await expect(accept({ hub: hub.kube, cluster: name, request: right.request })).rejects.toThrow(
      new RegExp(`request ${wrong.request} .* approved already.*clusterpulse deny ${name} --request ${wrong.request}`),
    )
    expect(stateOf((await hub.kube.get(certificateRequests, { name: right.request }))!).kind).toBe('pending')
    await refuse({ hub: hub.kube, cluster: name, request: wrong.request })
    await accept({ hub: hub.kube, cluster: name, request: right.request })
    expect(kinds(await told(hub, right.asked))).toContain('joined')
    expect(await told(hub, wrong.asked)).toEqual([over('join_denied', /denied/)])
  })

  it('that OCM’s agent asked for is warned of when its cluster is accepted after it was turned down', async () => {
    const name = aName()
    const { request } = await asks(name)
    await approved(request)
    await refuse({ hub: hub.kube, cluster: name })
    /** as one of a bootstrap kubeconfig, which reads its certificate at the API */
    const asOcm = new Proxy(hub.kube, {
      get(kube, what) {
        const member: unknown = Reflect.get(kube, what)
        if (what !== 'listAll') return typeof member === 'function' ? member.bind(kube) : member
        return async () =>
          (await requestsOf(name)).map((one) => ({ ...one, spec: { ...one.spec, username: bootstrap } }))
      },
    })
    const warning = expect.stringMatching(`^warning: request ${request} was signed before it was turned down`)
    expect(await accept({ hub: asOcm, cluster: name })).toContainEqual(warning)
    expect(await accept({ hub: hub.kube, cluster: name })).not.toContainEqual(warning)
  })

  it('ends with the cluster where that is revoked', async () => {
    const name = aName()
    const { request } = await asks(name)
    await approved(request)
    const credentials = { revoke: async () => false } as unknown as Parameters<typeof revokeMember>[0]['credentials'] // no agent has a token here
    const done = await revokeMember({ hub: hub.kube, cluster: name, tokens: hub.tokens, credentials })
    expect(done).toContainEqual(expect.stringMatching(`request ${request} was approved already, and is turned down`))
    await expect.poll(() => listed(name)).toEqual([])
  })
})

it('a request of a cluster that was accepted alone is shown with what is missing', async () => {
  const name = aName()
  await asks(name)
  await hub.kube.patch(managedClusters, { name }, { spec: { hubAcceptsClient: true } }, { kind: 'merge' })
  await expect.poll(() => listed(name)).toMatchObject([{ missing: ['approval'] }])
  expect(index.signersOf(name, 'accept')).toHaveLength(1)
})

describe('a request of a ManagedCluster that was deleted', () => {
  it('goes with it, and is none of the next one of its name', async () => {
    const name = aName()
    const { request } = await asks(name)
    await expect.poll(() => listed(name)).toHaveLength(1)
    await hub.kube.delete(managedClusters, { name })
    await expect.poll(() => hub.kube.get(certificateRequests, { name: request })).toBeUndefined()
    await expect.poll(() => listed(name)).toEqual([])
    const next = await asks(name)
    await expect.poll(() => listed(name).map((one) => one.name)).toEqual([next.request])
  })

  it('is offered nowhere where it stayed, as one of before, but can be turned down', async () => {
    const name = aName()
    const { pem } = await aRequest(subjectOfMember(name, 'a1'))
    const labels = { 'open-cluster-management.io/cluster-name': name }
    const { username: _, groups: __, ...spec } = signingRequest(pem).spec ?? {}
    await hub.kube.create(certificateRequests, { metadata: { name: `${name}-old`, labels }, spec } as never)
    await asks(aName()) // seen after it
    await expect.poll(() => index.requests().some((one) => one.cluster === `half-${n - 1}`)).toBe(true)
    expect(listed(name)).toEqual([])
    await expect(accept({ hub: hub.kube, cluster: name })).rejects.toThrow(/knows no cluster/)
    // Times at the API are whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    await hub.kube.create(managedClusters, managedClusterOf(name, { hubAcceptsClient: false }))
    const next = await asks(name)
    await expect.poll(() => listed(name).map((one) => one.name)).toEqual([next.request])
    await expect(accept({ hub: hub.kube, cluster: name, request: `${name}-old` })).rejects.toThrow(
      /was asked for a ManagedCluster .* that was deleted since/,
    )
    const done = await accept({ hub: hub.kube, cluster: name })
    expect(done).toContainEqual(expect.stringMatching(/-old is left alone.*deleted since/))
    expect(kinds(await told(hub, next.asked))).toContain('joined')
    expect((await refuse({ hub: hub.kube, cluster: name, request: `${name}-old` }))[0]).toMatch(/-old is denied/)
  })
})

describe('what is missing of a request', () => {
  const at = (minute: number) => new Date(minute * 60_000).toISOString()
  const aCluster = ({
    accepted = false,
    denied,
    annotations = {},
    leaving = false,
  }: {
    accepted?: boolean
    denied?: number
    annotations?: Record<string, string>
    leaving?: boolean
  } = {}): ManagedCluster => ({
    metadata: {
      name: 'east',
      uid: 'u',
      creationTimestamp: at(0),
      annotations,
      ...(leaving && { deletionTimestamp: at(9) }),
    },
    spec: { hubAcceptsClient: accepted },
    ...(denied !== undefined && {
      status: {
        conditions: [{ type: 'HubAcceptedManagedCluster', status: 'False', lastTransitionTime: at(denied) }],
      },
    }),
  })
  const asked = (
    conditions: readonly (readonly [type: string, minute: number])[],
    { minute = 1, owner = 'u', username = 'system:admin' }: { minute?: number; owner?: string; username?: string } = {},
  ): CertificateRequest => ({
    metadata: {
      name: 'east-1',
      creationTimestamp: at(minute),
      ...(owner !== '' && {
        ownerReferences: [{ apiVersion: 'v1', kind: 'ManagedCluster', name: 'east', uid: owner }],
      }),
    },
    spec: { request: '', signerName: 's', usages: [], username },
    status: {
      conditions: conditions.map(([type, when]) => ({ type, status: 'True', lastTransitionTime: at(when) })),
    },
  })
  const both: readonly MissingDecision[] = ['approval', 'acceptance']

  it.each<[string, CertificateRequest, ManagedCluster | undefined, readonly MissingDecision[]]>([
    ['is both of one nobody decided', asked([]), aCluster(), both],
    ['is approval where the cluster is accepted', asked([]), aCluster({ accepted: true }), ['approval']],
    ['is acceptance where it is approved', asked([['Approved', 2]]), aCluster(), ['acceptance']],
    ['is nothing of a member', asked([['Approved', 2]]), aCluster({ accepted: true }), []],
    ['is nothing where it is denied', asked([['Denied', 2]]), aCluster(), []],
    [
      'is nothing where it failed after it was approved',
      asked([
        ['Approved', 2],
        ['Failed', 3],
      ]),
      aCluster(),
      [],
    ],
    [
      'is nothing where the cluster was denied after it was approved',
      asked([['Approved', 2]]),
      aCluster({ denied: 3 }),
      [],
    ],
    [
      'is acceptance where the cluster was denied before',
      asked([['Approved', 4]]),
      aCluster({ denied: 3 }),
      ['acceptance'],
    ],
    ['is both where a denied cluster asks anew', asked([]), aCluster({ denied: 3 }), both],
    [
      'is nothing of one whose certificate was handed out or revoked, before that is said',
      asked([['Approved', 2]]),
      aCluster({ annotations: { [CERTIFICATES_ANNOTATION]: 'revoked-now' } }),
      [],
    ],
    ['is nothing where the cluster is being deleted', asked([]), aCluster({ leaving: true }), []],
    ['is nothing where there is no cluster', asked([]), undefined, []],
    ['is nothing where it was asked for another one of the name', asked([], { owner: 'former' }), aCluster(), []],
    ['is nothing where it is older than the cluster', asked([], { owner: '', minute: -1 }), aCluster(), []],
    [
      'is both where OCM’s agent asked before it made its cluster',
      asked([], { owner: '', minute: -1, username: bootstrap }),
      aCluster(),
      both,
    ],
  ])('%s', (_, request, member, missing) => expect(missingOf(request, member)).toEqual(missing))
})
