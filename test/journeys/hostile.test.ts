import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '#api'
import { createClient } from '#http'
import type { KubeObject } from '#kube'
import { systemClock } from '#model'
import { Metrics, silentLogger } from '#runtime'
import { FaultProxy, type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import { get } from '../../src/apps/cli/get.ts'
import { nounNames } from '../../src/apps/cli/words.ts'
import { connectionResource } from '../../src/control/connections/connection-resource.ts'
import {
  aWorld,
  connect,
  NAMESPACE,
  until,
  untilPhase,
  type World,
} from '../../src/control/connections/testing/world.ts'
import { buildPage, noBrowser, openBrowser } from '../../web/testing/browser.ts'
import { localAdministrator } from '../local-administrator.ts'

const administrator = await localAdministrator()

/*
 * Everything a member says is a stranger's word: names, labels and messages that are markup, code, escapes of a terminal or
 * names of what every object has. They are shown as the text they are, and nothing else comes of them.
 */
const MARKUP = `<img src=x onerror="window.taken=1">`
const SCRIPT = `"><script>window.taken=1</script>`
const ESCAPE = '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202etxt'
const INHERITED = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']

// As text: in a literal `__proto__` would set the prototype instead of a field.
const LABELS: object = JSON.parse(
  '{"__proto__":"polluted","constructor":"x","node-role.kubernetes.io/__proto__":"","a":"<b onclick=taken()>"}',
)

const hostileNode = (name: string) => ({
  metadata: { name, labels: LABELS, creationTimestamp: '2026-01-01T00:00:00Z', annotations: { note: SCRIPT } },
  spec: { taints: [{ key: MARKUP, value: SCRIPT, effect: 'javascript:window.taken=1' }] },
  status: {
    capacity: { cpu: '4', memory: '8Gi' },
    conditions: [{ type: 'Ready', status: 'False', reason: MARKUP, message: `${SCRIPT}${ESCAPE}` }],
    nodeInfo: { kubeletVersion: ESCAPE, osImage: MARKUP, kernelVersion: SCRIPT },
    addresses: [{ type: 'InternalIP', address: 'javascript:window.taken=1' }],
  },
})
const NAMES = [MARKUP, SCRIPT, ESCAPE, '../../etc/passwd', ...INHERITED]

describe('a hostile member', () => {
  let fleet: SimulatedFleet
  let proxy: FaultProxy
  let world: World
  let api: ApiServer
  let address: string
  let page: ReturnType<typeof buildPage> | undefined
  let browser: Browser | undefined

  beforeAll(async () => {
    fleet = await simulateFleet(scenarios.plain({ clusters: 2, nodes: 3, pods: 10 }))
    proxy = await FaultProxy.open({ upstream: fleet })
    if (noBrowser === undefined) {
      page = buildPage()
      browser = await openBrowser()
    }
    world = await aWorld()
    api = apiServer({
      state: world.state,
      events: world.events,
      ...administrator,
      config: { host: '127.0.0.1', port: 0, ...administrator.config },
      logger: silentLogger,
      clock: systemClock,
      version: 'test',
      metrics: new Metrics({ role: 'test' }),
      ...(page && { webRoot: page.root }),
    })
    address = await api.start()
    const tokenOf = (name: string) => fleet.clusters.find((one) => one.name === name)?.token ?? ''
    const at = (name: string) => ({ url: `${proxy.url}/clusters/${name}`, ca: '', token: tokenOf(name) })
    proxy.set('sim-001', {
      kind: 'rewrite',
      resource: 'nodes',
      contentType: 'application/json',
      change: () => Buffer.from(JSON.stringify({ kind: 'NodeList', items: NAMES.map(hostileNode) })),
    })
    await connect(world, 'sim-001', at('sim-001'), { displayName: `${MARKUP}${SCRIPT}`, labels: { __proto: MARKUP } })
    await connect(world, 'sim-002', at('sim-002'))
    await world.start()
    for (const name of ['sim-001', 'sim-002']) await untilPhase(world, name, 'Connected')
    await until(() => expect(world.cluster('sim-001')?.parts.node?.items.size).toBe(NAMES.length))
  })
  afterAll(async () => {
    await browser?.close()
    await api?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await fleet?.[Symbol.asyncDispose]()
    page?.[Symbol.dispose]()
  })

  it('is shown by every route as data, and changes no object of ours', async () => {
    const client = createClient({ baseUrl: address })
    const { items } = await client.nodes('sim-001', { limit: 100 })
    expect(items.map(({ name }) => name).sort()).toEqual([...NAMES].sort())
    expect(items[0]?.roles).toEqual(['__proto__'])
    for (const path of [
      '/api/v1/clusters',
      '/api/v1/clusters/sim-001',
      '/api/v1/clusters/sim-001/nodes',
      '/api/v2/clusters/sim-001/nodes',
      '/api/v2/clusters/sim-001/nodes?label=__proto__',
      '/api/v2/search?q=proto',
      ...NAMES.map((name) => `/api/v1/clusters/sim-001/nodes/${encodeURIComponent(name)}`),
    ]) {
      const answer = await fetch(`${address}${path}`)
      expect([path, answer.status]).toEqual([path, 200])
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      await answer.json()
    }
    expect((await fetch(`${address}/api/v1/clusters/__proto__`)).status).toBe(404)
    expect((await fetch(`${address}/api/v1/clusters/sim-002/nodes/constructor`)).status).toBe(404)
    expect({} as Record<string, unknown>).not.toHaveProperty('polluted')
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  it('reaches no terminal but as text', async () => {
    for (const noun of nounNames)
      for (const output of ['table', 'json', 'yaml'] as const) {
        const { text } = await get({ noun, names: [], server: address, clusters: [], output })
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u)
      }
  })

  it('leaves the cluster beside it as it is', async () => {
    expect(await createClient({ baseUrl: address }).cluster('sim-002')).toMatchObject({
      health: 'healthy',
      nodes: { total: 3 },
    })
  })

  describe.skipIf(noBrowser !== undefined)(`on the page${noBrowser ? ` (not run: ${noBrowser})` : ''}`, () => {
    it.each([
      '/',
      '/clusters/sim-001',
      '/clusters/sim-001/nodes',
      `/clusters/sim-001/nodes/${encodeURIComponent(MARKUP)}`,
    ])('runs nothing and links nowhere on %s', async (path) => {
      const shown = await browser!.newPage()
      const complaints: string[] = []
      shown.on('pageerror', (error) => complaints.push(error.message))
      shown.on('dialog', (dialog) => complaints.push(dialog.message()))
      shown.on('console', (message) => {
        if (/Content Security Policy/.test(message.text())) complaints.push(message.text())
      })
      await shown.goto(`${address}${path}`)
      // The words themselves: had they been taken for markup, they would not be there.
      const words = shown.getByText('<img src=x onerror=', { exact: false })
      await words.first().waitFor()
      expect(await shown.evaluate('window.taken')).toBeUndefined()
      expect(await shown.locator('img[src="x"], a[href^="javascript:"], main script').count()).toBe(0)
      expect(complaints).toEqual([])
      await shown.close()
    })
  })
})

describe('a hostile request to the objects of the hub', () => {
  it('cannot reach what all objects inherit, by any kind of patch', async () => {
    await using world = await aWorld()
    const member = await world.member()
    await connect(world, 'west', member)
    const key = { name: 'west', namespace: NAMESPACE }
    const said = JSON.parse(
      '{"__proto__":{"polluted":1},"metadata":{"annotations":{"__proto__":"x","constructor":"y"}}}',
    )
    const apply = { ...said, apiVersion: 'clusterpulse.io/v1alpha1', kind: 'ClusterConnection' }
    const tries: [unknown, 'merge' | 'json' | 'apply'][] = [
      [said, 'merge'],
      [JSON.parse('{"constructor":{"prototype":{"polluted":1}},"spec":{"labels":{"__proto__":"x"}}}'), 'merge'],
      [[{ op: 'add', path: '/__proto__/polluted', value: 1 }], 'json'],
      [[{ op: 'add', path: '/constructor/prototype/polluted', value: 1 }], 'json'],
      [[{ op: 'add', path: '/spec/labels', value: JSON.parse('{"__proto__":"x"}') }], 'json'],
      [{ ...apply, metadata: { ...apply.metadata, ...key } }, 'apply'],
    ]
    for (const [body, kind] of tries) {
      // Taken or refused: either is fine, as long as it is this object alone.
      await world.hub.patch(connectionResource, key, body, { kind, fieldManager: 'test' }).catch((error: unknown) => {
        expect(error).toMatchObject({ name: 'KubeError' })
        expect((error as { httpStatus?: number }).httpStatus).toBeLessThan(500)
      })
      expect({} as Record<string, unknown>).not.toHaveProperty('polluted')
      expect(Object.keys(Object.prototype)).toEqual([])
    }
    await world.start()
    await untilPhase(world, 'west', 'Connected')
    const object = (await world.hub.get(connectionResource, key)) as KubeObject
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
    expect(object).not.toHaveProperty('polluted')
  })
})
