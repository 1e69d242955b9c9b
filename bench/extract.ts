import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { invariant } from '../src/contract/model/index.ts'
import { compileProfile, type Extractor, type ProfileSpec } from '../src/pipeline/extract/index.ts'
import { deployments } from './extract/deployments.ts'

/*
 * What a row of inventory costs: CPU of this process per Deployment, from the parsed object to its scrubbed row. Kollect's own
 * measurement of the same is 25.5 to 27.7 µs (docs/adr/0041-what-cannot-be-seen-cannot-leave.md).
 */

const GOAL_US = 10
const targetGVK = { group: 'apps', version: 'v1', kind: 'Deployment' }
const paths = {
  image: '{.spec.template.spec.containers[*].image}',
  replicas: '{.spec.replicas}',
  team: '{.metadata.labels.team}',
  version: '{.metadata.labels.app\\.kubernetes\\.io/version}',
}
const attributes = (all: Readonly<Record<string, string>>) =>
  Object.entries(all).map(([name, path]) => ({ name, path, optional: true }))

const profiles: readonly { readonly what: string; readonly spec: ProfileSpec; readonly goal?: number }[] = [
  {
    what: 'reference: four paths and three expressions, one of them over all containers',
    spec: {
      targetGVK,
      attributes: attributes({
        ...paths,
        ready: 'cel:has(object.status.readyReplicas) && object.status.readyReplicas >= object.spec.replicas',
        images: 'cel:object.spec.template.spec.containers.map(c, c.image)',
        limited: 'cel:object.spec.template.spec.containers.all(c, has(c.resources) && has(c.resources.limits))',
      }),
    },
    goal: GOAL_US,
  },
  {
    what: 'six paths, one with a filter',
    spec: {
      targetGVK,
      attributes: attributes({
        ...paths,
        ready: '{.status.readyReplicas}',
        available: '{.status.conditions[?(@.type=="Available")].status}',
      }),
    },
    goal: GOAL_US,
  },
  {
    what: 'four expressions of one field each',
    spec: {
      targetGVK,
      attributes: attributes({
        name: 'cel:object.metadata.name',
        replicas: 'cel:object.spec.replicas',
        team: 'cel:object.metadata.labels["team"]',
        image: 'cel:object.spec.template.spec.containers[0].image',
      }),
    },
    goal: GOAL_US,
  },
  {
    what: 'environment of all containers, secrets in it',
    spec: { targetGVK, attributes: attributes({ env: '{.spec.template.spec.containers[*].env}' }) },
    goal: GOAL_US,
  },
  { what: 'the whole object (spec and status)', spec: { targetGVK, export: { mode: 'Resource' } } },
]

/** Runs the bench and writes bench/results/extract.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { objects: { type: 'string' }, rounds: { type: 'string' }, 'no-write': { type: 'boolean' } },
  })
  const [count, rounds] = [Number(values.objects ?? 10_000), Number(values.rounds ?? 9)]
  const load = loadavg()[0] ?? 0
  const objects = deployments(count)
  const bytes = Math.round(JSON.stringify(objects[0]).length / 100) / 10
  const rows = profiles.map(({ what, spec, goal }) => {
    const { extractor } = compileProfile({ spec })
    invariant(extractor, 'the profiles of the bench compile')
    const { median, least } = measured(extractor, objects, rounds)
    const verdict = goal === undefined ? '' : median <= goal ? 'met' : 'missed'
    return `| ${what} | ${median.toFixed(1)} µs | ${least.toFixed(1)} µs | ${goal === undefined ? '' : `${goal} µs`} | ${verdict} |`
  })
  const text = `# Extraction

From a parsed object to its row, without secrets: CPU per Deployment (user and system of the process, garbage collection included), ${count}
different Deployments of ${bytes} kB of JSON each, ${rounds} rounds over all of them after two to warm up. Parsing and what comes after a row are not in it.

| Profile | median round | best round | Goal | |
|---|---|---|---|---|
${rows.join('\n')}

Kollect measured 25.5 to 27.7 µs per Deployment (laptop-class arm64, profile not stated).

Node ${process.version}, ${availableParallelism()} cores of ${cpus()[0]?.model ?? 'an unknown processor'}; load ${load.toFixed(1)} when the run began.
`
  if (!values['no-write']) {
    const results = fileURLToPath(new URL('results', import.meta.url))
    await mkdir(results, { recursive: true })
    await writeFile(`${results}/extract.md`, text)
  }
  process.stdout.write(text)
}

function measured(
  extractor: Extractor,
  objects: readonly unknown[],
  rounds: number,
): { readonly median: number; readonly least: number } {
  const spent: number[] = []
  for (let round = -2; round < rounds; round++) {
    const since = process.cpuUsage()
    for (const object of objects) invariant(extractor.row(object).row, 'every Deployment has a row')
    const { user, system } = process.cpuUsage(since)
    if (round >= 0) spent.push((user + system) / objects.length)
  }
  spent.sort((a, b) => a - b)
  return { median: spent[Math.floor(spent.length / 2)] ?? Number.NaN, least: spent[0] ?? Number.NaN }
}
