import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inClusterAccess } from './in-cluster.ts'
import { accessForContext, KubeconfigError, loadKubeconfig, mergeKubeconfigs } from './kubeconfig.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
})
afterEach(() => rm(dir, { recursive: true }))

const PEM = '-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n'
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** A kubeconfig of one context, with these fields of cluster and user. */
function config(cluster: string, user: string, path = 'config') {
  const indent = (text: string) => text.trim().replace(/^/gm, '    ')
  const text = `apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: team}
clusters:
- name: c
  cluster:
${indent(cluster)}
users:
- name: u
  user:
${indent(user)}
`
  return mergeKubeconfigs([{ path: join(dir, path), text }])
}

describe('a context', () => {
  it('becomes an access with inline CA and token', async () => {
    const loaded = config(
      `server: https://api.example.com:6443/\ncertificate-authority-data: ${base64(PEM)}`,
      'token: abc',
    )
    expect(loaded.contexts).toEqual([{ name: 'here', cluster: 'c', user: 'u', namespace: 'team' }])
    expect(await accessForContext(loaded)).toEqual({
      server: 'https://api.example.com:6443',
      ca: PEM,
      verifyTls: true,
      credentials: { kind: 'token', token: 'abc' },
    })
  })

  it('takes proxy, server name and an explicit choice not to verify', async () => {
    const cluster = 'server: https://a\ninsecure-skip-tls-verify: true\ntls-server-name: b\nproxy-url: http://p:3128'
    expect(await accessForContext(config(cluster, 'username: me\npassword: "123"'))).toEqual({
      server: 'https://a',
      verifyTls: false,
      tlsServerName: 'b',
      proxyUrl: 'http://p:3128',
      credentials: { kind: 'basic', username: 'me', password: '123' },
    })
  })

  it('reads files relative to its own folder', async () => {
    await mkdir(join(dir, 'pki'))
    await writeFile(join(dir, 'pki/ca.crt'), PEM)
    const loaded = config('server: https://a\ncertificate-authority: pki/ca.crt', 'tokenFile: pki/token')
    expect(await accessForContext(loaded)).toMatchObject({
      ca: PEM,
      credentials: { kind: 'tokenFile', path: join(dir, 'pki/token') },
    })
  })

  it('prefers a client certificate, and wants its key', async () => {
    const pair = `client-certificate-data: ${base64(PEM)}\nclient-key-data: ${base64(PEM)}\ntoken: x`
    expect(await accessForContext(config('server: https://a', pair))).toMatchObject({
      credentials: { kind: 'certificate', cert: PEM, key: PEM },
    })
    const half = config('server: https://a', `client-certificate-data: ${base64(PEM)}`)
    await expect(accessForContext(half)).rejects.toThrow(/not both/)
  })

  it('acts as whom its user names, whole or not at all', async () => {
    const server = 'server: https://c:6443'
    const asOf = async (user: string) => (await accessForContext(config(server, `token: t\n${user}`))).as
    expect(await asOf('as: ann')).toEqual({ user: 'ann' })
    expect(await asOf('as: 7\nas-uid: u\nas-groups: [a, b]\nas-user-extra: {why: [x]}')).toEqual({
      user: '7',
      uid: 'u',
      groups: ['a', 'b'],
      extra: { why: ['x'] },
    })
    expect(await asOf('as: ""')).toBeUndefined()
    for (const half of ['as-groups: [a]', 'as-uid: u', 'as-user-extra: {why: [x]}'])
      await expect(asOf(half)).rejects.toThrow('no `as` that names the user')
  })

  it('takes a credential command with its environment', async () => {
    const exec = `exec:
  apiVersion: client.authentication.k8s.io/v1beta1
  command: ./bin/plug-in
  args: [get, token]
  env: [{name: PROFILE, value: dev}]
  installHint: get it
  provideClusterInfo: true
  interactiveMode: Never`
    expect(await accessForContext(config('server: https://a', exec))).toMatchObject({
      credentials: {
        kind: 'exec',
        command: join(dir, 'bin/plug-in'),
        args: ['get', 'token'],
        env: { PROFILE: 'dev' },
        installHint: 'get it',
        provideClusterInfo: true,
        apiVersion: 'client.authentication.k8s.io/v1beta1',
      },
    })
    const bare = exec.replace('./bin/plug-in', 'aws')
    expect(await accessForContext(config('server: https://a', bare))).toMatchObject({ credentials: { command: 'aws' } })
  })

  it.each<[string, string, string, RegExp]>([
    ['a removed auth-provider', 'server: https://a', 'auth-provider: {name: gcp}', /auth-provider "gcp".*exec/],
    ['no server', 'x: y', 'token: t', /no server address/],
    ['a CA that is no PEM', 'server: https://a\ncertificate-authority-data: aGVsbG8=', 'token: t', /no PEM/],
    ['a missing CA file', 'server: https://a\ncertificate-authority: none.crt', 'token: t', /none\.crt does not exist/],
    [
      'an exec of an old version',
      'server: https://a',
      'exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}',
      /v1alpha1/,
    ],
    [
      'an exec that needs a terminal',
      'server: https://a',
      'exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}',
      /terminal/,
    ],
  ])('with %s is refused and told why', async (_, cluster, user, message) => {
    const access = accessForContext(config(cluster, user))
    await expect(access).rejects.toThrow(KubeconfigError)
    await expect(accessForContext(config(cluster, user))).rejects.toThrow(message)
  })

  it('that is unknown is refused with those there are', async () => {
    await expect(accessForContext(config('server: https://a', 'token: t'), 'there')).rejects.toThrow(
      /"there"; there are: here/,
    )
  })

  it('that names a missing cluster or user is refused', async () => {
    const text = 'contexts:\n- {name: x, context: {cluster: c, user: u}}\n'
    await expect(accessForContext(mergeKubeconfigs([{ path: 'f', text }]), 'x')).rejects.toThrow(/cluster "c"/)
    const more = `${text}clusters:\n- {name: c, cluster: {server: "https://a"}}\n`
    await expect(accessForContext(mergeKubeconfigs([{ path: 'f', text: more }]), 'x')).rejects.toThrow(/user "u"/)
  })
})

