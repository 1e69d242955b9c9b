import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { redisMissing } from '../../src/pipeline/state/test/redis-server.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { noContainers } from '../containers.ts'
import {
  type Edge,
  type IdentityProvider,
  noSignInPrograms,
  passwordOf,
  signInProgram,
  startEdge,
  startIdentityProvider,
} from '../identity-provider.ts'
import { Pods } from '../pods.ts'
import { eventually, type Running } from '../process.ts'
import { noRealApiServer } from '../real-apiserver.ts'

const missing = noContainers() ?? noRealApiServer() ?? redisMissing ?? noBrowser ?? noSignInPrograms()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing

const HUB_GUIDE = readFileSync('docs/guide/kubernetes-hub.md', 'utf8')
const GUIDE = readFileSync('docs/guide/sign-in.md', 'utf8')
const IMAGE = 'clusterpulse/clusterpulse:0.1.0'
const SLOW_MS = 120_000
const patient = { timeout: 60_000 }
const HOST = 'pulse.example.com'
const PAGE = `https://${HOST}`
const PROVIDER = 'id.example.com'
const DEEP = `${PAGE}/clusters/east/nodes?q=role%3Aworker`
const client = {
  id: 'clusterpulse',
  secret: 'secret-of-the-client',
  redirectUris: [`${PAGE}/oauth2/callback`, `${PAGE}/api/v1/auth/callback`],
}
const people = { alice: ['developers'], ada: ['clusterpulse-admins'], mallory: [] }

