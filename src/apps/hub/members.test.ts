import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ApiObject, ApiServer } from '#apiserver'
import { clusterConnection } from '#kinds'
import { kubeconfigPaths } from '#kube'
import { silentLogger } from '#runtime'
import { DeclaredOnce } from './declared-once.ts'
import { declareMembers, kubeconfigMembers, type Member } from './members.ts'
import { HUB_NAMESPACE } from './object-names.ts'

const connections = { group: 'clusterpulse.io', version: 'v1alpha1', plural: 'clusterconnections' }
const secrets = { group: '', version: 'v1', plural: 'secrets' }

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'members-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('kubeconfigPaths', () => {
  it('takes the file that is named before KUBECONFIG', () => {
    expect(kubeconfigPaths('/a/b', { KUBECONFIG: '/c' })).toEqual(['/a/b'])
    expect(kubeconfigPaths(undefined, { KUBECONFIG: '/c:/d' })).toEqual(['/c', '/d'])
  })
})

describe('kubeconfigMembers', () => {
  const kubeconfig = async (contexts: readonly string[]) => {
    const path = join(folder, 'config')
    const list = contexts.map((name) => `- {name: ${JSON.stringify(name)}, context: {cluster: c, user: u}}`).join('\n')
    await writeFile(
      path,
      `kind: Config\ncontexts:\n${list}\nclusters:\n- {name: c, cluster: {server: "https://127.0.0.1:9", insecure-skip-tls-verify: true}}\nusers:\n- {name: u, user: {token: very-secret}}\n`,
    )
    return path
  }

  it('makes each context one cluster with a name that Kubernetes accepts, never the same twice', async () => {
    const path = await kubeconfig(['admin@East', 'admin/east', 'admin-east', '???'])
    const { members } = await kubeconfigMembers([path], [], silentLogger)
    expect(members.map((member) => member.name)).toEqual(['admin-east', 'admin-east-2', 'admin-east-3', 'cluster'])
    expect(members.map((member) => member.displayName)).toEqual(['admin@East', 'admin/east', 'admin-east', '???'])
  })

  it('leaves credentials in the kubeconfig and keeps the choice not to verify visible', async () => {
    const path = await kubeconfig(['east'])
    const { members } = await kubeconfigMembers([path], ['east'], silentLogger)
    expect(members[0]).toMatchObject({
      credentials: { kubeconfigPath: path, context: 'east' },
      insecureSkipTlsVerify: true,
    })
    expect(JSON.stringify(members)).not.toContain('very-secret')
  })

  it('names the contexts there are when one is unknown', async () => {
    const path = await kubeconfig(['east', 'west'])
    await expect(kubeconfigMembers([path], ['north'], silentLogger)).rejects.toThrow(/"north".*east.*west/)
  })
})

