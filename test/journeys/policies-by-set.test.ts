import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient } from '#http'
import { managedClusterSet, monitorAccessPolicy } from '#kinds'
import { accessForContext, createKubeClient, loadKubeconfig, type OwnedKubeClient, type Resource, whole } from '#kube'
import { conditionOf, managedClusters } from '../../src/control/registration/objects.ts'
import { CONDITIONS } from '../../src/control/registration/words.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { EventReader } from '../event-stream.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

const SECRET = 'of the gateway, which is long enough'
const ADMIN = 'system:serviceaccount:default:root'
const SET = 'cluster.open-cluster-management.io/clusterset'
const serviceAccounts: Resource = {
  ...{ group: '', version: 'v1', plural: 'serviceaccounts', kind: 'ServiceAccount', namespaced: true },
}
const resource = ({ group, version, plural, kind }: Omit<Resource, 'namespaced'>, namespaced: boolean) =>
  whole({ group, version, plural, kind, namespaced })

/** Two machines join; a policy shows one set to ann, by the one way each to ask a hub; then the clusters change places. */
describe.skipIf(noBrowser !== undefined)('a policy by set of clusters', () => {
  let folder: string
  let members: Running
  let hub: Running
  let base: string
  let kube: OwnedKubeClient
  let token: string
  let browser: Browser
  const agents: Running[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'by-set-'))
    const size = ['--clusters', '2', '--nodes', '3', '--pods', '20']
    members = clusterpulse(['simulate', ...size, '--kubeconfig-out', join(folder, 'members')])
    await members.says(/kubeconfig in/, 120_000)
    const ports = ['--port', '0', '--control-plane-port', '0', '--ingester-port', '0']
    const data = join(folder, 'hub')
    hub = clusterpulse(['up', '--kubeconfig', join(folder, 'members'), '--data-dir', data, ...ports], {
      env: { TRUSTED_PROXY_SECRET: SECRET, TOKEN_REVIEW: 'true', ADMIN_USERS: ADMIN },
    })
    base = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/, 180_000))[1] ?? ''
    kube = createKubeClient(await accessForContext(await loadKubeconfig([join(data, 'kubeconfig')])))
    token = await tokenOf('ann')
    browser = await openBrowser()
    await Promise.all([joins('east'), joins('west')])
    await kube.create(resource(managedClusterSet, false), { metadata: { name: 'prod' }, spec: {} } as never)
    await kube.create(resource(monitorAccessPolicy, true), policy as never)
  })
  afterAll(async () => {
    await browser?.close()
    await kube?.[Symbol.asyncDispose]()
    for (const one of [...agents, hub, members]) await one?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  const policy = {
    metadata: { name: 'prod-viewers', namespace: 'clusterpulse' },
    spec: {
      // As the browser is signed in, and as the command line is.
      identity: {
        subjects: { users: ['ann'], serviceAccounts: [{ name: 'ann', namespace: 'default' }] },
        priority: 100,
      },
      access: { effect: 'Allow' },
      scope: {
        clusters: {
          default: 'none',
          rules: [{ selector: { matchLabels: { [SET]: 'prod' } }, permissions: { view: true, viewMetrics: true } }],
        },
      },
    },
  }

  async function tokenOf(name: string): Promise<string> {
    await kube.create(serviceAccounts, { metadata: { name, namespace: 'default' } })
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`
    const answer = (await kube.request('POST', path, { body })) as { status: { token: string } }
    return answer.status.token
  }

  async function joins(name: string): Promise<void> {
    const kubeconfig = join(folder, 'hub', 'kubeconfig')
    const connect = clusterpulse(['connect', name, '--accept', '--kubeconfig', kubeconfig])
    expect(await connect.ended(), connect.stderr()).toBe(0)
    const asks = /npx clusterpulse join (\S+)/.exec(connect.stdout())?.[1] ?? ''
    const own = ['--kubeconfig', join(folder, 'members'), '--buffer-dir', join(folder, name)]
    agents.push(clusterpulse(['join', asks, ...own], { env: { HEALTH_ADDRESS: '127.0.0.1:0' } }))
    await eventually(
      () => kube.get(managedClusters, { name }),
      (member) => member !== undefined && conditionOf(member, CONDITIONS.available)?.status === 'True',
      180_000,
    )
  }

  const moves = (name: string, set: string) =>
    kube.patch(managedClusters, { name }, { metadata: { labels: { [SET]: set } } }, { kind: 'merge' })
  const ann = (): Client => createClient({ baseUrl: base, headers: { authorization: `Bearer ${token}` } })
  const clustersIn = async (type: string): Promise<readonly string[]> => {
    const { items } = await ann().fleetRows(type, { limit: 500 })
    return [...new Set(items.map(({ cluster, name }) => (type === 'members' ? name : cluster)))].sort()
  }
  const get = async (...args: string[]): Promise<string> => {
    const command = clusterpulse(['get', ...args, '--server', base], { env: { CLUSTERPULSE_TOKEN: token } })
    expect(await command.ended(), command.stderr()).toBe(0)
    return command.stdout()
  }
  const rowsOf = (page: Page) => page.locator('tbody [data-row-link]').allInnerTexts()

  /** All that a person can ask, but for what is open already. */
  async function seesOnly(seen: string, hidden: string): Promise<void> {
    await eventually(
      async () => (await ann().clusters()).items.map(({ name }) => name),
      (names) => names.join() === seen,
      90_000,
    )
    for (const type of ['pods', 'nodes', 'members'])
      await eventually(
        () => clustersIn(type),
        (names) => names.join() === seen,
        90_000,
      )
    await expect(ann().cluster(hidden)).rejects.toMatchObject({ code: 'cluster_not_found' })
    expect((await ann().clusterSets()).items).not.toContainEqual(expect.objectContaining({ name: 'default' }))
    await expect.poll(() => ann().clusterSet('prod')).toEqual({ name: 'prod', clusters: [seen] })
    for (const kind of ['clusters', 'members', 'pods', 'nodes']) {
      const printed = await get(kind)
      expect(printed).toContain(seen)
      expect(printed).not.toContain(hidden)
    }
  }

  it('shows a person the clusters of the set, everywhere, and follows them when they change places', async () => {
    await moves('east', 'prod')
    await seesOnly('east', 'west')
    const context = await browser.newContext({
      extraHTTPHeaders: { 'x-clusterpulse-proxy-secret': SECRET, 'x-forwarded-user': 'ann' },
    })
    const [fleet, pods] = [await context.newPage(), await context.newPage()]
    await fleet.goto(base)
    await pods.goto(`${base}/types/pods?view=rows`)
    await expect.poll(() => rowsOf(fleet), { timeout: 90_000 }).toEqual(['east'])
    const podClusters = async () => {
      const rows = await pods.locator('tbody tr').allInnerTexts()
      return [...new Set(rows.map((row) => /\b(east|west)\b/.exec(row)?.[0]))].join()
    }
    await expect.poll(podClusters, { timeout: 90_000 }).toBe('east')
    using stream = await EventReader.open(`${base}/api/v1/stream?rows=pods`, { authorization: `Bearer ${token}` })
    const said = (from: number) => stream.events.slice(from).map(({ data }) => data)
    await expect.poll(() => said(0).some((data) => data.includes('east')), { timeout: 90_000 }).toBe(true)
    expect(said(0).filter((data) => data.includes('west'))).toEqual([])

    const before = stream.events.length
    await moves('west', 'prod')
    await expect.poll(() => said(before).some((data) => data.includes('west')), { timeout: 90_000 }).toBe(true)
    await expect.poll(() => rowsOf(fleet), { timeout: 90_000 }).toEqual(['east', 'west'])
    await moves('east', 'default')
    // No page was loaded again.
    await expect.poll(() => rowsOf(fleet), { timeout: 90_000 }).toEqual(['west'])
    await expect.poll(podClusters, { timeout: 90_000 }).toBe('west')
    await seesOnly('west', 'east')
    // What is told from now on is of west alone.
    const after = stream.events.length
    await expect.poll(() => stream.events.length).toBeGreaterThan(after + 2)
    expect(said(after).filter((data) => data.includes('east'))).toEqual([])
  })
})