/** In the place of OpenShift's API, which serves these kinds itself. */
const openshiftKind = (plural: string, kind: string) =>
  JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.user.openshift.io` },
    spec: {
      group: 'user.openshift.io',
      scope: 'Cluster',
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  })

describe.skipIf(why !== undefined)(`signing in${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let pods: Pods
  let provider: IdentityProvider
  let edge: Edge
  let browser: Browser
  const contexts: BrowserContext[] = []

  const which = (deployment: string, pod: number, container?: string) => ({
    namespace: 'clusterpulse',
    deployment,
    pod,
    ...(container !== undefined && { container }),
  })
  const section = (title: string) => new RegExp(`${title}\\n([\\s\\S]*?)\\n##`)
  const serves = async (api: Running) => await api.says(/ClusterPulse api on/, SLOW_MS)

  beforeAll(async () => {
    pods = await Pods.open({ redis: 10, [PROVIDER]: 20 })
    provider = await startIdentityProvider(pods, {
      pods: { dex: 20, ldap: 21 },
      host: PROVIDER,
      clients: [client],
      people,
    })
    edge = await startEdge(provider.certificate(HOST), { host: '127.0.0.1', port: 1 })
    const to = [`MAP ${HOST}:443 127.0.0.1:${edge.port}`, `MAP ${PROVIDER}:443 ${pods.address(20)}:443`]
    browser = await openBrowser(`--host-resolver-rules=${to.join(',')}`)

    copyFileSync(provider.caFile, join(pods.empty, 'ca.crt'))
    writeFileSync(join(pods.empty, 'client-secret'), client.secret)
    pods.follow(HUB_GUIDE, /## 2\. Secrets\n([\s\S]*?)\nWithout cert-manager/)
    pods.follow(GUIDE, section('## On Kubernetes, from an empty folder'))
    // OpenShift's own names, on what stands in for it.
    pods.apply(`${openshiftKind('users', 'User')}\n---\n${openshiftKind('groups', 'Group')}`)
    pods.kubectl('wait', '--for=condition=Established', 'crd/groups.user.openshift.io', '--timeout=60s')
    pods.apply(
      JSON.stringify({
        apiVersion: 'user.openshift.io/v1',
        kind: 'Group',
        metadata: { name: 'developers' },
        users: ['mallory'],
      }),
    )
    pods.follow(
      GUIDE.replace('components/token-review\n', '$&      - ../clusterpulse/deploy/components/openshift-groups\n'),
      section('### The page signs people in'),
    )
    pods.kubectl('wait', '--for=condition=Established', 'crd/clusterconnections.clusterpulse.io', '--timeout=60s')
    const redis = pods.startOther(which('redis', 10), ({ command = [], args = [] }) => [...command, ...args])
    await redis.says(/Ready to accept connections/, SLOW_MS)
    pods.start(which('clusterpulse-manager', 12), IMAGE)
    pods.follow(HUB_GUIDE, section('## 4\\. A member'))
    const east = JSON.parse(pods.kubectl('-n', 'clusterpulse', 'get', 'clusterconnection', 'east', '-o', 'json'))
    pods.apply(JSON.stringify({ ...east, metadata: { name: 'west', namespace: 'clusterpulse' }, status: undefined }))
    pods.follow(GUIDE, section('### Who sees what, and programs'))
  })
  afterAll(async () => {
    for (const context of contexts) await context.close()
    await browser?.close()
    await edge?.[Symbol.asyncDispose]()
    await provider?.[Symbol.asyncDispose]()
    await pods?.[Symbol.asyncDispose]()
  })

  async function aBrowser(): Promise<BrowserContext> {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 800 } })
    context.setDefaultTimeout(60_000)
    contexts.push(context)
    return context
  }
  const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
  const signInAs = async (page: Page, person: string) => {
    await page.locator('#login').fill(person)
    await page.locator('#password').fill(passwordOf(person))
    await page.locator('#submit-login').click()
  }
  const signOut = async (page: Page) => {
    await page.getByRole('button', { name: /Signed in as/ }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
  }
  /** Asked by the page itself, with its cookies. */
  const asPage = (page: Page, path: string, headers: Readonly<Record<string, string>> = {}) =>
    page.evaluate(
      async ([url, more]) => {
        const answer = await fetch(url, { headers: more })
        return { status: answer.status, body: (await answer.json()) as Answer }
      },
      [path, headers] as const,
    )
  /** Asked by a program, through the edge; headers as given, spelling and all. */
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    new Promise<{ status: number; body: Answer }>((resolve, reject) => {
      const options = { port: edge.port, path, headers: { host: HOST, ...headers }, rejectUnauthorized: false }
      const call = request(options, async (answer) => {
        const text = Buffer.concat(await answer.toArray()).toString()
        const isJson = answer.headers['content-type']?.includes('json')
        resolve({ status: answer.statusCode ?? 0, body: isJson ? JSON.parse(text) : {} })
      })
      call.on('error', reject).end()
    })
  const names = ({ body }: { body: Answer }) => body.items?.map(({ name }) => name)
  const spoofed: readonly Readonly<Record<string, string>>[] = [
    { 'X-Forwarded-User': 'ada', 'X-Forwarded-Groups': 'clusterpulse-admins' },
    { 'X-Forwarded-Preferred-Username': 'ada', 'X-Forwarded-Groups': 'clusterpulse-admins' },
    { X_Forwarded_Preferred_Username: 'ada', 'X-Forwarded-Email': 'ada@example.com' },
    { 'X-Forwarded-Preferred-Username': 'ada', X_Forwarded_Groups: 'clusterpulse-admins' },
    { 'X-Forwarded-Preferred-Username': 'ada', 'X-Forwarded-For': '127.0.0.1', Forwarded: 'for=127.0.0.1' },
  ]
  const withToken = (token: string) => ({ Authorization: `Bearer ${token.trim()}` })

  it('on the page at an OpenID provider shows what the policy allows, with groups of OpenShift, until people sign out', async () => {
    const api = pods.start(which('clusterpulse-api', 13), IMAGE)
    await serves(api)
    edge.target = { host: pods.address(13), port: 8080 }
    const context = await aBrowser()
    const page = await context.newPage()
    await page.goto(DEEP)
    await heading(page, 'Sign in to see the fleet')
    await page.getByRole('link', { name: `Sign in with ${PROVIDER}` }).click()
    await signInAs(page, 'mallory')
    // Dex knows no group of hers; OpenShift's Group does.
    await heading(page, /east/i)
    await expect.poll(() => page.url(), patient).toBe(DEEP)
    expect((await asPage(page, '/api/v1/session')).body.user).toMatchObject({
      username: 'mallory',
      groups: ['developers'],
      method: 'oidc',
      administrator: false,
    })
    expect(names(await asPage(page, '/api/v2/clusters'))).toEqual(['east'])
    for (const headers of spoofed) expect(names(await asPage(page, '/api/v2/clusters', headers))).toEqual(['east'])
    const cookies = await context.cookies(PAGE)
    expect(cookies.map(({ name, secure, httpOnly, sameSite }) => [name, secure, httpOnly, sameSite])).toEqual([
      ['__Host-clusterpulse-session', true, true, 'Lax'],
    ])
    const other = await context.newPage()
    await other.goto(`${PAGE}/clusters/east`)
    await heading(other, /east/i)
    await signOut(page)
    await heading(page, 'Sign in to see the fleet')
    await heading(other, 'Your session has ended')
    await context.addCookies(cookies)
    expect((await asPage(page, '/api/v2/clusters')).status).toBe(401)
  })

  it('counts tokens of the provider and of the cluster, each for its audience', async () => {
    const alice = await provider.token('alice', client)
    const mine = await ask('/api/v1/session', withToken(alice))
    expect(mine.body.user).toMatchObject({ username: 'alice', groups: ['developers'], method: 'bearer-jwt' })
    expect(names(await ask('/api/v2/clusters', withToken(alice)))).toEqual(['east'])
    expect((await ask('/api/v2/clusters', withToken(`${alice.slice(0, -4)}AAAA`))).status).toBe(401)

    const reader = readFileSync(join(pods.empty, 'reader.token'), 'utf8')
    const service = await ask('/api/v1/session', withToken(reader))
    expect(service.body.user).toMatchObject({
      username: 'system:serviceaccount:clusterpulse:reader',
      method: 'token-review',
    })
    expect(names(await ask('/api/v2/clusters', withToken(reader)))).toEqual(['east'])
    const forOthers = pods.kubectl('-n', 'clusterpulse', 'create', 'token', 'reader')
    expect((await ask('/api/v2/clusters', withToken(forOthers))).status).toBe(401)
  })

  it('through oauth2-proxy shows what the policy allows, and nothing to who only says so', {
    tags: ['again'],
  }, async () => {
    pods.follow(GUIDE, section('### oauth2-proxy signs people in'))
    const api = pods.start(which('clusterpulse-api', 14, 'api'), IMAGE)
    await serves(api)
    const proxy = pods.startStatic(which('clusterpulse-api', 14, 'oauth2-proxy'), signInProgram('oauth2-proxy'))
    edge.target = { host: pods.address(14), port: 4180 }
    await eventually(
      () => ask('/ping'),
      ({ status }) => status === 200,
      SLOW_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${proxy.stdout()}\n${proxy.stderr()}`)
    })
    const version = /image: \S*oauth2-proxy:v([\d.]+)/.exec(
      readFileSync('deploy/components/trusted-proxy/api.yaml', 'utf8'),
    )

    for (const headers of [{}, ...spoofed]) {
      expect([headers, (await ask('/api/v2/clusters', headers)).status]).toEqual([headers, 401])
      expect((await ask('/api/v1/session', headers)).body.user).toBeNull()
      expect((await ask('/', headers)).status).toBe(403)
    }
    // The hub itself is behind the proxy alone.
    const direct = pods.beside(12, ['curl', '-sS', '-m', '5', `http://${pods.address(14)}:8080/healthz`])
    expect(await direct.ended()).not.toBe(0)
    const reader = readFileSync(join(pods.empty, 'reader.token'), 'utf8')
    expect(names(await ask('/api/v2/clusters', { ...withToken(reader), ...spoofed[1] }))).toEqual(['east'])

    const context = await aBrowser()
    const page = await context.newPage()
    await page.goto(DEEP)
    await expect.poll(() => page.locator('body').innerText(), patient).toContain(`v${version?.[1]}`)
    await page.getByRole('button', { name: /Sign in/ }).click()
    await signInAs(page, 'alice')
    await heading(page, /east/i)
    await expect.poll(() => page.url(), patient).toBe(DEEP)
    const session = await asPage(page, '/api/v1/session', spoofed[1])
    expect(session.body.user).toMatchObject({ username: 'alice', groups: ['developers'], method: 'trusted-proxy' })
    for (const headers of spoofed) expect(names(await asPage(page, '/api/v2/clusters', headers))).not.toContain('west')
    expect((await context.cookies(PAGE)).map(({ secure, httpOnly }) => [secure, httpOnly])).toEqual([[true, true]])

    // Both tabs leave at once, and the proxy lets neither back in.
    const other = await context.newPage()
    await other.goto(`${PAGE}/clusters/east`)
    await heading(other, /east/i)
    await signOut(page)
    await page.getByRole('button', { name: /Sign in with/ }).waitFor()
    await heading(other, 'Sign in to see the fleet')
    expect(await context.cookies(PAGE)).toEqual([])
    await other.getByRole('button', { name: 'Load again' }).click()
    await other.getByRole('button', { name: /Sign in with/ }).click()

    // Another person in the same browser: nothing of the one before, and no group by asking for it.
    await signInAs(other, 'mallory')
    await other.getByRole('button', { name: 'Signed in as mallory' }).waitFor()
    await expect.poll(() => other.url(), patient).toBe(`${PAGE}/clusters/east`)
    const groupless = await asPage(other, '/api/v1/session', { 'X-Forwarded-Groups': 'clusterpulse-admins' })
    expect(groupless.body.user).toMatchObject({ username: 'mallory', groups: [], administrator: false })

    const admin = await (await aBrowser()).newPage()
    await admin.goto(PAGE)
    await admin.getByRole('button', { name: /Sign in/ }).click()
    await signInAs(admin, 'ada')
    await admin.getByRole('button', { name: 'Signed in as ada' }).waitFor()
    await expect.poll(async () => names(await asPage(admin, '/api/v2/clusters')), patient).toEqual(['east', 'west'])
    // The session at the proxy is over while the page is open.
    await admin.context().clearCookies()
    await admin.getByRole('link', { name: 'Registries' }).click()
    await heading(admin, 'Sign in to see the fleet')
  })
})

interface Answer {
  readonly user?: object | null
  readonly items?: readonly { readonly name: string }[]
}