describe('declareMembers', () => {
  const member = (name: string, more: Partial<Member> = {}): Member => ({
    name,
    displayName: name,
    endpoint: 'https://127.0.0.1:9',
    labels: {},
    credentials: { token: 'one' },
    insecureSkipTlsVerify: false,
    ...more,
  })
  /** As a start does: with what the folder remembers of the starts before. */
  const declare = async (
    server: ApiServer,
    members: readonly Member[],
    more: Partial<Parameters<typeof declareMembers>[2]> = {},
  ) => {
    const declared = DeclaredOnce.open(server)
    await declareMembers(server, members, { declared, logger: silentLogger, ...more })
    return declared.deleted
  }
  const opened = async () => {
    const server = await ApiServer.open({ storage: { kind: 'memory' } })
    await server.objects.put(clusterConnection.crd() as unknown as ApiObject)
    await server.objects.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: HUB_NAMESPACE } })
    return server
  }
  const names = (server: ApiServer) =>
    server.objects.list(connections, { namespace: HUB_NAMESPACE }).map(({ metadata }) => metadata.name)

  it('adds, keeps what people set, removes what is no longer asked for, and leaves others alone', async () => {
    await using server = await opened()
    await declare(server, [member('a'), member('b')])
    expect(names(server)).toEqual(['a', 'b'])

    const key = { name: 'a', namespace: HUB_NAMESPACE }
    const a = server.objects.get(connections, key) as ApiObject
    await server.objects.update({ ...a, spec: { ...(a.spec as object), monitoring: { interval: 60 } } })
    await server.objects.create({
      apiVersion: 'clusterpulse.io/v1alpha1',
      kind: 'ClusterConnection',
      metadata: { name: 'by-hand', namespace: HUB_NAMESPACE },
      spec: { endpoint: 'https://127.0.0.1:9', credentialsRef: { name: 'mine' } },
    })
    const before = server.objects.get(connections, key)?.metadata.resourceVersion
    await declare(server, [member('a'), member('by-hand')])
    expect(names(server)).toEqual(['a', 'by-hand'])
    expect(server.objects.get(connections, key)).toMatchObject({
      metadata: { resourceVersion: before },
      spec: { monitoring: { interval: 60 } },
    })
    expect(server.objects.get(connections, { name: 'by-hand', namespace: HUB_NAMESPACE })?.spec).toMatchObject({
      credentialsRef: { name: 'mine' },
    })
    expect(server.objects.get(secrets, { name: 'b-access', namespace: HUB_NAMESPACE })).toBeUndefined()

    await declare(server, [member('a', { credentials: { token: 'two' }, endpoint: 'https://127.0.0.1:10' })])
    expect(server.objects.get(connections, key)?.spec).toMatchObject({
      endpoint: 'https://127.0.0.1:10',
      monitoring: { interval: 60 },
    })
    expect(server.objects.get(secrets, { name: 'a-access', namespace: HUB_NAMESPACE })?.data).toEqual({
      token: Buffer.from('two').toString('base64'),
    })
  })

  it('says on the Secret which endpoint its token is for, on other ports too; a kubeconfig says it itself', async () => {
    await using server = await opened()
    const annotationsOf = (name: string) =>
      server.objects.get(secrets, { name: `${name}-access`, namespace: HUB_NAMESPACE })?.metadata.annotations
    const file = member('file', { credentials: { kubeconfigPath: '/home/me/config', context: 'x' } })
    await declare(server, [member('a'), file])
    await declare(server, [member('a', { endpoint: 'https://127.0.0.1:10' }), file])
    expect(annotationsOf('a')).toEqual({ 'clusterpulse.io/endpoint': 'https://127.0.0.1:10' })
    expect(annotationsOf('file')).toBeUndefined()
  })

  it('takes only what the kubeconfig that is read declared before and lacks now, and not what it cannot use today', async () => {
    await using server = await opened()
    const of = (file: string, name: string) => member(name, { credentials: { kubeconfigPath: file, context: name } })
    await declare(server, [of('/one', 'a'), of('/one', 'b'), of('/one', 'c')], { paths: ['/one'] })
    await declare(server, [of('/two', 'd')], { paths: ['/two'] })
    expect(names(server)).toEqual(['a', 'b', 'c', 'd'])
    await declare(server, [], {})
    expect(names(server)).toEqual(['a', 'b', 'c', 'd'])
    await declare(server, [of('/one', 'a')], { paths: ['/one'], leftOut: ['c'] })
    expect(names(server)).toEqual(['a', 'c', 'd'])
  })

  it('makes each cluster once: what people edit stays, what they delete stays deleted until it is named', async () => {
    await using server = await opened()
    const key = { name: 'a', namespace: HUB_NAMESPACE }
    await declare(server, [member('a', { labels: { tier: 'one' } }), member('b')])
    const a = server.objects.get(connections, key) as ApiObject
    await server.objects.update({ ...a, spec: { ...(a.spec as object), displayName: 'Mine', labels: { mine: 'yes' } } })
    await server.objects.delete(connections, { ...key, name: 'b' })
    const again = [member('a', { labels: { tier: 'one' } }), member('b')]
    expect(await declare(server, again)).toEqual(['ClusterConnection/b'])
    expect(names(server)).toEqual(['a'])
    expect(server.objects.get(connections, key)?.spec).toMatchObject({ displayName: 'Mine', labels: { mine: 'yes' } })
    expect(await declare(server, again, { isNamed: true })).toEqual([])
    expect(names(server)).toEqual(['a', 'b'])
  })

  it('makes again what it took away itself when it is asked for anew', async () => {
    await using server = await opened()
    await declare(server, [member('a'), member('b')])
    await declare(server, [member('a')])
    expect(names(server)).toEqual(['a'])
    expect(await declare(server, [member('a'), member('b')])).toEqual([])
    expect(names(server)).toEqual(['a', 'b'])
  })
})
