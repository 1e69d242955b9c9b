import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '#http'
import { clientSecret, OpenIdProvider } from '../../src/pipeline/identity/test/provider.ts'
import { redisMissing, startRedis, type TestRedis } from '../../src/pipeline/state/test/redis-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/*
 * Who sees what on a real Kubernetes API with Redis: policies applied with kubectl, people who sign in at a real OpenID provider
 * in a real browser, behind a proxy by headers, and programs by tokens the API server reviews. Two clusters, east and west.
 */
const missing = noRealApiServer() ?? redisMissing ?? noBrowser
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const SLOW_MS = 60_000
const SECRET = 'a secret between proxy and hub'

describe.skipIf(why !== undefined)(`access on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let folder = ''
  let address = ''
  let real: RealApiServer
  let redis: TestRedis
  let provider: OpenIdProvider
  let browser: Browser
  let api: Running
  let apiEnv: Record<string, string> = {}
  const running: Running[] = []
  const hubConfig = () => join(folder, 'hub.yaml')
  const run = async (command: string, args: readonly string[], input?: string) => {
    const started = program(command, args, input === undefined ? {} : { input })
    expect(await started.ended(), `${command} ${args.join(' ')}: ${started.stderr()}`).toBe(0)
    return started.stdout()
  }
  const kubectl = (args: readonly string[], input?: string) =>
    run('kubectl', ['--kubeconfig', hubConfig(), ...args], input)
  const inHub = (args: readonly string[], input?: string) => kubectl(['-n', 'clusterpulse', ...args], input)
  const apply = (object: object) => inHub(['apply', '-f', '-'], JSON.stringify(object))
  const policy = (name: string, spec: object) => ({
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'MonitorAccessPolicy',
    metadata: { name, namespace: 'clusterpulse' },
    spec,
  })
  const allow = (subjects: object, rules: readonly object[], more: object = {}) => ({
    identity: { subjects },
    access: { effect: 'Allow' },
    scope: { clusters: { rules } },
    ...more,
  })
  const stateOf = async (name: string) => JSON.parse(await inHub(['get', 'policy', name, '-o', 'json'])).status ?? {}
  const untilState = (name: string, state: string) =>
    eventually(
      () => stateOf(name),
      (status) => status.state === state,
      SLOW_MS,
    )
  const behindProxy = (user: string, groups = '') => ({
    'x-clusterpulse-proxy-secret': SECRET,
    'x-forwarded-user': user,
    'x-forwarded-groups': groups,
  })
  const as = (headers: Record<string, string>) => createClient({ baseUrl: address, headers })
  const clustersOf = async (headers: Record<string, string>) =>
    (await as(headers).clusters()).items.map(({ name }) => name).sort()

  const startApi = async (port = 0) => {
    const started = clusterpulse(['api', '--host', '127.0.0.1', '--port', String(port)], { env: apiEnv })
    running.push(started)
    address = (await started.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
    api = started
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-access-'))
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    real = server
    redis = await startRedis()
    browser = await openBrowser()
    await writeFile(hubConfig(), real.kubeconfig)
    const port = await freePort()
    provider = await OpenIdProvider.start({
      people: {
        alice: {
          preferred_username: 'alice',
          email: 'alice@example.com',
          email_verified: true,
          groups: ['developers'],
        },
        root: { preferred_username: 'root', email: 'root@example.com', email_verified: true, groups: ['admins'] },
      },
      client: {
        redirect_uris: [`http://127.0.0.1:${port}/api/v1/auth/callback`],
        post_logout_redirect_uris: [`http://127.0.0.1:${port}/`],
      },
    })
    const fleet = clusterpulse([
      'simulate',
      ...['--clusters', '2', '--nodes', '3', '--pods', '15'],
      ...['--kubeconfig-out', join(folder, 'members.yaml')],
    ])
    running.push(fleet)
    await fleet.says(/kubeconfig in/)
    const crds = clusterpulse(['crds'])
    expect(await crds.ended()).toBe(0)
    await kubectl(['apply', '-f', '-'], crds.stdout())
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all'])
    await kubectl(['create', 'namespace', 'clusterpulse'])
    const members = JSON.parse(
      await run('kubectl', ['--kubeconfig', join(folder, 'members.yaml'), 'config', 'view', '--raw', '-o', 'json']),
    )
    for (const [index, name] of ['east', 'west'].entries()) {
      const { cluster } = members.clusters[index]
      await inHub(
        ['create', '-f', '-'],
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name },
          data: { 'ca.crt': cluster['certificate-authority-data'] },
          stringData: { token: members.users[index].user.token },
        }),
      )
      await apply({
        apiVersion: 'clusterpulse.io/v1alpha1',
        kind: 'ClusterConnection',
        metadata: { name },
        spec: { endpoint: cluster.server, credentialsRef: { name }, labels: { side: name } },
      })
    }
    const env = {
      REDIS_HOST: '127.0.0.1',
      REDIS_PORT: String(redis.port),
      KUBECONFIG: hubConfig(),
      NAMESPACE: 'clusterpulse',
    }
    running.push(
      clusterpulse(['manager', '--metrics-bind-address', '127.0.0.1:0', '--health-probe-bind-address', '127.0.0.1:0'], {
        env: { ...env, DATA_DIR: join(folder, 'manager'), INGESTER_ENABLED: 'false' },
      }),
    )
    apiEnv = {
      ...env,
      TRUSTED_PROXY_SECRET: SECRET,
      TOKEN_REVIEW: 'true',
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: 'fleet',
      OIDC_CLIENT_SECRET: clientSecret,
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      SESSION_SECRET: 'x'.repeat(40),
      ADMIN_GROUPS: 'admins',
      AUDIT_FILE: join(folder, 'audit.jsonl'),
      AUDIT_KEY: 'of the hub alone',
      AUDIT_LEVEL: 'all',
    }
    await startApi(port)
    await eventually(
      () => clustersOf(behindProxy('root', 'admins')),
      (names) => names.length === 2,
      SLOW_MS,
    )
  })
  afterAll(async () => {
    await browser?.close()
    for (const role of running.reverse()) await role[Symbol.asyncDispose]()
    await provider?.[Symbol.asyncDispose]()
    await redis?.[Symbol.asyncDispose]()
    await real?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('believes headers of the proxy alone, and shows nobody anything without a policy', async () => {
    expect(await clustersOf(behindProxy('alice', 'developers'))).toEqual([])
    const spoofed = await fetch(`${address}/api/v2/clusters`, {
      headers: { 'x-forwarded-user': 'root', 'x-forwarded-groups': 'admins' },
    })
    expect(spoofed.status).toBe(401)
    const wrong = { ...behindProxy('root', 'admins'), 'x-clusterpulse-proxy-secret': `${SECRET}r` }
    expect((await fetch(`${address}/api/v2/clusters`, { headers: wrong })).status).toBe(401)
  })

  it('obeys a policy that kubectl applies, says its state and what is doubtful', async () => {
    await apply(
      policy(
        'developers',
        allow({ groups: ['developers'] }, [
          {
            selector: { matchLabels: { side: 'east' } },
            permissions: { view: true },
            resources: [{ type: 'nodes', visibility: 'filtered' }],
          },
        ]),
      ),
    )
    await untilState('developers', 'Active')
    expect(await stateOf('developers')).toMatchObject({
      affectedGroups: 1,
      customResourceWarnings: [expect.stringMatching(/rules\[0\]\.resources\[0\]/)],
    })
    expect(await inHub(['get', 'policy'])).toMatch(
      /NAME +STATE +EFFECT +PRIORITY +USERS +AGE\ndevelopers +Active +Allow +100/,
    )
    await eventually(
      () => clustersOf(behindProxy('alice', 'developers')),
      (names) => names.join() === 'east',
    )
    expect(await clustersOf(behindProxy('bob'))).toEqual([])
    const seen = await as(behindProxy('alice', 'developers')).cluster('east')
    expect(seen).toMatchObject({ filtered: true, nodes: { total: 0 } })
    const [hidden, unknown] = await Promise.all(
      ['west', 'weft'].map(async (name) => {
        const answer = await fetch(`${address}/api/v2/clusters/${name}`, {
          headers: behindProxy('alice', 'developers'),
        })
        const { requestId: _, ...body } = (await answer.json()) as { requestId: string; error: string }
        return [answer.status, JSON.stringify(body).replaceAll(name, 'X')]
      }),
    )
    expect(hidden).toEqual(unknown)
    expect(hidden?.[0]).toBe(404)

    // A faulty change keeps what was in force, and says so.
    await inHub([
      'patch',
      'policy',
      'developers',
      '--type',
      'json',
      '-p',
      JSON.stringify([{ op: 'add', path: '/spec/scope/clusters/rules/0/selector/matchPattern', value: '[' }]),
    ])
    const faulty = await untilState('developers', 'Error')
    expect(faulty).toMatchObject({ generationInForce: 1, observedGeneration: 2 })
    expect(await clustersOf(behindProxy('alice', 'developers'))).toEqual(['east'])
  })

  it('knows programs by the tokens the API server reviews', async () => {
    await inHub(['create', 'serviceaccount', 'dashboards'])
    const token = (await inHub(['create', 'token', 'dashboards'])).trim()
    const bearer = { authorization: `Bearer ${token}` }
    expect(await clustersOf(bearer)).toEqual([])
    await apply(
      policy(
        'dashboards',
        allow({ serviceAccounts: [{ name: 'dashboards', namespace: 'clusterpulse' }] }, [
          { selector: { matchNames: ['*est'] }, permissions: { view: true, viewMetrics: true } },
        ]),
      ),
    )
    await eventually(
      () => clustersOf(bearer),
      (names) => names.join() === 'west',
    )
    const forged = await fetch(`${address}/api/v2/clusters`, {
      headers: { authorization: `Bearer ${token.slice(0, -4)}AAAA` },
    })
    expect(forged.status).toBe(401)
    const terminal = clusterpulse(['get', 'clusters', '--server', address], { env: { CLUSTERPULSE_TOKEN: token } })
    expect(await terminal.ended(), terminal.stderr()).toBe(0)
    expect(terminal.stdout()).toMatch(/^west /m)
    expect(terminal.stdout()).not.toMatch(/^east /m)
  })

  async function signIn(page: Page, name: string, path = '/'): Promise<void> {
    await page.goto(`${address}${path}`)
    await page
      .getByRole('link', { name: /sign in/i })
      .or(page.getByRole('button', { name: /sign in/i }))
      .first()
      .click()
    await page.waitForURL(/\/interaction\//)
    await page.locator('input[name="login"]').fill(name)
    await page.locator('input[name="password"]').fill('anything')
    await page.locator('button[type="submit"]').click()
    await page.getByText('Authorize', { exact: false }).first().waitFor()
    await page.locator('button[type="submit"]').click()
    await page.waitForURL((url) => url.origin === new URL(address).origin)
  }

  it('signs a person in at the provider, and takes from the open page within two seconds what a policy takes', async () => {
    const open = policy(
      'alice',
      allow({ users: ['alice@example.com'] }, [
        { selector: { matchNames: ['east', 'west'] }, permissions: { view: true, viewMetrics: true } },
      ]),
    )
    await apply(open)
    await untilState('alice', 'Active')
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    await signIn(page, 'alice')
    const row = (name: string) => page.getByRole('link', { name, exact: true })
    await row('west').first().waitFor()
    await row('east').first().waitFor()
    await page.getByRole('button', { name: /^Connection: Live/ }).waitFor()

    const goneAfterMs = await leastOf(4, 2000, async () => {
      await apply(open)
      await row('west').first().waitFor()
      await apply({
        ...open,
        spec: { ...open.spec, scope: { clusters: { rules: [{ selector: { matchNames: ['east'] } }] } } },
      })
      const changed = Date.now()
      await row('west').first().waitFor({ state: 'detached' })
      return Date.now() - changed
    })
    expect(await row('east').count()).toBeGreaterThan(0)
    expect(goneAfterMs).toBeLessThan(2000)

    // Signed out elsewhere: the session is over on this page as well, by itself.
    const cookies = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    const out = await fetch(`${address}/api/v1/auth/logout`, {
      method: 'POST',
      headers: { cookie: cookies, origin: address, 'x-clusterpulse-request': '1' },
    })
    expect(out.status).toBe(200)
    await page
      .getByRole('link', { name: /sign in/i })
      .or(page.getByRole('button', { name: /sign in/i }))
      .first()
      .waitFor()
    expect(await row('east').count()).toBe(0)
    const replayed = await fetch(`${address}/api/v2/clusters`, { headers: { cookie: cookies } })
    expect(replayed.status).toBe(401)
    await context.close()
  })

  it('ends a policy on its second, without anybody doing anything', async () => {
    const isSeen = (wanted: boolean) =>
      eventually(
        () => clustersOf(behindProxy('guest')),
        (names) => (names.length === 1) === wanted,
        SLOW_MS,
      )
    // Seen while it counts: a machine that shows it too late is given more time.
    let visitMs = 4000
    const lateMs = await leastOf(4, 3000, async () => {
      const notAfter = Math.ceil(Date.now() / 1000) * 1000 + visitMs
      const validity = { notAfter: new Date(notAfter).toISOString().replace('.000', '') }
      visitMs *= 2
      await apply(
        policy(
          'visit',
          allow({ users: ['guest'] }, [{ selector: { matchNames: ['east'] } }], { lifecycle: { validity } }),
        ),
      )
      const isVisible = await eventually(
        async () => (Date.now() > notAfter ? 'over' : (await clustersOf(behindProxy('guest'))).join()),
        (seen) => seen === 'over' || seen === 'east',
        SLOW_MS,
      )
      if (isVisible === 'over') return Number.POSITIVE_INFINITY
      await isSeen(false)
      expect(Date.now()).toBeGreaterThan(notAfter)
      return Date.now() - notAfter
    })
    expect(lateMs).toBeLessThan(3000)
    expect(await untilState('visit', 'Expired')).toMatchObject({ state: 'Expired' })
  })

  it('explains on the command line, and keeps an audit trail that verifies', async () => {
    const root = as(behindProxy('root', 'admins'))
    const told = await root.explain({ cluster: 'west', as: 'alice', groups: ['developers'] })
    expect(told).toMatchObject({ result: 'deny' })
    expect(told.skipped.map(({ policy: key }) => key)).toContain('clusterpulse/developers')
    await eventually(
      () => readFile(join(folder, 'audit.jsonl'), 'utf8'),
      (text) => /"username":"alice"/.test(text) && /"kind":"sign_in"/.test(text) && /"kind":"denial"/.test(text),
    )
    // Lines are appended whole; a head may be one batch behind for a moment.
    const verified = await eventually(
      async () => {
        const verify = clusterpulse(['audit', 'verify', join(folder, 'audit.jsonl')], {
          env: { AUDIT_KEY: 'of the hub alone' },
        })
        return { code: await verify.ended(), said: verify.stdout() }
      },
      ({ code }) => code === 0,
    )
    expect(verified.said).toMatch(/\d+ entries, the chain is whole/)
    expect(await readFile(join(folder, 'audit.jsonl'), 'utf8')).not.toContain(SECRET)
  })

  it('opens no door and shows no empty fleet while policies cannot be read', async () => {
    expect(await clustersOf(behindProxy('alice', 'developers'))).toEqual(['east'])
    await redis.kill()
    const answer = await eventually(
      () => fetch(`${address}/api/v2/clusters`, { headers: behindProxy('alice', 'developers') }),
      ({ status }) => status === 503,
    )
    expect(await answer.json()).toMatchObject({ code: expect.stringMatching(/policies_unavailable|store_unavailable/) })
    await redis.start() // it comes back empty
    await eventually(
      () => clustersOf(behindProxy('alice', 'developers')).catch(() => ['not yet']),
      (names) => names.join() === 'east',
      SLOW_MS,
    )
    expect(await clustersOf(behindProxy('bob'))).toEqual([])
    expect(await api.kill('SIGTERM')).toBe(0)
  })
})
