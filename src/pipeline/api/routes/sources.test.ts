import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Compile } from 'typebox/compile'
import { describe, expect, it } from 'vitest'
import { listSources, type RouteContract, type SourcesView, type SourceTrialView, trySource } from '#http'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import { Table } from '#model'
import { readSourceManifest, sourceManifest } from '../source-manifest.ts'
import { aTrail, get, post } from '../test/ask.ts'
import { aRow, aSource, GivenCatalog, seenBy } from '../test/sources.ts'
import { aWorld, proxy } from '../test/world.ts'
import type { ApiOptions, SourceTrial } from '../types.ts'

const examples = join(import.meta.dirname, '../../../../deploy/examples/metric-sources')
const texts: readonly (readonly [string, string])[] = readdirSync(examples)
  .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
  .map((name) => [name, readFileSync(join(examples, name), 'utf8')] as const)

function compiled(text: string): CompiledSource {
  const read = readSourceManifest(text)
  const source = 'object' in read ? compileMetricSource(read.object).source : undefined
  if (!source) throw new Error(`this does not compile: ${text}`)
  return source
}

const manifest = `
apiVersion: clusterpulse.io/v1alpha1
kind: MetricSource
metadata: {name: claims}
spec:
  source:
    apiVersion: v1
    kind: PersistentVolumeClaim
    labelSelector:
      matchLabels: {app: shop}
      matchExpressions:
        - {key: tier, operator: In, values: [gold, silver]}
        - {key: old, operator: DoesNotExist}
        - {key: team, operator: Exists}
  fields: [{name: size, path: .spec.resources.requests.storage, type: bytes}]
  computed: [{name: half, expression: size / 2}]
  aggregations: [{name: total, function: sum, field: size}]
`

const fits = ({ schema }: RouteContract, body: unknown) =>
  expect([...Compile(schema.response).Errors(body)]).toEqual([])

async function ask(options: Partial<ApiOptions>, body: object, as = 'admin') {
  await using world = await aWorld({ identity: proxy }, { catalog: new GivenCatalog(), ...options })
  await world.connect('west')
  const { status, body: answer } = await post(world, '/api/v2/metric-sources/try', body, { as })
  if (status === 200) fits(trySource, answer)
  return { status, answer: answer as unknown as SourceTrialView & { code?: string } }
}

const rows = Array.from({ length: 300 }, (_, at) => aRow('shop', `claim-${at}`, { size: at, half: at / 2 }))
const sees: SourceTrial = async (_cluster, source) => {
  const all = Table.of(['size', 'half'], rows)
  const facts = { aggregations: source.aggregate(all), truncated: false, errors: [], errorCount: 0, reports: [] }
  return { source: source.id, hash: source.hash, durationMs: 3.2, outcome: 'complete', rows: all, ...facts }
}

describe('a manifest', () => {
  it.each<readonly [string, string]>([...texts, ['one with a selector', manifest]])(
    'written out of its compiled form means the same: %s',
    (_name, text) => {
      const source = compiled(text)
      const again = compiled(sourceManifest(source))
      // What was left to defaults is written out, so the hash of the text is another.
      const same = { compiledAt: '', hash: '' }
      expect({ ...again.definition, ...same }).toEqual({ ...source.definition, ...same })
    },
  )

  it.each([
    ['', 'not_a_metric_source'],
    ['a: [b', 'manifest_unreadable'],
    [`${manifest}\n---\n${manifest}`, 'manifest_not_one'],
    ['{"apiVersion":"v1","kind":"Secret"}', 'not_a_metric_source'],
    ['['.repeat(5000), 'manifest_unreadable'],
    [`a: ${'x'.repeat(140_000)}`, 'manifest_unreadable'],
    [Array.from({ length: 200 }, (_, at) => `a${at}: &a${at} 1`).join('\n'), 'manifest_unreadable'],
  ])('that cannot be used is a finding: %#', (text, code) => {
    expect(readSourceManifest(text)).toMatchObject({ finding: { severity: 'error', code } })
  })
})

