import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { embeddedApi } from '../../../test/owned-fleet.ts'
import { demoSources } from '../hub/demo-sources.ts'
import { evaluateExpression } from './expression.ts'
import { evaluate } from './metricsource.ts'
import { testSources } from './metricsource-test.ts'

const examples = 'deploy/examples/metric-sources'
const fixtures = 'test/fixtures/metric-sources'
const names = (await readdir(examples))
  .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
  .map((name) => name.replace('.yaml', ''))
const now = Date.parse('2026-01-01T00:00:00Z')

describe('the shipped examples', () => {
  it.each(names)('%s gives of recorded objects what its cases expect', (name) => {
    const answer = testSources({
      files: [join(examples, `${name}.yaml`)],
      cases: join(fixtures, `${name}.cases.yaml`),
      output: 'text',
    })
    expect(answer, answer.text).toMatchObject({ failed: false, notes: [] })
  })

  it('meet the cases of the guide, and its declaration has no fault', async () => {
    const guide = await readFile('docs/guide/metric-sources.md', 'utf8')
    const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-guide-'))
    const block = (first: string) => {
      const lines = guide.slice(guide.indexOf(`\n    ${first}`) + 1).split('\n')
      const end = lines.findIndex((line) => line !== '' && !line.startsWith('    '))
      return lines
        .slice(0, end)
        .map((line) => line.slice(4))
        .join('\n')
    }
    const [cases, declared] = [join(folder, 'cases.yaml'), join(folder, 'source.yaml')]
    await writeFile(cases, block('cases:'))
    await writeFile(declared, block('apiVersion: clusterpulse.io/v1alpha1'))
    const example = join(examples, 'pvc-capacity.yaml')
    expect(testSources({ files: [example], cases, output: 'text' })).toMatchObject({ failed: false, notes: [] })
    await writeFile(join(folder, 'objects.yaml'), 'kind: PersistentVolumeClaimList\napiVersion: v1\nitems: []\n')
    const objects = [join(folder, 'objects.yaml')]
    const { failed, notes } = await evaluate({ limit: 1, now, output: 'table', files: [declared], objects })
    expect([failed, notes.filter((note) => /error|warning/.test(note))]).toEqual([false, []])
    await rm(folder, { recursive: true })
  })

  it('are seven, and the demo declares three of them as they are', async () => {
    expect(names).toHaveLength(7)
    for (const [name, spec] of Object.entries(demoSources)) {
      expect(spec, name).toEqual(parse(await readFile(join(examples, `${name}.yaml`), 'utf8')).spec)
    }
  })
})

it('metricsource eval names each source that a cluster does not serve, and shows the others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'clusterpulse-eval-'))
  const api = await embeddedApi(folder)
  onTestFinished(async () => {
    await api.close()
    await rm(folder, { recursive: true })
  })
  const source = (name: string, apiVersion: string, kind: string) => ({
    ...{ apiVersion: 'clusterpulse.io/v1alpha1', kind: 'MetricSource', metadata: { name, namespace: 'default' } },
    spec: {
      source: { apiVersion, kind, scope: 'Cluster' },
      fields: [{ name: 'phase', path: '.status.phase' }],
      rbac: { resourceTypeName: name },
    },
  })
  const files = [join(folder, 'sources.json')]
  const items = [source('certs', 'cert-manager.io/v1', 'Certificate'), source('spaces', 'v1', 'Namespace')]
  await writeFile(files[0] ?? '', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const kubeconfig = join(folder, 'hub.yaml')
  const { failed, notes, text } = await evaluate({ limit: 5, now, output: 'table', files, kubeconfig })
  expect(failed).toBe(true)
  expect(notes).toContainEqual(
    expect.stringMatching(/^certs: cert-manager.io\/v1 Certificate is not served by context/),
  )
  expect(text).toContain('spaces')
})

