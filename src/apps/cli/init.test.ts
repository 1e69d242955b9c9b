import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { ApiServer, listenApi } from '#apiserver'
import { crdYaml, kollectKinds } from '#kinds'
import { type InitOptions, init } from './init.ts'
import { attributesOf, kindOf } from './init-sample.ts'
import { sinkWords } from './sink-words.ts'
import { validate } from './validate.ts'

let home: string
let folder: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'init-'))
  folder = join(home, 'collect-config')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const begun = (more: Partial<InitOptions> = {}) =>
  init({ folder, environment: { HOME: home }, signal: new AbortController().signal, ...more })
const read = (name: string) => parse(readFileSync(join(folder, name), 'utf8'))
const status = () =>
  validate({ paths: [folder], namespace: 'default', semantics: 'strict', output: 'text', environment: {} })

/** A cluster on the loopback, and a kubeconfig of it. */
async function aCluster(objects: readonly object[]): Promise<string> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'west' })
  for (const object of objects) await server.objects.create(object as never)
  const listener = await listenApi({
    ...{ host: '127.0.0.1', port: 0, tls: { dir: join(home, 'pki') }, mounts: new Map([['', server]]) },
    tokens: [{ token: 't', user: 'ann', groups: ['system:masters'] }],
  })
  onTestFinished(async () => {
    await listener[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  const path = join(home, 'kubeconfig')
  writeFileSync(path, listener.kubeconfig({ context: 'prod/eu-West', token: 't' }))
  return path
}

describe('init', () => {
  it.each(sinkWords)('writes a set for %s that validate has nothing against', async (sink) => {
    const { text, notes } = await begun({ sink })
    expect(status()).toMatchObject({ status: 0, notes: [] })
    const files = [
      'inventory.yaml',
      'profile.yaml',
      ...(sink === 'none' ? [] : ['secret.yaml', 'sink.yaml']),
      'target.yaml',
    ]
    expect(readdirSync(folder).sort()).toEqual(files)
    const places = {
      ...{
        postgres: 'dsn',
        git: 'token',
        s3: 'accessKeyID, secretAccessKey',
        nats: 'token',
        kafka: 'password',
        none: '',
      },
    }
    const words = `in ${join(folder, 'secret.yaml')} put your own credentials in place of change-me (${places[sink]}), then `
    expect(text).toContain(
      `Next: ${sink === 'none' ? '' : words}clusterpulse validate ${folder} && kubectl apply -f ${folder}`,
    )
    expect(notes).toEqual([expect.stringContaining('no kubeconfig was found')])
  })

  it('takes the answers of whoever is there, and asks nothing that an option says', async () => {
    const asked: string[] = []
    const answers = ['Service', 'nats', 'tls://nats.internal.example:4222']
    await begun({
      namespace: 'shop',
      ask: async (question) => {
        asked.push(question)
        return answers.shift() ?? ''
      },
    })
    expect(asked).toHaveLength(3)
    expect(read('profile.yaml')).toMatchObject({
      kind: 'KollectProfile',
      metadata: { name: 'service', namespace: 'shop' },
    })
    expect(read('sink.yaml').spec).toMatchObject({
      type: 'nats',
      endpoint: 'tls://nats.internal.example:4222',
    })
    expect(status().status).toBe(0)
  })

  it('looks into the cluster: its namespace, and values of an object of the kind', async () => {
    const widgets = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        ],
      },
    }
    const widget = {
      apiVersion: 'example.com/v1',
      kind: 'Widget',
      metadata: { name: 'a', namespace: 'default' },
      spec: { size: { width: 3 }, password: 'x' },
      status: { phase: 'Ready' },
    }
    const kubeconfig = await aCluster([widgets, widget])
    const { notes } = await begun({ kubeconfig, kind: 'Widget.v1.example.com' })
    expect(notes).toEqual([])
    expect(read('profile.yaml').spec).toEqual({
      targetGVK: { group: 'example.com', version: 'v1', kind: 'Widget' },
      attributes: [
        { name: 'width', path: '{.spec.size.width}', optional: true },
        { name: 'phase', path: '{.status.phase}', optional: true },
      ],
    })
    expect(status().status).toBe(0)
    await expect(begun({ folder: join(home, 'other'), kubeconfig, kind: 'Gadget.v1.example.com' })).rejects.toThrow(
      'does not serve Gadget of example.com/v1',
    )
    expect(() => statSync(join(home, 'other'))).toThrow()
  })

  // A name in the sink made the second cluster that got the same folder write as the first.
  it.each(sinkWords)('names no cluster in a set for %s, so that one folder fits all of them', async (sink) => {
    const { text } = await begun({ sink, kubeconfig: await aCluster([]) })
    for (const name of readdirSync(folder)) expect(read(name).spec ?? {}, name).not.toHaveProperty('cluster')
    expect(text).toContain('each writes under the CLUSTER_NAME of its agent')
  })

  it('asks nobody to put in what was given, and says that it is there', async () => {
    const { text } = await begun({ sink: 'postgres', endpoint: 'postgres://a:b@db.example.com/x' })
    expect(text).toContain(`${join(folder, 'secret.yaml')} holds the credentials that were given: keep it out of git.`)
    expect(text).toContain(`\nNext: clusterpulse validate ${folder} && kubectl apply -f ${folder}\n`)
    const [says] = readFileSync(join(folder, 'secret.yaml'), 'utf8').split('\n')
    expect(says).toBe('# Credentials of the sink, as they were given: keep the file out of git.')
  })

  it('names one where somebody chooses to', async () => {
    const { text } = await begun({ sink: 'git', cluster: 'west' })
    expect(read('sink.yaml').spec.cluster).toBe('west')
    expect(text).toContain('for west alone')
  })

  it('calls things by the sink, so that a set for a second one replaces nothing of the first', async () => {
    const names = new Set<string>()
    for (const [sink, name] of [['postgres'], ['git'], ['postgres', 'archive']] as const) {
      await begun({ folder: join(home, `${sink}-${name}`), sink, ...(name && { name }) })
      for (const file of ['inventory.yaml', 'sink.yaml', 'secret.yaml']) {
        const { kind, metadata } = parse(readFileSync(join(home, `${sink}-${name}`, file), 'utf8'))
        names.add(`${kind} ${metadata.name}`)
      }
    }
    expect(names.size).toBe(9)
  })

  it('says what the cluster has under these names already', async () => {
    const definitions = parseAllDocuments(crdYaml(kollectKinds)).map((one) => one.toJS() as object)
    const there = {
      apiVersion: 'kollect.dev/v1alpha1',
      kind: 'KollectDatabaseSink',
      metadata: { name: 'postgres', namespace: 'default' },
      spec: { type: 'postgres' },
    }
    const kubeconfig = await aCluster([...definitions, there])
    const { notes, text } = await begun({ kubeconfig, sink: 'postgres' })
    expect(text).not.toContain('kubectl apply')
    expect(notes).toContainEqual(
      expect.stringMatching(
        /^the cluster has KollectDatabaseSink default\/postgres already.* apply only profile.yaml, target.yaml, inventory.yaml;/,
      ),
    )
    const { notes: ofAnother } = await begun({ folder: join(home, 'b'), kubeconfig, sink: 'postgres', name: 'archive' })
    expect(ofAnother.join()).not.toContain('already')
  })

  it.each(['postgres', 'git', 'nats', 'kafka'] as const)(
    'judges a loopback address of %s by the same setting',
    async (sink) => {
      const endpoint = {
        postgres: 'postgres://a:b@127.0.0.1/x',
        git: 'https://127.0.0.1/a.git',
        nats: 'nats://127.0.0.1:4222',
        kafka: '127.0.0.1:9092',
      }[sink]
      await expect(begun({ sink, endpoint })).rejects.toThrow('set SINK_ALLOW_LOOPBACK for the process')
      await begun({ sink, endpoint, environment: { HOME: home, SINK_ALLOW_LOOPBACK: 'true' } })
      expect(readdirSync(folder)).toContain('sink.yaml')
    },
  )

  it('asks for a key and known hosts where a repository is reached by ssh', async () => {
    await begun({ sink: 'git', endpoint: 'git@git.example.com:platform/inventory.git' })
    const { stringData } = parse(readFileSync(join(folder, 'secret.yaml'), 'utf8'))
    expect(Object.keys(stringData)).toEqual(['ssh-privatekey', 'known_hosts'])
  })

  it('keeps credentials for whoever wrote them', async () => {
    await begun({ sink: 'postgres', endpoint: 'postgres://a:b@db.example.com/x' })
    expect(read('secret.yaml').stringData).toEqual({ dsn: 'postgres://a:b@db.example.com/x' })
    expect(readFileSync(join(folder, 'sink.yaml'), 'utf8')).not.toContain('a:b')
    expect(statSync(join(folder, 'secret.yaml')).mode & 0o077).toBe(0)
  })

  it('writes nothing where the folder holds something, or the answers cannot be used', async () => {
    await begun()
    await expect(begun()).rejects.toThrow('holds something already')
    const other = { folder: join(home, 'other') }
    await expect(begun({ ...other, namespace: 'Team A' })).rejects.toThrow('includedNamespaces[0] is "Team A"')
    await expect(begun({ ...other, sink: 'git', endpoint: 'nonsense' })).rejects.toThrow('sink.yaml: spec.endpoint')
    await expect(begun({ ...other, kind: 'thing' })).rejects.toThrow('is no kind that is known by its name')
    await expect(begun({ folder: '/proc/nobody/makes/this' })).rejects.toThrow(
      '/proc/nobody/makes/this cannot be written',
    )
    expect(readdirSync(home)).toEqual(['collect-config'])
  })
})

describe('values that are proposed', () => {
  it('never have names of credentials, and are at most eight', () => {
    const spec = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`field${String.fromCharCode(97 + at)}`, at]))
    expect(attributesOf(kindOf('Thing.v1'), { spec: { apiKey: 'x', ...spec } })).toHaveLength(8)
    expect(attributesOf(kindOf('Thing.v1'), { spec: { apiKey: 'x', authToken: 'y' } })).toEqual([
      { name: 'created', path: '{.metadata.creationTimestamp}', optional: true },
    ])
  })
})