describe('a trial', () => {
  it('names every mistake by its place, and reads nothing', async () => {
    let asked = 0
    const trial: SourceTrial = async () => {
      asked += 1
      return undefined
    }
    const { answer } = await ask(
      { trySource: trial },
      {
        manifest: manifest
          .replace('size / 2', 'sise / 2')
          .replace('kind: PersistentVolumeClaim', 'kind: Persistent Claim'),
        cluster: 'west',
      },
    )
    expect(answer).toMatchObject({ source: null, result: null, note: null })
    expect(answer.findings[0]).toMatchObject({ severity: 'error', path: 'spec.source.kind' })
    expect(answer.findings[1]).toMatchObject({
      severity: 'warning',
      at: { text: 'sise / 2', from: 0, to: 4 },
      suggestion: expect.stringContaining('size'),
    })
    expect(asked).toBe(0)
  })

  it('shows some rows and counts all, with everything summed up', async () => {
    const { answer } = await ask({ trySource: sees }, { manifest, cluster: 'west' })
    expect(answer).toMatchObject({
      findings: [],
      source: { id: 'clusterpulse/claims', aggregations: [{ name: 'total' }] },
      note: null,
    })
    expect(answer.result).toMatchObject({
      total: 300,
      part: { count: 300, outcome: 'complete' },
      aggregations: { total: 44_850 },
    })
    expect(answer.result?.items).toHaveLength(200)
  })

  it('only compiles where no cluster is named', async () => {
    expect((await ask({ trySource: sees }, { manifest })).answer).toMatchObject({
      source: { type: expect.any(String) },
      result: null,
      note: null,
    })
  })

  it('says why nothing was read', async () => {
    const note = async (trial: SourceTrial | undefined) =>
      (await ask(trial ? { trySource: trial } : {}, { manifest, cluster: 'west' })).answer
    expect((await note(undefined)).note).toContain('no way into clusters')
    expect((await note(async () => undefined)).note).toContain('no way into cluster west')
    const forbidden: SourceTrial = async (_cluster, source) => ({
      ...{
        source: source.id,
        hash: source.hash,
        durationMs: 1,
        outcome: 'forbidden',
        code: 'forbidden',
        message: 'no',
      },
    })
    expect((await note(forbidden)).result).toMatchObject({
      total: 0,
      part: { outcome: 'forbidden', message: 'no', freshness: null },
    })
  })

  it('is for administrators, of a cluster that is there, and a third at once is refused', async () => {
    expect((await ask({ trySource: sees }, { manifest }, 'ann')).status).toBe(403)
    expect((await ask({ trySource: sees }, { manifest, cluster: 'nowhere' })).answer.code).toBe('cluster_not_found')
    let go = (): void => undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    let running = 0
    const slow: SourceTrial = async (...given) => {
      running += 1
      await gate
      return sees(...given)
    }
    const trail = aTrail()
    await using world = await aWorld(
      { identity: proxy },
      { catalog: new GivenCatalog(), trySource: slow, audit: trail },
    )
    await world.connect('west')
    const one = () => post(world, '/api/v2/metric-sources/try', { manifest, cluster: 'west' }, { as: 'admin' })
    const first = [one(), one()]
    await expect.poll(() => running).toBe(2)
    expect(await one()).toMatchObject({ status: 503, body: { code: 'too_many_trials', retryAfterSeconds: 5 } })
    go()
    for (const { status } of await Promise.all(first)) expect(status).toBe(200)
    expect((await one()).status).toBe(200)
    expect(trail.entries[0]).toMatchObject({
      kind: 'administration',
      resource: 'try MetricSource clusterpulse/claims on west',
    })
  })
})

describe('declarations', () => {
  it('are listed for administrators, with what they found and the functions there are', async () => {
    const source = compiled(manifest)
    await using world = await aWorld({ identity: proxy }, { catalog: new GivenCatalog(source, aSource('vm')) })
    await world.connect('west')
    world.collected('west', seenBy(source, rows.slice(0, 5)))
    const { body } = await get(world, '/api/v2/metric-sources', { as: 'admin' })
    fits(listSources, body)
    const { items, functions } = body as unknown as SourcesView
    expect(items[0]).toMatchObject({ source: { id: 'clusterpulse/claims' }, clusters: 1, rows: 5, errors: 0 })
    expect(compiled(items[0]?.manifest ?? '').columns).toEqual(source.columns)
    expect(functions.map(({ name }) => name)).toContain('round')
    expect((await get(world, '/api/v2/metric-sources', { as: 'ann' })).status).toBe(403)
  })
})
