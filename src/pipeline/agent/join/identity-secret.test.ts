import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiObject, ApiServer, listenApi } from '#apiserver'
import { createKubeClient, type OwnedKubeClient, secrets } from '#kube'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { newKey } from './certificate-request.ts'
import { type Asking, IdentityError, type MemberIdentity } from './identity.ts'
import { IdentitySecret } from './identity-secret.ts'

const NAMESPACE = 'agents'
const TOKEN = 'of-the-agent'
const account = { kind: 'User', name: 'agent', apiGroup: 'rbac.authorization.k8s.io' }
const rbac = (kind: string, body: object) => ({
  ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind },
  ...{ metadata: { name: 'agent', namespace: NAMESPACE }, ...body },
})

let server: ApiServer
let agent: OwnedKubeClient
let pair = { cert: '', key: '' }
const closing: AsyncDisposable[] = []
beforeAll(async () => {
  pair = await (await TestAuthority.make('test')).sign('west', 'client')
  server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'member', defaultRoles: true })
  const objects = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    ...['identity', 'other'].map((name) => ({
      ...{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name, namespace: NAMESPACE } },
    })),
    rbac('Role', {
      rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['identity'], verbs: ['get', 'patch'] }],
    }),
    rbac('RoleBinding', {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'agent' },
      subjects: [account],
    }),
  ]
  for (const object of objects) await server.objects.put(object as unknown as ApiObject)
  const listener = await listenApi({
    tokens: [{ token: TOKEN, user: 'agent', groups: [] }],
    mounts: new Map([['', server]]),
  })
  const credentials = { kind: 'token' as const, token: TOKEN }
  agent = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  closing.push(agent, listener, server)
})
afterAll(async () => {
  for (const one of closing) await one[Symbol.asyncDispose]()
})

const hub = { addresses: ['hub:9443'], caFingerprint: 'ab'.repeat(32) }
const asking = (): Asking => ({
  ...{ hub, roots: '', cluster: 'west', agent: 'a1', key: newKey(), request: 'AAAA', token: 'secret' },
})
const member = (): MemberIdentity => ({
  ...{ hub, roots: '', cluster: 'west', agent: 'a1', key: pair.key, certificate: pair.cert, joinedBy: 'ab' },
})
const storeOf = (name = 'identity') => new IdentitySecret(agent, { namespace: NAMESPACE, name })
const stored = () => server.objects.get(secrets, { namespace: NAMESPACE, name: 'identity' })

describe('an identity in a Secret', () => {
  it('is nothing at first, then the question, then the certificate with its key, with the right to that Secret alone', async () => {
    const store = storeOf()
    expect(await store.member()).toBeUndefined()
    expect(await store.asking()).toBeUndefined()
    const asked = asking()
    await store.ask(asked)
    expect(await storeOf().asking()).toEqual(asked)
    await store.join(member())
    expect(await storeOf().member()).toEqual(member())
    expect(await storeOf().asking()).toBeUndefined()
    expect(Object.keys((stored()?.data ?? {}) as object)).toEqual(['member.json'])
    await store.ask(asked)
    await store.forget()
    expect(await store.asking()).toBeUndefined()
    expect(await store.member()).toEqual(member())
  })

  it('says what to do where its Secret is not there, and where it is damaged', async () => {
    await expect(storeOf('other').member()).rejects.toMatchObject({ reason: 'forbidden' })
    await storeOf().join(member())
    const object = stored() as ApiObject
    await server.objects.put({ ...object, data: { 'member.json': Buffer.from('{').toString('base64') } })
    await expect(storeOf().member()).rejects.toThrow(/member\.json in Secret agents\/identity is damaged/)
    await server.objects.delete(secrets, { namespace: NAMESPACE, name: 'identity' })
    await expect(storeOf().member()).rejects.toThrow(IdentityError)
    await expect(storeOf().keep(member())).rejects.toThrow(/clusterpulse connect NAME -o manifest/)
  })
})
