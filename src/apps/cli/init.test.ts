import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { ApiServer, listenApi } from '#apiserver'
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
    expect(text).toContain(`Next: clusterpulse validate ${folder}`)
    expect(notes).toEqual([expect.stringContaining('no kubeconfig was found')])
  })

  it('takes the answers of whoever is there, and asks nothing that an option says', async () => {
    const asked: string[] = []
    const answers = ['Service', 'west', 'nats', 'tls://nats.internal.example:4222']
    await begun({
      namespace: 'shop',
      ask: async (question) => {
        asked.push(question)
        return answers.shift() ?? ''
      },
    })
    expect(asked).toHaveLength(4)
    expect(read('profile.yaml')).toMatchObject({
      kind: 'KollectProfile',
      metadata: { name: 'service', namespace: 'shop' },
    })
    expect(read('sink.yaml').spec).toMatchObject({
      type: 'nats',
      cluster: 'west',
      endpoint: 'tls://nats.internal.example:4222',
    })
    expect(status().status).toBe(0)
  })

  it('looks into the cluster: its name, its namespace, and values of an object of the kind', async () => {
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
    expect(read('sink.yaml').spec.cluster).toBe('prod-eu-west')
    expect(status().status).toBe(0)
    await expect(begun({ folder: join(home, 'other'), kubeconfig, kind: 'Gadget.v1.example.com' })).rejects.toThrow(
      'does not serve Gadget of example.com/v1',
    )
    expect(() => statSync(join(home, 'other'))).toThrow()
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