describe('kubeconfig files', () => {
  it('are merged: the first that names an entry wins, a missing one of several is passed over', async () => {
    const [one, two] = [join(dir, 'one'), join(dir, 'two')]
    await writeFile(one, 'current-context: b\nclusters:\n- {name: c, cluster: {server: "https://first"}}\n')
    await writeFile(
      two,
      'current-context: z\nclusters:\n- {name: c, cluster: {server: "https://second"}}\ncontexts:\n- {name: b, context: {cluster: c}}\n',
    )
    const loaded = await loadKubeconfig([join(dir, 'none'), one, two])
    expect(loaded.currentContext).toBe('b')
    expect(await accessForContext(loaded)).toMatchObject({ server: 'https://first', credentials: { kind: 'none' } })
  })

  it('that are missing, broken or something else are refused with the place', async () => {
    await expect(loadKubeconfig([join(dir, 'none')])).rejects.toThrow(/none does not exist/)
    const path = join(dir, 'config')
    await writeFile(path, 'apiVersion: v1\nclusters:\n  - name: a\n cluster: [\n')
    await expect(loadKubeconfig([path])).rejects.toThrow(/config, line [45]: broken YAML/)
    await writeFile(path, 'kind: Pod\n')
    await expect(loadKubeconfig([path])).rejects.toThrow(/of kind "Pod"/)
    await writeFile(path, '- a\n')
    await expect(loadKubeconfig([path])).rejects.toThrow(/is no kubeconfig/)
    await writeFile(path, 'contexts: {}\n')
    await expect(loadKubeconfig([path])).rejects.toThrow(/contexts must be a list/)
  })

  it('may be empty, as for kubectl', async () => {
    const path = join(dir, 'config')
    await writeFile(path, '')
    const loaded = await loadKubeconfig([path])
    expect(loaded.contexts).toEqual([])
    await expect(accessForContext(loaded)).rejects.toThrow(/has no context/)
  })
})

describe('the pod we run in', () => {
  it('gives its cluster, account and namespace', async () => {
    await writeFile(join(dir, 'ca.crt'), PEM)
    await writeFile(join(dir, 'namespace'), 'here\n')
    expect(await inClusterAccess({ dir })).toEqual({
      namespace: 'here',
      access: {
        server: 'https://kubernetes.default.svc',
        ca: PEM,
        verifyTls: true,
        credentials: { kind: 'tokenFile', path: join(dir, 'token') },
      },
    })
  })

  it('is none where there is no account', async () => {
    expect(await inClusterAccess({ dir })).toBeUndefined()
  })
})
