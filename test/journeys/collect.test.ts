import { execFileSync } from 'node:child_process'
import { lstat, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { kollectKinds } from '#kinds'
import { type ClusterAccess, createKubeClient, type KubeClient, type KubeObject, type Resource } from '#kube'
import { type CollectOptions, collect } from '../../src/apps/cli/collect.ts'
import { embeddedApi } from '../owned-fleet.ts'
import { startRealApiServer } from '../real-apiserver.ts'

/*
 * One-shot collection from two clusters: real kube-apiservers where KUBEBUILDER_ASSETS names them, else embedded APIs.
 */

const SECRET = 'hunter2-planted'
const core = { group: '', version: 'v1' }
const namespaces: Resource = { ...core, plural: 'namespaces', kind: 'Namespace', namespaced: false }
const configMaps: Resource = { ...core, plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const secrets: Resource = { ...core, plural: 'secrets', kind: 'Secret', namespaced: true }
const crds: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
}
const kollect = (kind: string): Resource => ({
  group: 'kollect.dev',
  version: 'v1alpha1',
  plural: `${kind.toLowerCase()}s`,
  kind,
  namespaced: true,
})
const object = (kind: string, name: string, more: object, namespace?: string) =>
  ({ kind, metadata: { name, ...(namespace && { namespace }) }, ...more }) as unknown as KubeObject
const inventory = (kind: string, name: string, spec: object) =>
  object(kind, name, { apiVersion: 'kollect.dev/v1alpha1', spec }, 'shop')

const profile = inventory('KollectProfile', 'settings', {
  targetGVK: { version: 'v1', kind: 'ConfigMap' },
  attributes: [
    { name: 'mode', path: '{.data.mode}', optional: true },
    { name: 'keys', path: 'cel:size(object.data)' },
    { name: 'all', path: '{.data}' },
  ],
})
const target = inventory('KollectTarget', 'settings', {
  profileRef: 'settings',
  labelSelector: { matchLabels: { app: 'web' } },
})
const names = ['prod-a', 'prod-b'] as const

let folder: string
let config: string
let kubeconfig: string
const clients = new Map<string, KubeClient>()
const closing: (() => Promise<void>)[] = []

async function cluster(): Promise<ClusterAccess> {
  const real = await startRealApiServer()
  if (real) {
    closing.push(() => real.stop())
    return real.access
  }
  const embedded = await embeddedApi(await mkdtemp(join(folder, 'api-')))
  closing.push(embedded.close)
  return embedded.access
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'collect-'))
  config = join(folder, 'config.yaml')
  await writeFile(config, [profile, target].map((one) => stringify(one)).join('---\n'))
  const entries: { name: string; access: ClusterAccess }[] = []
  for (const name of names) {
    const access = await cluster()
    const kube = createKubeClient(access)
    clients.set(name, kube)
    closing.push(async () => kube[Symbol.asyncDispose]())
    await kube.create(namespaces, object('Namespace', 'shop', {}))
    for (let i = 0; i < 3; i++) {
      const data = {
        mode: `${name}-${i}`,
        'app.yaml': `host: db\npassword: ${SECRET}\ncredentials:\n  word: "a\n    ${SECRET}"\n`,
      }
      await kube.create(configMaps, {
        ...object('ConfigMap', `settings-${i}`, { data }, 'shop'),
        metadata: { name: `settings-${i}`, namespace: 'shop', labels: { app: 'web' } },
      })
    }
    await kube.create(configMaps, object('ConfigMap', 'unwanted', { data: {} }, 'shop'))
    await kube.create(secrets, object('Secret', 'web', { stringData: { innocent: SECRET } }, 'shop'))
    entries.push({ name, access })
  }
  entries.push({ name: 'prod-dead', access: { ...entries[0]!.access, server: 'https://127.0.0.1:1' } })
  entries.push({
    name: 'dev-stranger',
    access: { ...entries[0]!.access, credentials: { kind: 'token', token: 'nobody' } },
  })
  kubeconfig = join(folder, 'kubeconfig')
  await writeFile(
    kubeconfig,
    stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'prod-a' },
      contexts: entries.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
      clusters: entries.map(({ name, access }) => ({
        name,
        cluster: {
          server: access.server,
          'certificate-authority-data': Buffer.from(access.ca ?? '').toString('base64'),
        },
      })),
      users: entries.map(({ name, access }) => ({
        name,
        user: { token: access.credentials.kind === 'token' ? access.credentials.token : '' },
      })),
    }),
  )
})
afterAll(async () => {
  for (const close of closing.reverse()) await close()
  await rm(folder, { recursive: true, force: true })
})

