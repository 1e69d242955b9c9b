import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient, type FleetPageView } from '#http'
import { resources } from '#resources'
import { get } from '../../src/apps/cli/get.ts'
import { noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { clusterpulse, eventually, type Running } from '../process.ts'

/** Kinds of rows that every cluster has: from the API of simulated members, by the hub and by agents, to every channel. */
let folder: string
let hub: Running
let address: string
let client: Client
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'clusterpulse-rows-'))
  hub = clusterpulse(['up', '--demo', '--data-dir', folder, '--port', '0', '--control-plane-port', '0'])
  address = (await hub.says(/on (http:\/\/127\.0\.0\.1:\d+)/))[1] ?? ''
  client = createClient({ baseUrl: address })
}, 120_000)
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

const readOn = ({ clusters }: FleetPageView) => clusters.filter(({ part }) => part.outcome === 'complete').length

/** One cluster of the demo has an agent. */
const isPushed = ({ clusters }: FleetPageView) => clusters.some(({ part }) => part.freshness?.source === 'push')

describe('rows of every cluster', () => {
  it.each(resources.map(({ typeName }) => typeName))(
    '%s come from all clusters that answer, the others are named',
    async (type) => {
      const page = await eventually(
        () => client.fleetRows(type, { limit: 1000 }).catch(() => undefined),
        (one) => one !== undefined && readOn(one) === 5 && isPushed(one),
        120_000,
      )
      expect(page?.total).toBeGreaterThan(0)
      const away = page?.clusters.find(({ cluster }) => cluster === 'dr-site')
      expect(away?.part).toMatchObject({ outcome: 'unreachable', freshness: null })
    },
  )

  it('say of pods what kubectl would', async () => {
    const { items } = await client.fleetRows('pods', { where: ['status=Running'], limit: 1 })
    const [pod] = items
    const nodes = await client.nodes(pod?.cluster ?? '', {})
    expect(nodes.items.map(({ name }) => name)).toContain(pod?.values.node)
    expect(pod?.values).toMatchObject({
      phase: 'Running',
      containers: expect.any(Number),
      createdAt: expect.any(Number),
    })
  })

  it('are printed by the command line, by namespace and labels, and under short names', async () => {
    const ask = async (kind: string, over: { namespace?: string; selector?: string } = {}) =>
      (await get({ noun: { kind }, names: [], clusters: [], output: 'table', server: address, ...over })).text.split(
        '\n',
      )
    const [head, ...pods] = await ask('po')
    expect(head).toMatch(/^CLUSTER +NAMESPACE +NAME +STATUS +READY/)
    const { items } = await client.fleetRows('pods', { limit: 1 })
    const [one] = items
    const namespace = one?.namespace ?? ''
    const inNamespace = await ask('pods', { namespace })
    expect(inNamespace.length).toBeGreaterThan(1)
    expect(inNamespace.length).toBeLessThan(pods.length)
    for (const line of inNamespace.slice(1)) expect(line.split(/ {3,}/)[1]).toBe(namespace)
    expect((await ask('pod', { selector: 'no-such-label' })).join('')).toBe('')
    await expect(ask('podz')).rejects.toThrow(/did you mean/)
  })

  it.skipIf(noBrowser !== undefined)(
    'are on the page over all clusters, and each leads to its own',
    async () => {
      const browser = await openBrowser()
      try {
        const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
        await page.goto(`${address}/types/pods`)
        const table = page.getByRole('region', { name: 'pods of all clusters' })
        await table.getByRole('row').nth(3).waitFor()
        await page.getByPlaceholder(/status:text/).fill('cluster:staging restarts>0')
        await page.getByText(/^\d+ of [\d,]+ rows$/).waitFor()
        const link = table.getByRole('row').nth(1).getByRole('link').nth(1)
        const name = await link.textContent()
        await link.click()
        await page.getByRole('dialog').getByText('Restarts').first().waitFor()
        expect(page.url()).toContain('/types/pods?row=')
        expect(await page.getByRole('dialog').textContent()).toContain(name?.slice(-5) ?? '-')
      } finally {
        await browser.close()
      }
    },
    60_000,
  )
})
