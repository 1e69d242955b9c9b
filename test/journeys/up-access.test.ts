import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient } from '#http'
import { accessForContext, createKubeClient, type KubeClient, loadKubeconfig, type Resource } from '#kube'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/*
 * One process with a password: the demo's policies, a person's eyes, a change applied to the embedded API, the sign-out.
 */
const PASSWORD = 'correct horse battery'
const policies: Resource = {
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  plural: 'monitoraccesspolicies',
  kind: 'MonitorAccessPolicy',
  namespaced: true,
}

describe('access to a hub that is one process', () => {
  let folder = ''
  let hub: Running
  let kube: KubeClient
  let address = ''
  let cookies: readonly string[] = []
  /** as the browser that signed in */
  let browser: Client

  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${address}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-clusterpulse-request': '1', ...headers },
      body: JSON.stringify(body),
    })
  /** What a browser keeps of an answer: cookies that were emptied are gone. */
  const cookiesOf = (answer: Response) =>
    answer.headers
      .getSetCookie()
      .map((text) => text.split(';', 1)[0] ?? '')
      .filter((text) => !text.endsWith('='))
  const clientWith = (jar: readonly string[]) => createClient({ baseUrl: address, headers: { cookie: jar.join('; ') } })
  const namesOf = async (client: Client) => (await client.clusters()).items.map(({ name }) => name).sort()

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-up-access-'))
    hub = clusterpulse(
      [
        'up',
        '--demo',
        '--data-dir',
        join(folder, 'data'),
        '--port',
        '0',
        '--control-plane-port',
        '0',
        '--ingester-port',
        '0',
      ],
      {
        env: {
          LOCAL_ADMIN_PASSWORD: PASSWORD,
          LOCAL_ADMIN_USER: 'root',
          AUDIT_FILE: join(folder, 'audit.jsonl'),
          AUDIT_KEY: 'of the hub alone',
        },
      },
    )
    address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
    kube = createKubeClient(await accessForContext(await loadKubeconfig([join(folder, 'data', 'kubeconfig')])))
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    // Asked, not killed: the agent it started ends with it and writes no more.
    await hub?.kill('SIGTERM')
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  it('shows a stranger the sign-in and nothing else', async () => {
    expect(await createClient({ baseUrl: address }).session()).toMatchObject({
      authenticated: false,
      user: null,
      signIn: [{ method: 'password' }],
    })
    expect((await fetch(`${address}/api/v2/clusters`)).status).toBe(401)
  })

  it('refuses wrong passwords, ever later, and lets the right one in', async () => {
    const wrong = await post('/api/v1/auth/password', { username: 'root', password: 'guess' })
    expect(wrong.status).toBe(401)
    const right = await post('/api/v1/auth/password', { username: 'root', password: PASSWORD })
    expect(right.status).toBe(200)
    expect(right.headers.getSetCookie().join()).toMatch(/HttpOnly.*SameSite=(Lax|Strict)/)
    cookies = cookiesOf(right)
    browser = clientWith(cookies)
    expect(await browser.session()).toMatchObject({
      user: { username: 'root', method: 'password', administrator: true },
    })
    const names = await eventually(
      () => namesOf(browser),
      (all) => all.length === 6,
    )
    expect(names).toContain('prod-east')
    const throttled = await eventually(
      () => post('/api/v1/auth/password', { username: 'mallory', password: 'guess' }),
      ({ status }) => status === 429,
    )
    expect(Number(throttled.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  it('takes no order from a page of somebody else', async () => {
    const forged = await fetch(`${address}/api/v2/access/view-as`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: cookies.join('; ') },
      body: JSON.stringify({ username: 'alice' }),
    })
    expect(forged.status).toBe(403)
    const foreign = await post(
      '/api/v2/access/view-as',
      { username: 'alice' },
      { cookie: cookies.join('; '), 'x-clusterpulse-request': '1', origin: 'https://evil.example' },
    )
    expect(foreign.status).toBe(403)
  })

  it('looks through the eyes of others, reading only, and the trail says so', async () => {
    const levels = await eventually(
      async () => {
        const { items } = await browser.accessOf({ username: 'alice' })
        return Object.fromEntries(items.map(({ cluster, level }) => [cluster, level]))
      },
      ({ staging }) => staging === 'full',
    )
    expect(levels).toMatchObject({ 'prod-east': 'limited', 'gpu-lab': 'none' })
    const own = { cookie: cookies.join('; '), 'x-clusterpulse-request': '1', origin: address }
    const begun = await post('/api/v2/access/view-as', { username: 'alice', groups: [] }, own)
    expect(begun.status).toBe(200)
    const eyes = clientWith([...cookies, ...cookiesOf(begun)])
    expect(await eyes.session()).toMatchObject({ actor: 'root', user: { username: 'alice', administrator: false } })
    expect(await namesOf(eyes)).toEqual(['prod-east', 'prod-west', 'staging'])
    expect(await eyes.cluster('prod-east')).toMatchObject({ filtered: true })
    const order = await post(
      '/api/v1/auth/cache/clear',
      {},
      { ...own, cookie: [...cookies, ...cookiesOf(begun)].join('; ') },
    )
    expect(order.status).toBe(403)
    const contractor = await browser.accessOf({ username: 'bob', groups: ['developers', 'contractors'] })
    expect(contractor.items.find(({ cluster }) => cluster === 'prod-east')).toMatchObject({
      level: 'none',
      decidedBy: { policy: 'clusterpulse/contractors-not-in-production' },
    })
  })

  it('says what a change would do without doing it, then obeys it within two seconds', async () => {
    const open = await kube.get(policies, { name: 'developers', namespace: 'clusterpulse' })
    expect(open).toBeDefined()
    const changed = structuredClone(open) as unknown as { spec: { access: { enabled?: boolean } } }
    changed.spec.access.enabled = false
    const preview = await browser.previewPolicies({ manifest: JSON.stringify(changed) })
    expect(preview.changes).toContainEqual(
      expect.objectContaining({
        subject: expect.objectContaining({ username: 'alice' }),
        cluster: 'staging',
        before: 'full',
        after: 'none',
      }),
    )
    const staging = async () => (await browser.explain({ cluster: 'staging', as: 'alice' })).result
    expect(await staging()).not.toBe('deny')
    const enable = (enabled: boolean) =>
      kube.patch(
        policies,
        { name: 'developers', namespace: 'clusterpulse' },
        { spec: { access: { enabled } } },
        { kind: 'merge' },
      )
    const obeyedAfterMs = await leastOf(4, 2000, async () => {
      await enable(true)
      await eventually(staging, (result) => result !== 'deny')
      await enable(false)
      const began = Date.now()
      await eventually(staging, (result) => result === 'deny')
      return Date.now() - began
    })
    expect(obeyedAfterMs).toBeLessThan(2000)
    await expect
      .poll(async () => (await browser.policies()).items.find(({ key }) => key === 'clusterpulse/developers'))
      .toMatchObject({ state: 'Inactive', message: 'Policy is disabled' })
  })

  it('ends a session at sign-out, wherever its cookie is shown, and the trail verifies', async () => {
    const out = await post(
      '/api/v1/auth/logout',
      {},
      { cookie: cookies.join('; '), 'x-clusterpulse-request': '1', origin: address },
    )
    expect(out.status).toBe(200)
    expect((await fetch(`${address}/api/v2/clusters`, { headers: { cookie: cookies.join('; ') } })).status).toBe(401)
    const verified = await eventually(
      async () => {
        const verify = clusterpulse(['audit', 'verify', join(folder, 'audit.jsonl')], {
          env: { AUDIT_KEY: 'of the hub alone' },
        })
        return { code: await verify.ended(), said: verify.stdout() }
      },
      ({ code }) => code === 0,
    )
    expect(verified.said).toMatch(/the chain is whole/)
  })
})
