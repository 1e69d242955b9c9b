import { connect } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { slowness } from '../runtime/testing/slowness.ts'
import type { ApiListener } from './listen.ts'
import { aServer, listening } from './test/server.ts'

/** Sends what no client would, and reads all of the answer. */
async function answerTo({ port, caPem }: ApiListener, request: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, ca: caPem })
  socket.once('secureConnect', () => socket.write(request))
  let answer = ''
  for await (const bytes of socket) answer += String(bytes)
  return answer
}

const asAdmin = 'Host: x\r\nConnection: close\r\nAuthorization: Bearer admin-token\r\n'

const SLOW = { timeout: 20_000 }

describe('watches', () => {
  const [path, listed] = ['/api/v1/configmaps', '/api/v1/configmaps?watch=1']
  const acting = (user: string, group: string) => ({ 'impersonate-user': user, 'impersonate-group': group })
  const member = (cluster: string, agent = 'a1') =>
    acting(`system:open-cluster-management:${cluster}:${agent}`, `system:open-cluster-management:${cluster}`)
  const reader = { metadata: { name: 'reads' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }] }

  it('of one member are bounded, whichever of its agents asks, and those of others and of this process are not', async () => {
    const server = await aServer({ watches: { member: 3, other: 4 } })
    const rbac = 'rbac.authorization.k8s.io'
    await server.objects.put({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', ...reader })
    await server.objects.put({
      ...{ apiVersion: `${rbac}/v1`, kind: 'ClusterRoleBinding', metadata: { name: 'reads' } },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'reads' },
      subjects: [{ apiGroup: rbac, kind: 'Group', name: 'system:authenticated' }],
    })
    const { client, listener } = await listening(server)
    const open = (headers: Record<string, string>) => client.stream(listed, { headers })
    const query = { watch: '1', timeoutSeconds: '1' }
    const asks = (headers: Record<string, string>) => client.ask('GET', path, { query, headers })
    const first = await open(member('east'))
    await using _two = await open(member('east'))
    await using _three = await open(member('east', 'a2'))
    const refused = await asks(member('east', 'a3'))
    expect([refused.code, refused.headers.get('retry-after')]).toEqual([429, '10'])
    expect(refused.body).toMatchObject({
      ...{ kind: 'Status', reason: 'TooManyRequests', details: { retryAfterSeconds: 10 } },
      message: expect.stringMatching(/^the agents of east have 3 watches open, and may have 3: end some/),
    })
    expect(server.watches.refused).toBe(1)
    // Lists are none, and others have bounds of their own.
    expect((await client.ask('GET', path, { headers: member('east') })).code).toBe(200)
    await using _west = await open(member('west'))
    const somebody = acting('ann', 'system:authenticated')
    const anns = await Promise.all(Array.from({ length: 4 }, () => open(somebody)))
    expect((await asks(somebody)).body.message).toMatch(/^ann has 4 watches open, and may have 4/)
    const admins = await Promise.all(Array.from({ length: 6 }, () => client.stream(listed, {})))
    const here = new AbortController()
    const headers = { authorization: 'Bearer viewer-token' }
    for (let n = 0; n < 6; n++) {
      const answer = await listener.answer({ method: 'GET', path: listed, headers }, here.signal)
      expect(answer.status).toBe(200)
    }
    here.abort()
    // One that ends makes room.
    await first[Symbol.asyncDispose]()
    await expect.poll(async () => (await asks(member('east'))).code, SLOW).toBe(200)
    for (const one of [...anns, ...admins]) await one[Symbol.asyncDispose]()
  })
})