async function run(more: Partial<CollectOptions> = {}, hasConfig = true) {
  let out = ''
  const answer = await collect(
    {
      ...(hasConfig && { config: [config] }),
      kubeconfig,
      namespace: 'shop',
      context: ['prod-a', 'prod-b'],
      output: '-',
      format: 'ndjson',
      dryRun: false,
      ...more,
    },
    {
      environment: {},
      signal: new AbortController().signal,
      now: () => Date.parse('2026-01-01T00:00:00Z'),
      onProgress: () => undefined,
      out: (text) => {
        out += text
      },
    },
  )
  return { ...answer, out, rows: out.split('\n').filter(Boolean) }
}

describe('collect', () => {
  it('gives the rows of several clusters, each with its cluster, in one order, and no secret', async () => {
    const { rows, out, status, text } = await run()
    expect(status, text).toBe(0)
    expect(
      rows
        .map((row) => JSON.parse(row))
        .map(({ cluster: of, name, attributes }) => [of, name, attributes.mode, attributes.keys]),
    ).toEqual(names.flatMap((name) => [0, 1, 2].map((i) => [name, `settings-${i}`, `${name}-${i}`, 2])))
    expect(out).not.toContain(SECRET)
    expect(text).toMatch(/prod-a +shop\/settings +ConfigMap +3 +0 +collected/)
    expect((await run()).out).toBe(out)
  })

  it('takes contexts by glob; one that is away stops no other, and counts', async () => {
    const file = join(folder, 'fleet.json')
    const { status, notes } = await run({ context: ['prod-*'], format: 'json', output: file })
    expect(status).toBe(2)
    expect(notes.join('\n')).toMatch(/prod-dead: .*127\.0\.0\.1:1/)
    const envelopes = JSON.parse(await readFile(file, 'utf8'))
    expect(envelopes).toMatchObject([
      {
        cluster: 'prod-a',
        complete: true,
        itemCount: 3,
        schemaVersion: 'kollect.dev/v1alpha1',
        exportedAt: '2026-01-01T00:00:00.000Z',
      },
      { cluster: 'prod-b', complete: true, itemCount: 3 },
      { cluster: 'prod-dead', complete: false, itemCount: 0, failure: expect.any(String) },
    ])
    expect(envelopes[0].checksum).toMatch(/^[0-9a-f]{64}$/)
  })

  it('tells forbidden, absent and unreachable apart, and leaves what a file held', async () => {
    const file = join(folder, 'kept.ndjson')
    await writeFile(file, 'before')
    const stranger = await run({ context: ['dev-stranger'], output: file })
    expect([stranger.status, stranger.notes.join()]).toEqual([
      2,
      expect.stringMatching(/dev-stranger: .*(?:token|credential|sign|401|unauthor)/i),
    ])
    const widgets = join(folder, 'widgets.yaml')
    const [kind, of] = [
      inventory('KollectProfile', 'widgets', {
        targetGVK: { group: 'example.com', version: 'v1', kind: 'Widget' },
        attributes: [{ name: 'a', path: '{.a}' }],
      }),
      inventory('KollectTarget', 'widgets', { profileRef: 'widgets' }),
    ]
    await writeFile(widgets, [kind, of].map((one) => stringify(one)).join('---\n'))
    const absent = await run({ config: [widgets], context: ['prod-a'], output: file })
    expect([absent.status, absent.text]).toEqual([2, expect.stringContaining('absent')])
    expect((await run({ context: ['prod-dead'], output: file })).status).toBe(2)
    expect(await readFile(file, 'utf8')).toBe('before')
    const some = await run({ config: [config, widgets], context: ['prod-a'] })
    expect([some.status, some.rows.length]).toEqual([1, 3])
  })

  it('does not take a namespace that is not there for an empty one', async () => {
    const { status, notes, rows } = await run({ namespace: 'nosuch', context: ['prod-a'] })
    expect([status, rows]).toEqual([2, []])
    expect(notes).toContain('prod-a: there is no namespace nosuch: check how it is written')
  })

  it('reads what the clusters declare themselves where no files are named', async () => {
    const none = await run({ context: ['prod-a'] }, false)
    expect([none.status, none.notes.join()]).toEqual([2, expect.stringContaining('crds --kollect')])
    for (const kube of clients.values()) {
      for (const kind of kollectKinds) await kube.create(crds, kind.crd() as unknown as KubeObject)
      await expect
        .poll(() =>
          kube.request('GET', '/apis/kollect.dev/v1alpha1/namespaces/shop/kollecttargets').then(
            () => true,
            () => false,
          ),
        )
        .toBe(true)
      await kube.create(kollect('KollectProfile'), profile)
      await kube.create(kollect('KollectTarget'), target)
    }
    const { status, rows, text, notes } = await run({}, false)
    expect([status, rows.length], `${text}\n${notes.join('\n')}`).toEqual([0, 6])
  })

  it('writes a file for each cluster into a folder, as YAML', async () => {
    const into = `${join(folder, 'out')}/`
    const { status } = await run({ output: into, format: 'yaml' })
    expect([status, (await readdir(into)).sort()]).toEqual([0, ['prod-a.yaml', 'prod-b.yaml']])
    expect(await readFile(join(into, 'prod-b.yaml'), 'utf8')).toMatch(/^- cluster: prod-b\n {2}targetNamespace: shop\n/)
  })

  it('writes to a pipe, and to what a link leads to, and puts no file in their place', async () => {
    const [pipe, link, file] = ['pipe', 'link', 'led-to'].map((name) => join(folder, name)) as [string, string, string]
    execFileSync('mkfifo', [pipe])
    const reader = readFile(pipe, 'utf8')
    expect((await run({ output: pipe })).status).toBe(0)
    expect((await reader).split('\n').filter((line) => line !== '')).toHaveLength(6)
    expect((await lstat(pipe)).isFIFO()).toBe(true)

    await writeFile(file, '')
    await symlink(file, link)
    expect((await run({ output: link })).status).toBe(0)
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    expect(await readFile(file, 'utf8')).toContain('prod-b')
  })

  it('says that it cannot write, with status 2, and after what it read', async () => {
    const file = join(folder, 'a-file')
    await writeFile(file, '')
    for (const output of ['/dev/full', '/proc/nobody/', join(file, 'in-it')]) {
      const { status, notes, text } = await run({ output })
      expect([status, notes.join('\n'), text]).toEqual([
        2,
        expect.stringContaining(`nothing more is written to ${output}: `),
        expect.stringContaining('prod-a'),
      ])
    }
  })

  it('writes nothing as a dry run', async () => {
    const { status, notes, out } = await run({ dryRun: true, output: join(folder, 'never') })
    expect([status, out, notes.join()]).toEqual([
      0,
      '',
      expect.stringContaining('6 rows of 2 clusters would be written'),
    ])
    expect(await readdir(folder)).not.toContain('never')
  })

  it.each<[string, () => Partial<CollectOptions>, RegExp]>([
    ['a context that is not there', () => ({ context: ['prod-x'] }), /no context "prod-x"; there are: prod-a/],
    ['a glob that fits none', () => ({ context: ['test-*'] }), /no context matches "test-\*"/],
    ['a folder that is not there', () => ({ config: [join(folder, 'nowhere')] }), /is not there/],
    ['a kubeconfig that is not there', () => ({ kubeconfig: join(folder, 'nowhere') }), /does not exist/],
  ])('says of %s what is wrong, with status 2', async (_, more, reason) => {
    const { status, notes } = await run(more())
    expect([status, notes.join('\n')]).toEqual([2, expect.stringMatching(reason)])
  })

  it('names every fault of the manifests before it asks anybody', async () => {
    const broken = join(folder, 'broken.yaml')
    await writeFile(
      broken,
      stringify({
        ...profile,
        spec: {
          targetGVK: { version: 'v1', kind: 'ConfigMap' },
          attributes: [
            { name: 'a', path: '.data' },
            { name: 'b', path: 'cel:(' },
          ],
        },
      }),
    )
    const { status, notes } = await run({ config: [broken], context: ['prod-dead'] })
    expect([status, notes]).toEqual([
      2,
      [
        expect.stringMatching(/broken\.yaml.*spec\.attributes\[0\]\.path/),
        expect.stringMatching(/spec\.attributes\[1\]\.path/),
      ],
    ])
  })

  it('stopped in the middle writes nothing', async () => {
    const stop = new AbortController()
    const file = join(folder, 'stopped.ndjson')
    const answer = collect(
      {
        config: [config],
        kubeconfig,
        context: ['prod-a'],
        namespace: 'shop',
        output: file,
        format: 'ndjson',
        dryRun: false,
      },
      { environment: {}, signal: stop.signal, now: Date.now, onProgress: () => stop.abort(), out: () => undefined },
    )
    expect(await answer).toMatchObject({ status: 2, notes: [expect.stringContaining('nothing was written')] })
    expect(await readdir(folder)).not.toContain('stopped.ndjson')
  })
})
