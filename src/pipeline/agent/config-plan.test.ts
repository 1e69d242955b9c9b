import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { KubeClient } from '#kube'
import { type Plan, parseClusterName } from '#model'
import { Agent } from './agent.ts'
import { type OriginalConfig, planOfConfig } from './config-plan.ts'
import { grpcTransport } from './grpc.ts'
import { OriginalHub } from './testing/original-hub.ts'
import { countingCollector } from './testing/small-cluster.ts'

/** As the documented form in Redis has it. */
const document = (name: string, changes: object = {}) => ({
  name,
  namespace: 'hub',
  source: {
    ...{ apiVersion: 'example.com/v1', kind: 'Widget', scope: 'Namespaced' },
    ...{ group: 'example.com', version: 'v1', resource: 'widgets', namespaces: { exclude: ['kube-*'] } },
  },
  fields: [{ name: 'size', path: '.spec.size', pathSegments: ['spec', 'size'], type: 'integer', index: 0 }],
  computed: [{ name: 'twice', expression: 'size * 2', type: 'float' }],
  aggregations: [{ name: 'total', field: 'size', function: 'sum' }],
  collection: {
    ...{ intervalSeconds: 30, timeoutSeconds: 5, maxResources: 100, batchSize: 10 },
    ...{ retryAttempts: 0, parallelism: 1 },
  },
  rbac: { resourceTypeName: 'widget', filterAggregations: true },
  compiledAt: '2026-01-01T00:00:00Z',
  hash: '0123456789abcdef',
  ...changes,
})
const bytes = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value))
const config = (sources: readonly unknown[], defaultIntervalSeconds = 0): OriginalConfig => ({
  metricSourcesJson: sources.map(bytes),
  defaultIntervalSeconds,
})
const inForce = (...sources: readonly object[]): Plan => ({
  ...{ version: 'p', intervalMs: 60_000, timeoutMs: 5_000, operatorScanIntervalMs: 300_000 },
  sources,
})
const [a, b] = [document('a'), document('b')]
const broken = document('a', { fields: [] })

describe('the plan of a config', () => {
  it.each<
    [what: string, told: readonly unknown[], kept: readonly object[], sources: readonly object[], findings: number]
  >([
    ['takes the place of all sources', [b], [a], [b], 0],
    ['is in the order of names', [b, a], [], [a, b], 0],
    ['has of two with one name the later', [document('a', { hash: 'f'.repeat(16) }), a], [], [a], 0],
    ['without sources has none', [], [a], [], 0],
    ['keeps the last good of what cannot be read', [broken, b], [a], [a, b], 1],
    ['leaves out what never could be read', [broken, b], [], [b], 1],
    ['takes nothing away where a document is no JSON', ['{"name":', b], [a], [a, b], 1],
    ['takes nothing away where a document has no name', [{ namespace: 'hub' }, b], [a], [a, b], 1],
    ['is not stopped by what is no object', ['null', '[]', '7', '"x"', b], [], [b], 4],
    ['does not read what is larger than a source', [' '.repeat(1_048_577), b], [], [b], 1],
    ['takes the first thousand', Array.from({ length: 1_001 }, () => b), [], [b], 1],
  ])('%s', (_, told, kept, sources, findings) => {
    const made = planOfConfig(config(told), inForce(...kept))
    expect(made.plan.sources).toEqual(sources)
    expect(made.findings, made.findings.join('; ')).toHaveLength(findings)
    expect(made.plan).toMatchObject({ intervalMs: 60_000, timeoutMs: 5_000, operatorScanIntervalMs: 300_000 })
  })

  it.each([
    [0, 60_000, 0],
    [45, 45_000, 0],
    [1, 1_000, 0],
    [3_600, 3_600_000, 0],
    [3_601, 3_600_000, 1],
    [2 ** 31 - 1, 3_600_000, 1],
    [-5, 60_000, 1],
  ])('takes an interval of %d s as %d ms', (seconds, intervalMs, findings) => {
    const made = planOfConfig(config([a], seconds), inForce())
    expect([made.plan.intervalMs, made.findings.length]).toEqual([intervalMs, findings])
  })

  it('has a version of what it says, and of nothing else', () => {
    const version = (...args: Parameters<typeof config>) => planOfConfig(config(...args), inForce()).plan.version
    expect(version([a, b])).toBe(version([b, a]))
    expect(version([a])).not.toBe(version([b]))
    expect(version([a], 30)).not.toBe(version([a]))
  })

  it('is one of whatever bytes', () =>
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.uint8Array(), fc.json().map(bytes))), fc.integer(), (all, seconds) => {
        const sources = [...all, bytes(b)]
        const { plan } = planOfConfig({ metricSourcesJson: sources, defaultIntervalSeconds: seconds }, inForce(a))
        expect(plan.sources).toContainEqual(b)
        expect(plan.intervalMs).toBeGreaterThanOrEqual(1_000)
        expect(plan.intervalMs).toBeLessThanOrEqual(3_600_000)
      }),
    ))
})