describe('a request', () => {
  it('acts as another also where that stands behind thousands of other headers', async () => {
    const { listener } = await listening(await aServer())
    const many = 'a:\r\n'.repeat(2500)
    const request = `GET /api/v1/secrets HTTP/1.1\r\n${asAdmin}${many}Impersonate-User: nobody\r\n\r\n`
    expect(await answerTo(listener, request)).toMatch(/^HTTP\/1\.1 403 /)
  })

  it.each(['//', '///', '//x:y', '//[', '/%', 'http://[/'])(
    'is answered though it is addressed to %s',
    async (path) => {
      const { listener } = await listening(await aServer())
      const head = 'Host: x\r\nConnection: close\r\n\r\n'
      expect(await answerTo(listener, `GET ${path} HTTP/1.1\r\n${head}`)).toMatch(/^HTTP\/1\.1 40[01] /)
    },
  )

  it.each([
    ['nobody', '', 401],
    ['somebody unknown', 'Authorization: Bearer guess\r\n', 401],
  ])('of %s is refused before its body comes', async (_, credential, code) => {
    const { listener } = await listening(await aServer())
    const head = `Host: x\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n${credential}`
    const request = `POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n${head}\r\n`
    expect(await answerTo(listener, request)).toMatch(new RegExp(`^HTTP/1\\.1 ${code} `))
  })

  it('addressed with more slashes than one is for the same path', async () => {
    const { listener } = await listening(await aServer())
    expect(await answerTo(listener, `GET //api/v1/secrets HTTP/1.1\r\n${asAdmin}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it.each([
    ['PUT', '/api/v1/namespaces/default/finalize', null, 200],
    ['PUT', '/api/v1/namespaces/default/finalize', { spec: { finalizers: 5 } }, 400],
    ['POST', '/api/v1/namespaces/default/serviceaccounts/a/token', { spec: null }, 201],
    ['POST', '/api/v1/namespaces/default/serviceaccounts/a/token', { spec: { expirationSeconds: 'x' } }, 422],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'text', 400],
    [
      'POST',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      { spec: { user: 'x', groups: 'system:masters', resourceAttributes: { verb: 'get' } } },
      422,
    ],
  ])('is the fault of its sender: %s %s with %j', async (method, path, body, code) => {
    const server = await aServer()
    await server.objects.create({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'a', namespace: 'default' },
    })
    const { client } = await listening(server)
    expect((await client.ask(method, path, { body })).code).toBe(code)
  })

  it('whose body is no gzip is told so', async () => {
    const { listener } = await listening(await aServer())
    const head = `POST /api/v1/namespaces HTTP/1.1\r\n${asAdmin}Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\n`
    expect(await answerTo(listener, `${head}garbage`)).toMatch(/^HTTP\/1\.1 400 [\s\S]*is no gzip/)
  })

  it('of YAML with very many keys keeps nobody waiting', async () => {
    const { client } = await listening(await aServer())
    const body = Array.from({ length: 30_000 }, (_, n) => `k${n}: v`).join('\n')
    const from = performance.now()
    const type = 'application/yaml'
    const at = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    expect((await client.ask('POST', at, { body, type })).code).toBe(422)
    expect((performance.now() - from) / slowness).toBeLessThan(8_000) // 25 s on two loaded cores where keys are compared with each other
    const doubled = await client.ask('POST', at, { body: 'spec: {}\nspec: {}\n', type })
    expect([doubled.code, doubled.body.message]).toEqual([400, expect.stringContaining('"spec" stands twice')])
  })

  it('watches for as long as it likes, beyond what a timer holds too', async () => {
    const server = await aServer()
    const { client } = await listening(server)
    await using watch = await client.watch('/api/v1/configmaps', { timeoutSeconds: '99999999999' })
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } }
    await new Promise((resolve) => setTimeout(resolve, 20)) // a timer that is too long rings after 1 ms
    await server.objects.create(map)
    expect((await watch.next())?.object.metadata.name).toBe('a')
  })
})

describe('a definition of a kind that the server has itself', () => {
  const definition = (group: string, plural: string, kind: string) => {
    const schema = { openAPIV3Schema: { type: 'object' } }
    const versions = [{ name: 'v1', served: true, storage: true, schema }]
    const spec = { group, scope: 'Cluster', names: { plural, kind }, versions }
    const apiVersion = 'apiextensions.k8s.io/v1'
    return { apiVersion, kind: 'CustomResourceDefinition', metadata: { name: `${plural}.${group}` }, spec }
  }
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'

  it.each([
    ['rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole'],
    ['rbac.authorization.k8s.io', 'others', 'ClusterRole'],
    ['apiextensions.k8s.io', 'customresourcedefinitions', 'CustomResourceDefinition'],
  ])('is refused: %s %s %s', async (...names) => {
    const { client } = await listening(await aServer())
    const at = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    expect((await client.ask('POST', at, { body: definition(...names) })).code).toBe(422)
    expect((await client.ask('GET', roles)).code).toBe(200)
  })

  it('and is stored from before takes nothing with it', async () => {
    const server = await aServer({ defaultRoles: true })
    const { client } = await listening(server)
    const stored = await server.objects.put(definition('rbac.authorization.k8s.io', 'clusterroles', 'ClusterRole'))
    const count = async () => (await client.ask('GET', roles)).body.items?.length
    const before = await count()
    expect(before).toBeGreaterThan(0)
    await client.ask('DELETE', `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${stored.metadata.name}`)
    const definitions = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' }
    await expect.poll(() => server.objects.get(definitions, { name: stored.metadata.name })).toBeUndefined()
    expect(await count()).toBe(before)
  })
})
