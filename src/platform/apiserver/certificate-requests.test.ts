import { X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { aRequest, opensslRequest, subjectOfMember } from '../authority/test/requests.ts'
import { type Answer, eventually, namesOf, type Subject, subjects, uniqueName } from './behaviour/subject.ts'
import { TestAuthority } from './test/certificates.ts'

const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const REVIEWS = '/apis/authorization.k8s.io/v1'
const SIGNER = 'kubernetes.io/kube-apiserver-client'
const OTHER_SIGNER = 'example.com/nobody'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

type Json = Record<string, unknown>
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const [embedded, , original] = subjects
const targets = [embedded, original].filter((one) => one !== undefined)

describe.each(targets)('certificate requests, $name', ({ skip, start }) => {
  let subject: Subject
  const ask: Subject['ask'] = (...args) => subject.ask(...args)

  let pem: string
  let certificate: string
  beforeAll(async () => {
    if (skip) return
    subject = await start()
    pem = (await aRequest()).pem
    const authority = await TestAuthority.create('signer')
    certificate = base64((await authority.sign({ subject: 'CN=signed' })).cert)
  })
  afterAll(() => subject?.[Symbol.asyncDispose]())

  const body = (spec: Json = {}, more: Json = {}) => ({
    metadata: { name: uniqueName('csr') },
    spec: { request: base64(pem), signerName: OTHER_SIGNER, usages: ['client auth'], ...spec },
    ...more,
  })
  const condition = (type: string, more: Json = {}) => ({
    type,
    status: 'True',
    reason: 'Suite',
    message: 'said',
    ...more,
  })

  async function made(spec: Json = {}): Promise<Answer['body']> {
    const answer = await ask('POST', PATH, { body: body(spec) })
    expect(answer.code, JSON.stringify(answer.body)).toBe(201)
    return answer.body
  }
  const write = (object: Answer['body'], sub: string, status: Json, as?: { user: string }) =>
    ask('PUT', `${PATH}/${object.metadata.name}${sub}`, { body: { ...object, status }, ...(as ? { as } : {}) })
  const causes = ({ body: said }: Answer): string[] =>
    (said.details?.causes ?? [])
      .map(({ reason, field }: { reason: string; field: string }) => `${reason} ${field}`)
      .sort()

  /** Somebody who may read and write requests at every door, and has these rights on signers. */
  async function somebody(verb: string, signer: string): Promise<{ user: string }> {
    const [user, name] = [uniqueName('user'), uniqueName('role')]
    const group = ['certificates.k8s.io']
    const resources = [
      'certificatesigningrequests',
      'certificatesigningrequests/approval',
      'certificatesigningrequests/status',
    ]
    const rules = [
      { apiGroups: group, resources, verbs: ['*'] },
      { apiGroups: group, resources: ['signers'], resourceNames: [signer], verbs: [verb] },
      { apiGroups: [''], resources: [name], verbs: ['settle'] },
    ]
    expect((await ask('POST', `${RBAC}/clusterroles`, { body: { metadata: { name }, rules } })).code).toBe(201)
    const roleRef = { kind: 'ClusterRole', name }
    const subjects = [{ kind: 'User', name: user }]
    expect(
      (await ask('POST', `${RBAC}/clusterrolebindings`, { body: { metadata: { name }, roleRef, subjects } })).code,
    ).toBe(201)
    const resourceAttributes = { verb: 'settle', resource: name }
    await eventually(
      () => ask('POST', `${REVIEWS}/subjectaccessreviews`, { body: { spec: { user, resourceAttributes } } }),
      ({ body: review }) => review.status.allowed,
    )
    return { user }
  }

  describe.skipIf(skip)(skip ?? 'one of them', () => {
    it('says who asked for it, whatever it says itself, and begins undecided', async () => {
      const as = await somebody('approve', SIGNER)
      const lies = { username: 'root', uid: '0', groups: ['system:masters'], extra: { scopes: ['all'] } }
      const status = { conditions: [condition('Approved')], certificate }
      const answer = await ask('POST', PATH, { body: body(lies, { status }), as })
      expect(answer.code).toBe(201)
      expect(answer.body).toMatchObject({
        kind: 'CertificateSigningRequest',
        apiVersion: 'certificates.k8s.io/v1',
        spec: {
          username: as.user,
          groups: ['system:authenticated'],
          usages: ['client auth'],
          signerName: OTHER_SIGNER,
        },
        status: {},
      })
      expect(Object.keys(answer.body.spec).sort()).toEqual(['groups', 'request', 'signerName', 'usages', 'username'])
      expect(answer.body.status).toEqual({})
    })

    it('never changes what it asks for, and is decided nowhere but at its doors', async () => {
      const object = await made()
      const changed = {
        ...object,
        spec: { ...object.spec, signerName: SIGNER, username: 'root', usages: ['server auth'] },
      }
      const metadata = { ...object.metadata, labels: { a: 'b' } }
      const status = { conditions: [condition('Approved')], certificate }
      const answer = await ask('PUT', `${PATH}/${object.metadata.name}`, { body: { ...changed, metadata, status } })
      expect(answer.code).toBe(200)
      expect(answer.body).toMatchObject({ metadata: { labels: { a: 'b' } }, spec: object.spec, status: {} })
      expect(answer.body.status).toEqual({})
      const patched = await ask('PATCH', `${PATH}/${object.metadata.name}`, {
        body: { spec: { signerName: SIGNER } },
        type: 'application/merge-patch+json',
      })
      expect([patched.code, patched.body.spec.signerName]).toEqual([200, OTHER_SIGNER])
    })

    it.each<[what: string, spec: Json, causes: string[]]>([
      ['no request', { request: base64('hello') }, ['FieldValueInvalid spec.request']],
      ['an empty request', { request: '' }, ['FieldValueInvalid spec.request']],
      ['no usages', { usages: [] }, ['FieldValueRequired spec.usages']],
      ['unknown usages', { usages: ['client auth', 'flying'] }, ['FieldValueNotSupported spec.usages[1]']],
      ['a usage twice', { usages: ['client auth', 'client auth'] }, ['FieldValueDuplicate spec.usages[1]']],
      ['no signer', { signerName: undefined }, ['FieldValueRequired spec.signerName']],
      ['a signer without a domain', { signerName: 'nobody' }, ['FieldValueInvalid spec.signerName']],
      ['a signer of one word', { signerName: 'com/nobody' }, ['FieldValueInvalid spec.signerName']],
      ['a signer of three parts', { signerName: 'example.com/a/b' }, ['FieldValueInvalid spec.signerName']],
      [
        'a signer in capitals',
        { signerName: 'Example.com/Nobody' },
        ['FieldValueInvalid spec.signerName', 'FieldValueInvalid spec.signerName'],
      ],
      ['the signer of old', { signerName: 'kubernetes.io/legacy-unknown' }, ['FieldValueInvalid spec.signerName']],
      ['a life of less than ten minutes', { expirationSeconds: 599 }, ['FieldValueInvalid spec.expirationSeconds']],
      [
        'several faults',
        { request: '', usages: ['x'], expirationSeconds: -1 },
        [
          'FieldValueInvalid spec.expirationSeconds',
          'FieldValueInvalid spec.request',
          'FieldValueNotSupported spec.usages[0]',
        ],
      ],
    ])('is refused with %s', async (_, spec, expected) => {
      const answer = await ask('POST', PATH, { body: body(spec) })
      expect([answer.code, answer.body.reason]).toEqual([422, 'Invalid'])
      expect(causes(answer)).toEqual(expected)
    })

    it('is refused where its signature is broken', async () => {
      const broken = pem.replace(
        /(.)(.{9})\n-----END/,
        (_, one: string, rest: string) => `${one === 'A' ? 'B' : 'A'}${rest}\n-----END`,
      )
      const answer = await ask('POST', PATH, { body: body({ request: base64(broken) }) })
      expect([answer.code, causes(answer)]).toEqual([422, ['FieldValueInvalid spec.request']])
    })

    it('is not taken for the group that may do everything, by the signer of the API’s clients', async () => {
      const request = base64(opensslRequest('/O=ops/O=system:masters/CN=root'))
      const refused = await ask('POST', PATH, { body: body({ request, signerName: SIGNER }) })
      expect([refused.code, refused.body.reason]).toEqual([403, 'Forbidden'])
      expect(refused.body.message).toMatch(
        /use of kubernetes\.io\/kube-apiserver-client signer with system:masters group is not allowed$/,
      )
      expect((await ask('POST', PATH, { body: body({ request }) })).code).toBe(201)
    })

    it('is approved by who may approve for its signer or the signer’s domain, and by nobody else', async () => {
      const object = await made()
      const status = { conditions: [condition('Approved')] }
      const wrong = await somebody('approve', SIGNER)
      const refused = await write(object, '/approval', status, wrong)
      expect([refused.code, refused.body.message]).toEqual([
        403,
        `certificatesigningrequests.certificates.k8s.io "${object.metadata.name}" is forbidden: user not permitted to approve requests with signerName "${OTHER_SIGNER}"`,
      ])
      const signer = await somebody('sign', OTHER_SIGNER)
      expect((await write(object, '/approval', status, signer)).code).toBe(403)
      const approver = await somebody('approve', OTHER_SIGNER)
      const approved = await write(object, '/approval', status, approver)
      expect([approved.code, approved.body.status.conditions]).toEqual([
        200,
        [{ ...condition('Approved'), lastUpdateTime: expect.any(String), lastTransitionTime: expect.any(String) }],
      ])
      const ofDomain = await somebody('approve', 'example.com/*')
      expect((await write(await made(), '/approval', status, ofDomain)).code).toBe(200)
    })

    it('gets nothing but conditions through the door of approval', async () => {
      const object = await made()
      const spec = { ...object.spec, signerName: SIGNER }
      const answer = await ask('PUT', `${PATH}/${object.metadata.name}/approval`, {
        body: { ...object, spec, status: { conditions: [condition('Approved')], certificate } },
      })
      expect(answer.code).toBe(200)
      expect(answer.body.spec).toEqual(object.spec)
      expect(Object.keys(answer.body.status)).toEqual(['conditions'])
    })

    it('is denied once and for all: no condition goes, and none contradicts another', async () => {
      const object = await made()
      const denied = await write(object, '/approval', { conditions: [condition('Denied')] })
      expect(denied.code).toBe(200)
      const both = await write(denied.body, '/approval', {
        conditions: [...denied.body.status.conditions, condition('Approved')],
      })
      expect([both.code, causes(both)]).toEqual([422, ['FieldValueInvalid status.conditions']])
      const none = await write(denied.body, '/approval', { conditions: [] })
      expect([none.code, causes(none)]).toEqual([422, ['FieldValueForbidden status.conditions']])
    })

    it.each<[what: string, conditions: Json[], causes: unknown[]]>([
      ['without a type', [{ status: 'True' }], ['FieldValueRequired status.conditions[0].type']],
      ['of an empty type', [condition('')], ['FieldValueRequired status.conditions[0].type']],
      ['without a status', [{ type: 'Approved' }], ['FieldValueRequired status.conditions[0].status']],
      [
        'that is approved and not',
        [condition('Approved', { status: 'False' })],
        ['FieldValueNotSupported status.conditions[0].status'],
      ],
      [
        'of another word',
        [condition('Seen', { status: 'Maybe' })],
        ['FieldValueNotSupported status.conditions[0].status'],
      ],
      [
        'twice',
        [condition('Approved'), condition('Approved')],
        [expect.stringMatching(/^FieldValueDuplicate status\.conditions\[1\]/)],
      ],
    ])('is not approved by a condition %s', async (_, conditions, expected) => {
      const answer = await write(await made(), '/approval', { conditions })
      expect([answer.code, causes(answer)]).toEqual([422, expected])
    })

    it('is signed by who may sign for its signer, once, and not decided by them', async () => {
      const approved = (await write(await made(), '/approval', { conditions: [condition('Approved')] })).body
      const approver = await somebody('approve', OTHER_SIGNER)
      const refused = await write(approved, '/status', { ...approved.status, certificate }, approver)
      expect([refused.code, refused.body.message]).toEqual([
        403,
        `certificatesigningrequests.certificates.k8s.io "${approved.metadata.name}" is forbidden: user not permitted to sign requests with signerName "${OTHER_SIGNER}"`,
      ])
      const signer = await somebody('sign', OTHER_SIGNER)
      for (const bad of [base64('no certificate'), base64(pem)]) {
        const answer = await write(approved, '/status', { ...approved.status, certificate: bad }, signer)
        expect([answer.code, causes(answer)]).toEqual([422, ['FieldValueInvalid status.certificate']])
      }
      const deciding = await write(await made(), '/status', { conditions: [condition('Approved')] }, signer)
      expect([deciding.code, causes(deciding)]).toEqual([422, ['FieldValueForbidden status.conditions']])
      const signed = await write(approved, '/status', { ...approved.status, certificate }, signer)
      expect([signed.code, signed.body.status.certificate]).toEqual([200, certificate])
      expect(new X509Certificate(Buffer.from(signed.body.status.certificate, 'base64')).subject).toBe('CN=signed')
      const again = await write(
        signed.body,
        '/status',
        { ...signed.body.status, certificate: base64(`\n${Buffer.from(certificate, 'base64')}`) },
        signer,
      )
      expect([again.code, causes(again)]).toEqual([422, ['FieldValueForbidden status.certificate']])
    })

    it('fails by the word of its signer, beside what was decided', async () => {
      const approved = (await write(await made(), '/approval', { conditions: [condition('Approved')] })).body
      const conditions = [
        ...approved.status.conditions,
        condition('Failed', { lastUpdateTime: '2026-01-01T00:00:00Z' }),
      ]
      const failed = await write(approved, '/status', { conditions })
      expect([failed.code, failed.body.status.conditions]).toEqual([
        200,
        [approved.status.conditions[0], { ...conditions[1], lastTransitionTime: expect.any(String) }],
      ])
      const forgotten = await write(failed.body, '/status', { conditions: approved.status.conditions })
      expect([forgotten.code, causes(forgotten)]).toEqual([422, ['FieldValueForbidden status.conditions']])
    })

    it('is found by its signer, and shown as kubectl shows it', async () => {
      const signerName = `example.com/${uniqueName('signer')}`
      const { metadata } = await made({ signerName, expirationSeconds: 7200 })
      await made()
      const selected = (fieldSelector: string) =>
        ask('GET', PATH, { query: { fieldSelector }, accept: 'application/json' })
      expect(namesOf(await selected(`spec.signerName=${signerName}`))).toEqual([metadata.name])
      const unknown = await selected('spec.username=admin')
      expect([unknown.code, unknown.body.message]).toEqual([
        400,
        expect.stringContaining('field label not supported: spec.username'),
      ])
      const table = await ask('GET', `${PATH}/${metadata.name}`, { accept: TABLE })
      const columns = table.body.columnDefinitions.map(({ name, type, format, priority }: Json) => [
        name,
        type,
        format,
        priority,
      ])
      expect(columns).toEqual([
        ['Name', 'string', 'name', 0],
        ['Age', 'string', '', 0],
        ['SignerName', 'string', '', 0],
        ['Requestor', 'string', '', 0],
        ['RequestedDuration', 'string', '', 0],
        ['Condition', 'string', '', 0],
      ])
      const cells = async (name: string) => (await ask('GET', `${PATH}/${name}`, { accept: TABLE })).body.rows[0].cells
      expect(await cells(metadata.name)).toEqual([
        metadata.name,
        expect.any(String),
        signerName,
        'admin',
        '120m',
        'Pending',
      ])
      const denied = (await write(await made(), '/approval', { conditions: [condition('Denied')] })).body
      expect((await cells(denied.metadata.name)).slice(4)).toEqual(['<none>', 'Denied'])
      const approved = (await write(await made(), '/approval', { conditions: [condition('Approved')] })).body
      await write(approved, '/status', {
        conditions: [...approved.status.conditions, condition('Failed')],
        certificate,
      })
      expect((await cells(approved.metadata.name))[5]).toBe('Approved,Failed,Issued')
    })

    it('is announced with its doors, and gone when deleted', async () => {
      const { body: list } = await ask('GET', '/apis/certificates.k8s.io/v1')
      const announced = list.resources
        .filter(({ kind }: Json) => kind === 'CertificateSigningRequest')
        .map(({ name, namespaced, shortNames, verbs }: Json & { verbs: string[] }) => [
          name,
          namespaced,
          shortNames,
          verbs.toSorted(),
        ])
      expect(announced).toEqual([
        [
          'certificatesigningrequests',
          false,
          ['csr'],
          ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
        ],
        ['certificatesigningrequests/approval', false, undefined, ['get', 'patch', 'update']],
        ['certificatesigningrequests/status', false, undefined, ['get', 'patch', 'update']],
      ])
      const { metadata } = await made()
      expect((await ask('GET', `${PATH}/${metadata.name}/approval`)).body.metadata.uid).toBe(metadata.uid)
      expect((await ask('DELETE', `${PATH}/${metadata.name}`)).code).toBe(200)
      expect((await ask('GET', `${PATH}/${metadata.name}`)).code).toBe(404)
    })

    it('of a member is taken like every other: what it may not have is refused by who signs', async () => {
      const west = await aRequest(subjectOfMember('west', 'one'))
      expect((await made({ request: base64(west.pem), signerName: SIGNER })).spec.request).toBe(base64(west.pem))
    })
  })
})