describe('an agent facing a hub of the original', () => {
  let directory = ''
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'agent-config-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const widget = (namespace: string, name: string, size: number) => ({ metadata: { namespace, name }, spec: { size } })
  const kube = (): KubeClient =>
    ({
      ping: () => Promise.resolve(),
      find: async () => ({ plural: 'widgets', namespaced: true }),
      async *list() {
        const items = [widget('shop', 'x', 3), widget('shop', 'y', 4), widget('kube-system', 'z', 5)]
        yield { items, resourceVersion: '1', next: '' }
      },
    }) as unknown as KubeClient // no more of it is asked

  const anAgent = (hub: OriginalHub) =>
    Agent.open({
      cluster: parseClusterName('west'),
      version: '1',
      directory,
      plan: { intervalMs: 3_600_000 },
      token: async () => 't',
      kube,
      collectors: [countingCollector()],
      transport: grpcTransport({ address: `127.0.0.1:${hub.port}`, token: async () => 't' }),
      random: () => 0.01,
    })
  const soon = { timeout: 20_000, interval: 50 }

  it('collects what it says as often as it says, and keeps the last good of what it then spoils', async () => {
    await using hub = await OriginalHub.open()
    hub.sources = [bytes(document('widgets')), bytes('no JSON')]
    hub.intervalSeconds = 1
    {
      await using agent = await anAgent(hub)
      await vi.waitFor(() => expect(hub.collections.get('hub/widgets')).toBeDefined(), soon)
      expect(hub.collections.get('hub/widgets')).toEqual({
        count: 2,
        values: { 'shop/x': { size: 3, twice: 6 }, 'shop/y': { size: 4, twice: 8 } },
        aggregations: { total: 7 },
      })
      await vi.waitFor(() => expect(hub.rounds).toBeGreaterThan(2), soon)
      expect(agent.status().findings).toEqual([expect.stringMatching(/^source 2 is no MetricSource/)])

      const { plan } = agent.status()
      hub.sources = [bytes(document('widgets', { fields: 'none' }))]
      hub.intervalSeconds = -1
      hub.cut()
      await vi.waitFor(() => expect(agent.status().findings).toHaveLength(2), soon)
      expect(agent.status().findings).toContain('hub/widgets cannot be read: as it was it stays')
      expect(agent.status()).toMatchObject({ plan, sources: [{ source: 'hub/widgets' }] })
    }
    const kept = JSON.parse(await readFile(join(directory, 'plan.json'), 'utf8')) as Plan
    expect(kept).toMatchObject({ intervalMs: 1_000, sources: [{ name: 'widgets' }] })

    // A hub without MetricSources says nothing: what was kept from before the start ends with its first ack.
    hub.sources = []
    await using again = await anAgent(hub)
    expect(again.status().sources).toHaveLength(1)
    await vi.waitFor(() => expect(again.status().sources).toEqual([]), soon)
  })
})
