import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createKubeClient, customResourceDefinitions, type KubeClient, type KubeObject, type Resource } from '#kube'
import { collectSource, compileMetricSource, type SourceObject } from '#metricsource'
import { systemClock } from '#model'
import { noRealApiServer, type RealApiServer, startRealApiServer } from './real-apiserver.ts'

/*
 * The shipped MetricSources on a real Kubernetes API: the kinds of cert-manager, KubeVirt and Argo CD by their published
 * CRDs, which the API holds the recorded objects to, and the rest by Kubernetes itself.
 */
const missing = noRealApiServer()
const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : missing
const read = (path: string) => parse(readFileSync(path, 'utf8'))
const examples = 'deploy/examples/metric-sources'
const names = readdirSync(examples).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
const crds = readdirSync('test/fixtures/crds').map((name) => read(join('test/fixtures/crds', name)) as KubeObject)

interface Case {
  readonly at?: string
  readonly objects: readonly KubeObject[]
  readonly expect: {
    readonly rows: Readonly<Record<string, Readonly<Record<string, unknown>> | null>>
    readonly aggregations: Readonly<Record<string, unknown>>
  }
}

describe.skipIf(why !== undefined)(`shipped sources${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let real: RealApiServer
  let kube: KubeClient
  beforeAll(async () => {
    const server = await startRealApiServer()
    if (!server) throw new Error(missing)
    real = server
    kube = createKubeClient(real.access, { qps: 1000, burst: 1000 })
    for (const name of ['shop', 'argocd']) await kube.create(namespaces, { metadata: { name } })
    for (const crd of crds) await kube.create(customResourceDefinitions, crd)
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    await real?.stop()
  })

  it.each(names)('%s reads what the API took of the recorded objects', async (name) => {
    const { source, findings } = compileMetricSource(read(join(examples, name)) as SourceObject)
    expect(findings).toEqual([])
    if (!source) throw new Error('it compiles')
    const { group, version, kind, scope } = source.target
    const plural = await served(kube, group, version, kind)
    const resource: Resource = { group, version, plural, kind, namespaced: scope === 'Namespaced' }
    const [given] = read(join('test/fixtures/metric-sources', name.replace('.yaml', '.cases.yaml'))).cases as [Case]
    for (const object of given.objects) {
      const { metadata, status } = object
      await kube.create(resource, object)
      const key = { name: metadata.name, ...(metadata.namespace && { namespace: metadata.namespace }) }
      // Argo CD's kind has no status subresource: the status came with the object.
      const patch = { kind: 'merge', subresource: 'status' } as const
      if (status && kind !== 'Application') await kube.patch(resource, key, { status }, patch)
    }
    const at = given.at === undefined ? Date.now() : Date.parse(given.at)
    const part = await collectSource({
      kube,
      source,
      signal: AbortSignal.timeout(30_000),
      clock: { ...systemClock, now: () => at, sleep: systemClock.sleep },
    })
    if (part.outcome !== 'complete') throw new Error(`it is ${part.outcome}`)
    const rows = new Map([...part.rows.rows()].map((row, place) => [part.rows.idAt(place), row.values]))
    for (const [id, values] of Object.entries(given.expect.rows)) {
      if (values === null) expect(rows.has(id), id).toBe(false)
      else expect(rows.get(id), id).toMatchObject(values)
    }
    expect(part.aggregations).toMatchObject(given.expect.aggregations)
    expect(part.reports.filter(({ malformed }) => malformed > 0)).toEqual([])
  })
})

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

/** A new kind takes the API a moment. */
async function served(kube: KubeClient, group: string, version: string, kind: string): Promise<string> {
  for (;;) {
    const list = (await kube
      .request('GET', group === '' ? `/api/${version}` : `/apis/${group}/${version}`)
      .catch(() => undefined)) as { resources: readonly { name: string; kind: string }[] } | undefined
    const found = list?.resources.find((one) => one.kind === kind && !one.name.includes('/'))
    if (found) return found.name
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
