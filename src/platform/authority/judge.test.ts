import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  CLUSTERS_EXTRA,
  type Judgement,
  judgeRequest,
  MEMBERS_GROUP,
  memberGroup,
  memberOfUser,
  memberUser,
  subjectOf,
} from './index.ts'
import { aRequest, opensslRequest, signingRequest, subjectOfMember } from './test/requests.ts'

const SIGNERS = ['kubernetes.io/kube-apiserver-client']
const PREFIX = 'system:open-cluster-management:'
const EAST = `/O=${PREFIX}east/CN=${PREFIX}east:one`

const judged = (pem: string, ...more: [spec?: object, labels?: Record<string, string>]): Judgement =>
  judgeRequest(signingRequest(pem, ...more), SIGNERS)

describe('a certificate request of a member', () => {
  it('is recognised as OCM’s agent makes it, with or without the group of all members', async () => {
    const { pem } = await aRequest()
    expect(judged(pem)).toMatchObject({
      kind: 'recognised',
      member: { cluster: 'east', agent: 'one' },
      organizations: [`${PREFIX}east`],
      isRenewal: false,
      expirationSeconds: undefined,
    })
    const both = opensslRequest(`/O=${PREFIX}east/O=${MEMBERS_GROUP}/CN=${PREFIX}east:one`)
    expect(judged(both, { expirationSeconds: 7200 })).toMatchObject({
      kind: 'recognised',
      organizations: [`${PREFIX}east`, MEMBERS_GROUP],
      expirationSeconds: 7200,
    })
  })

  it('is a renewal where the member asks for itself', async () => {
    const { pem } = await aRequest()
    const own = { username: `${PREFIX}east:one`, groups: [`${PREFIX}east`, 'system:authenticated'] }
    expect(judged(pem, own)).toMatchObject({ kind: 'recognised', isRenewal: true })
    expect(judged(pem, { ...own, username: `${PREFIX}east:two` })).toMatchObject({
      kind: 'recognised',
      isRenewal: false,
    })
  })

  it('is none of ours for another signer', async () => {
    const { pem } = await aRequest()
    expect(judged(pem, { signerName: 'kubernetes.io/kubelet-serving' })).toEqual({ kind: 'foreign' })
    expect(judgeRequest({ metadata: {} }, SIGNERS)).toEqual({ kind: 'foreign' })
  })

  const bad: readonly [what: string, pem: () => string, fault: string, sentence: RegExp][] = [
    [
      'an alternative name',
      () => opensslRequest(EAST, { more: ['-addext', 'subjectAltName=DNS:hub.example'] }),
      'extensions',
      /alternative names/,
    ],
    [
      'an address among its names',
      () => opensslRequest(EAST, { more: ['-addext', 'subjectAltName=IP:10.0.0.1,email:a@b.c'] }),
      'extensions',
      /alternative names/,
    ],
    [
      'the wish to be a CA',
      () => opensslRequest(EAST, { more: ['-addext', 'basicConstraints=critical,CA:TRUE'] }),
      'extensions',
      /2\.5\.29\.19/,
    ],
    [
      'the organisation of another cluster',
      () => opensslRequest(`/O=${PREFIX}west/CN=${PREFIX}east:one`),
      'subject',
      /must be exactly "system:open-cluster-management:east".*not "system:open-cluster-management:west"/,
    ],
    [
      'two organisations',
      () => opensslRequest(`/O=${PREFIX}east/O=${PREFIX}west/CN=${PREFIX}east:one`),
      'subject',
      /must be exactly/,
    ],
    [
      'an organisation of administrators beside its own',
      () => opensslRequest(`/O=${PREFIX}east/O=system:masters/CN=${PREFIX}east:one`),
      'subject',
      /must be exactly/,
    ],
    [
      'two organisations in one word',
      () => opensslRequest(`/O=${PREFIX}east+O=system:masters/CN=${PREFIX}east:one`),
      'subject',
      /must be exactly/,
    ],
    ['no organisation', () => opensslRequest(`/CN=${PREFIX}east:one`), 'subject', /not none/],
    [
      'the group of all members alone',
      () => opensslRequest(`/O=${MEMBERS_GROUP}/CN=${PREFIX}east:one`),
      'subject',
      /must be exactly/,
    ],
    [
      'the name of another cluster that begins the same',
      () => opensslRequest(`/O=${PREFIX}east/CN=${PREFIX}east1:one`),
      'subject',
      /must be exactly "system:open-cluster-management:east1"/,
    ],
    ['a foreign common name', () => opensslRequest(`/O=${PREFIX}east/CN=admin`), 'subject', /"admin" is not/],
    [
      'two common names',
      () => opensslRequest(`/O=${PREFIX}east/CN=${PREFIX}east:one/CN=admin`),
      'subject',
      /one common name/,
    ],
    ['an agent of two parts', () => opensslRequest(`/O=${PREFIX}east/CN=${PREFIX}east:one:two`), 'subject', /is not/],
    ['a word more in its subject', () => opensslRequest(`/C=CH${EAST}`), 'subject', /2\.5\.4\.6="CH"/],
    ['an RSA key of 1024 bits', () => opensslRequest(EAST, { key: ['rsa:1024'] }), 'key', /1024 bits/],
    [
      'a key on a curve that is not listed',
      () => opensslRequest(EAST, { key: ['ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1'] }),
      'key',
      /another curve \(secp256k1\)/,
    ],
    [
      'a broken signature',
      () =>
        opensslRequest(EAST).replace(
          /(.{10})\n-----END/,
          (_, tail: string) => `${tail.startsWith('A') ? 'B' : 'A'}${tail.slice(1)}\n-----END`,
        ),
      'request',
      /not signed with the key it names|cannot be read/,
    ],
    ['no request in it', () => 'hello', 'request', /PEM block type/],
    [
      'a giant request',
      () => opensslRequest(`${'/OU=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'.repeat(800)}${EAST}`),
      'request',
      /may have 16384 bytes/,
    ],
  ]
  it.each(bad)('with %s is refused with a sentence', (_, pem, fault, sentence) => {
    expect(judged(pem())).toEqual({ kind: 'faulty', fault, message: expect.stringMatching(sentence) })
  })

  it('is refused without its label, with that of another cluster, and for the group of all members as a cluster', async () => {
    const { pem } = await aRequest()
    const label = 'open-cluster-management.io/cluster-name'
    expect(judged(pem, {}, {})).toMatchObject({ kind: 'faulty', fault: 'label' })
    expect(judged(pem, {}, { [label]: 'west' })).toMatchObject({
      kind: 'faulty',
      fault: 'label',
      message: expect.stringContaining('"west"'),
    })
    const all = await aRequest(subjectOfMember('managed-clusters', 'one'))
    expect(judged(all.pem, {}, { [label]: 'managed-clusters' })).toMatchObject({ kind: 'faulty', fault: 'subject' })
  })

  it.each([
    [['client auth', 'server auth'], 'invalid usage for client certificate: server auth'],
    [['digital signature'], 'missing required usage for client certificate: client auth'],
    [[], 'missing required usage for client certificate: client auth'],
  ])('for the usages %j is refused', async (usages, message) => {
    expect(judged((await aRequest()).pem, { usages })).toEqual({ kind: 'faulty', fault: 'usages', message })
  })

  const askers: readonly [what: string, asker: object, isAllowed: boolean][] = [
    ['a member of another cluster', { username: `${PREFIX}east1:one`, groups: [`${PREFIX}east1`] }, false],
    ['somebody in the group of another cluster', { username: 'ann', groups: [`${PREFIX}west`] }, false],
    [
      'a member of another cluster that pretends to this one',
      { username: `${PREFIX}east:one`, groups: [`${PREFIX}west`] },
      false,
    ],
    [
      'a credential for another cluster',
      { username: 'system:bootstrap:abcdef', groups: [], extra: { [CLUSTERS_EXTRA]: ['west'] } },
      false,
    ],
    [
      'a credential for no cluster',
      { username: 'system:bootstrap:abcdef', groups: [], extra: { [CLUSTERS_EXTRA]: [] } },
      false,
    ],
    [
      'a credential for this cluster',
      { username: 'system:bootstrap:abcdef', groups: [], extra: { [CLUSTERS_EXTRA]: ['west', 'east'] } },
      true,
    ],
    ['a person', { username: 'ann', groups: ['system:masters', MEMBERS_GROUP] }, true],
  ]
  it.each(askers)('asked for by %s: %j is judged by who asks', async (_, asker, isAllowed) => {
    const judgement = judged((await aRequest()).pem, asker)
    expect(judgement).toMatchObject(isAllowed ? { kind: 'recognised' } : { kind: 'faulty', fault: 'requester' })
  })
})