describe('clusterpulse metricsource', () => {
  let folder = ''
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const asked = { limit: 100, now, output: 'table' } as const

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'clusterpulse-metricsource-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const source = (expression: string) => `
apiVersion: clusterpulse.io/v1alpha1
kind: MetricSource
metadata: { name: boxes, namespace: test }
spec:
  source: { apiVersion: v1, kind: ConfigMap, labelSelector: { matchLabels: { box: 'yes' } } }
  fields: [{ name: used, path: .data.used, type: integer }, { name: capacity, path: .data.capacity, type: integer }]
  computed: [{ name: percent, expression: '${expression}' }]
  aggregations: [{ name: boxes, function: count }, { name: avg_percent, function: avg, field: percent }]
`
  const objects = JSON.stringify({
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    items: [
      { metadata: { name: 'a', namespace: 'x', labels: { box: 'yes' } }, data: { used: '3', capacity: '8' } },
      { metadata: { name: 'b', namespace: 'x', labels: { box: 'no' } }, data: { used: '1', capacity: '8' } },
      { metadata: { name: 'c', namespace: 'y', labels: { box: 'yes' } }, data: { used: 'many', capacity: '8' } },
    ],
  })

  it('shows rows, aggregations and how well each field could be read', async () => {
    const files = [await file('good.yaml', source('round((used / capacity) * 100, 2)'))]
    const answer = await evaluate({ ...asked, files, objects: [await file('objects.json', objects)] })
    expect(answer.failed).toBe(false)
    expect(answer.text).toMatch(/NAMESPACE +NAME +USED +CAPACITY +PERCENT\nx +a +3 +8 +37\.5\ny +c +- +8/)
    expect(answer.text).toMatch(/boxes +2/)
    expect(answer.notes.join('\n')).toMatch(/used: 1 of 2 do not fit its type, such as "many"/)
  })

  it('names each mistake with its line, a caret and what was meant, and evaluates nothing', async () => {
    const files = [await file('bad.yaml', source('used').replace('.data.used', "'.data.used['"))]
    const answer = await evaluate({ ...asked, files, objects: [await file('objects.json', objects)] })
    expect(answer).toMatchObject({ failed: true, text: '' })
    expect(answer.notes.join('\n')).toMatch(/error: spec\.fields\[0\]\.path[\s\S]*\^/)
  })

  it('names file, line and column of each mistake, in any document, list or quotes', async () => {
    const wrong = source('round((usd / capacity) * 100, 2)')
    const line = wrong.split('\n').findIndex((text) => text.includes('computed:')) + 1
    const column = (wrong.split('\n')[line - 1] ?? '').indexOf('usd') + 1
    const places = async (name: string, text: string) => {
      const files = [await file(name, text)]
      const { notes } = await evaluate({ ...asked, files, objects: [await file('objects.json', objects)] })
      return notes.flatMap((note) => /^(\S+:\d+:\d+): (?:error|warning): spec/.exec(note)?.[1] ?? [])
    }
    expect(await places('one.yaml', wrong)).toEqual([`${join(folder, 'one.yaml')}:${line}:${column}`])
    expect(await places('two.yaml', `kind: Other\n---${wrong}`)).toEqual([
      `${join(folder, 'two.yaml')}:${line + 1}:${column}`,
    ])
    const indented = wrong.trim().replace(/\n/g, '\n    ')
    expect(await places('list.yaml', `kind: List\nitems:\n  - ${indented}\n`)).toEqual([
      `${join(folder, 'list.yaml')}:${line + 1}:${column + 4}`,
    ])
    // What is missing stands where it is missed.
    expect(await places('none.yaml', wrong.replace(/ {2}source:.*\n/, '').replace('usd', 'used'))).toEqual([
      `${join(folder, 'none.yaml')}:6:3`,
    ])
  })

  it('shows a computed value that cannot be compiled without a value, and names its mistake', async () => {
    const files = [await file('bad.yaml', source('round((usd / capacity) * 100, 2)'))]
    const answer = await evaluate({ ...asked, files, objects: [await file('objects.json', objects)] })
    expect(answer.text).toMatch(/NAMESPACE +NAME +USED +CAPACITY +PERCENT\nx +a +3 +8 +-/)
    expect(answer.notes.join('\n')).toMatch(/spec\.computed\[0\]\.expression[\s\S]*\^\^\^[\s\S]*used/)
  })

  it('says what to give where nothing is to be read, and where a file holds no MetricSource', async () => {
    const files = [await file('good.yaml', source('used'))]
    await expect(evaluate({ ...asked, files })).rejects.toThrow('--objects FILE')
    const none = [await file('none.yaml', 'kind: ConfigMap')]
    await expect(evaluate({ ...asked, files: none, objects: none })).rejects.toThrow('there is no MetricSource')
  })

  it('tells a failed case by what is different', async () => {
    const files = [await file('good.yaml', source('used'))]
    const cases = await file(
      'cases.yaml',
      `cases: [{ name: wrong, objectFiles: [${await file('objects.json', objects)}], expect: { count: 3, rows: { x/a: { used: 4 }, x/q: {} }, aggregations: { boxes: 1 } } }]`,
    )
    const answer = testSources({ files, cases, output: 'text' })
    expect(answer.failed).toBe(true)
    expect(answer.text).toContain('expected 3 rows, got 2')
    expect(answer.text).toContain('x/a: used is 3, expected 4')
    expect(answer.text).toContain('x/q: expected a row, there is none')
    expect(answer.text).toContain('aggregations: boxes is 2, expected 1')
    expect(answer.text).toMatch(/0 passed, 1 failed/)
  })
})

describe('clusterpulse expression', () => {
  it('evaluates with names from JSON or YAML', () => {
    const asked = { text: 'round((used / capacity) * 100, 2)', now, functions: false }
    expect(evaluateExpression({ ...asked, context: '{used: 3, capacity: 8}' })).toMatchObject({ text: '37.5' })
    // null counts as 0 in arithmetic, a division by 0 gives null: both are 0 in the end.
    expect(evaluateExpression({ ...asked, context: '{"used": null, "capacity": 0}' })).toMatchObject({ text: '0' })
  })

  it('shows the place of a mistake, and refuses a context that is none', () => {
    const answer = evaluateExpression({ text: '1 + (2', context: '{}', now, functions: false })
    expect(answer).toMatchObject({ failed: true, text: '' })
    expect(answer.notes.join('\n')).toContain('^')
    expect(() => evaluateExpression({ text: '1', context: '[1]', now, functions: false })).toThrow('must be an object')
    expect(() => evaluateExpression({ text: '1', context: '{a: {b: 1}}', now, functions: false })).toThrow('a must be')
  })

  it('lists every function with an example that gives what it says', () => {
    const list = evaluateExpression({ context: '{}', now, functions: true })
    expect(list.text).toMatch(/round\(x \[, decimals\]\)/)
  })
})
