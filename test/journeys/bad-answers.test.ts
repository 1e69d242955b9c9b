import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collectors, collectRound } from '#collect'
import { ClientPool, type KubeClient } from '#kube'
import { type Batch, FleetError, type Part, parseClusterName } from '#model'
import { FaultProxy, type SimulatedFleet, scenarios, simulateFleet } from '#simulator'
import { aWorld, type World } from '../../src/control/connections/testing/world.ts'
import { all } from '../properties.ts'

/*
 * List answers broken at random on their way: cut off, with bytes changed, or replaced by any JSON. Whatever comes, a round
 * ends as a batch that says of each part what it is, and a cluster that was not read is never shown as a healthy empty one.
 */
const NODES = 3
const cluster = parseClusterName('sim-001')
const RESOURCES = [
  'nodes',
  'pods',
  'namespaces',
  'deployments',
  'clusterserviceversions',
  'subscriptions',
  'apis',
] as const
/** what each part must not lose when a list is cut off */
const TYPES: Readonly<Record<string, Part['type']>> = {
  nodes: 'node',
  namespaces: 'namespace',
  deployments: 'deployment',
}

/** A fault of ours, told as if the cluster had said it. */
const PROGRAMMERS_WORDS = /undefined|\[object|TypeError|is not a function|is not iterable|Cannot read|Cannot convert/

type Break =
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'flip'; readonly bytes: readonly { readonly at: number; readonly mask: number }[] }
  | { readonly kind: 'json'; readonly text: string }
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }

const part = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const breaks: fc.Arbitrary<Break> = fc.oneof(
  part.map((at) => ({ kind: 'cut' as const, at })),
  fc
    .array(fc.record({ at: part, mask: fc.integer({ min: 1, max: 255 }) }), { minLength: 1, maxLength: 8 })
    .map((bytes) => ({ kind: 'flip' as const, bytes })),
  fc.json().map((text) => ({ kind: 'json' as const, text })),
  // Close to a list, and yet none.
  fc
    .record(
      {
        kind: fc.constantFrom('Status', 'NodeList', 'PodList', 7, null),
        items: fc.jsonValue(),
        metadata: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    .map((value) => ({ kind: 'json' as const, text: JSON.stringify(value) })),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => ({ kind: 'noise' as const, bytes })),
)

function broken(how: Break, body: Buffer): Buffer {
  if (how.kind === 'json') return Buffer.from(how.text)
  if (how.kind === 'noise') return Buffer.from(how.bytes)
  if (how.kind === 'cut') return body.subarray(0, Math.floor(how.at * body.length))
  const copy = Buffer.from(body)
  for (const { at, mask } of how.bytes) {
    const place = Math.floor(at * copy.length)
    copy[place] = (copy[place] ?? 0) ^ mask
  }
  return copy
}

describe('an answer broken at random', () => {
  let fleet: SimulatedFleet
  let proxy: FaultProxy
  let world: World
  let pool: ClientPool
  const escaped: unknown[] = []
  const note = (error: unknown) => escaped.push(error)

  beforeAll(async () => {
    process.on('unhandledRejection', note)
    process.on('uncaughtExceptionMonitor', note)
    fleet = await simulateFleet(scenarios.plain({ clusters: 1, nodes: NODES, pods: 20 }))
    proxy = await FaultProxy.open({ upstream: fleet })
    world = await aWorld()
    pool = new ClientPool({ breaker: { threshold: 1e9 }, qps: 1e5, burst: 1e5 })
    await world.ingester.connect(cluster, {
      displayName: cluster,
      endpoint: proxy.url,
      labels: {},
      mode: 'pull',
      intervalMs: 30_000,
      timeoutMs: 5_000,
      insecureSkipTlsVerify: false,
      credentialsRef: { name: cluster, namespace: '' },
    })
  })
  afterAll(async () => {
    await pool?.[Symbol.asyncDispose]()
    await world?.[Symbol.asyncDispose]()
    await proxy?.[Symbol.asyncDispose]()
    await fleet?.[Symbol.asyncDispose]()
    process.off('unhandledRejection', note)
    process.off('uncaughtExceptionMonitor', note)
  })

  /** A new key each time, so that nothing learnt from an answer before is used. */
  async function round(key: string): Promise<Batch> {
    const access = {
      server: `${proxy.url}/clusters/${cluster}`,
      verifyTls: true,
      credentials: { kind: 'token' as const, token: fleet.clusters.find(({ name }) => name === cluster)?.token ?? '' },
    }
    const kube: KubeClient = await pool.get(key, access, { timeoutMs: 5_000 })
    try {
      const signal = AbortSignal.timeout(10_000)
      const batch = await collectRound({
        kube,
        cluster,
        collectors,
        source: 'pull',
        signal,
      })
      return { ...batch, sequence: world.ingester.nextSequence(cluster) }
    } finally {
      await pool.drop(key)
    }
  }

  it('never ends the process, and never makes an unread cluster a healthy empty one', async () => {
    let number = 0
    const seen = { complete: 0, failed: 0, partly: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(breaks, fc.constantFrom(...RESOURCES), fc.boolean(), async (how, resource, asJson) => {
        proxy.set(cluster, {
          kind: 'rewrite',
          resource,
          change: (body) => broken(how, body),
          ...(how.kind === 'json' && asJson && { contentType: 'application/json' }),
        })
        const batch = await round(`fuzz-${number++}`)
        if (batch.failure) {
          seen.failed++
          expect(batch.parts).toEqual([])
          expect(batch.failure.message).not.toMatch(PROGRAMMERS_WORDS)
        } else if (batch.parts.some(({ outcome }) => outcome === 'unreachable')) seen.partly++
        else seen.complete++
        for (const part of batch.parts)
          if (part.outcome !== 'complete' && part.outcome !== 'changed')
            expect(part.message).not.toMatch(PROGRAMMERS_WORDS)
        const cut = how.kind === 'cut' ? batch.parts.find(({ type }) => type === TYPES[resource]) : undefined
        if (cut) expect(cut.outcome).not.toBe('complete')
        try {
          await world.ingester.accept({ batch })
        } catch (error) {
          // What breaks the contract is refused by name, and what was known stays.
          expect(error).toBeInstanceOf(FleetError)
          seen.refused++
        }
        await world.ingester.flushed()
        const state = world.cluster(cluster)
        const nodes = state?.parts.node?.items.size ?? 0
        if (state?.status.health === 'healthy') expect(nodes).toBeGreaterThan(0)
      }),
      all({ numRuns: 300, seed: 20261121 }),
    )
    expect(escaped).toEqual([])
    // Otherwise nothing was proved.
    for (const count of [seen.failed, seen.partly, seen.complete]) expect(count).toBeGreaterThan(2)
    proxy.heal(cluster)
    await world.ingester.accept({ batch: await round('healed') })
    await world.ingester.flushed()
    expect(world.cluster(cluster)?.status).toMatchObject({ health: 'healthy', reasons: [] })
    expect(world.cluster(cluster)?.parts.node?.items.size).toBe(NODES)
  })
})