const cluster = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/)
const agent = fc.stringMatching(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?$/)
const words = (common: string, organizations: readonly string[]) => [
  ...organizations.map((value) => ({ oid: '2.5.4.10', value })),
  { oid: '2.5.4.3', value: common },
]

describe('the subject of a member', () => {
  it('says the cluster and agent it was made of, and nobody else', () =>
    fc.assert(
      fc.property(cluster, agent, (cluster, agent) => {
        fc.pre(cluster !== 'managed-clusters')
        const member = { cluster, agent }
        expect(memberOfUser(memberUser(member))).toEqual(member)
        expect(subjectOf(words(memberUser(member), [memberGroup(cluster)]))).toEqual({
          member,
          organizations: [memberGroup(cluster)],
        })
      }),
    ))

  it('is of a cluster only with exactly the group of that cluster, whatever else is asked for', () =>
    fc.assert(
      fc.property(
        cluster,
        agent,
        fc.array(fc.oneof(cluster.map(memberGroup), fc.constant(MEMBERS_GROUP), fc.string()), { maxLength: 3 }),
        (cluster, agent, groups) => {
          const subject = subjectOf(words(memberUser({ cluster, agent }), groups))
          const own = new Set(groups.filter((group) => group !== MEMBERS_GROUP))
          const isExact = own.size === 1 && own.has(memberGroup(cluster)) && cluster !== 'managed-clusters'
          expect(typeof subject === 'object').toBe(isExact)
          if (typeof subject === 'object') expect(subject.member.cluster).toBe(cluster)
        },
      ),
    ))

  it('is never read out of a name that only looks like it', () =>
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        const member = memberOfUser(`system:open-cluster-management:${a}:${b}`)
        if (member) expect([member.cluster, member.agent]).toEqual([a, b])
        expect(a.includes(':') || b.includes(':') || a === '' || b === '' ? member : undefined).toBeUndefined()
      }),
    ))
})
