import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ValidateOptions, validate } from './validate.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'validate-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const write = (name: string, text: string): string => {
  const path = join(folder, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  return path
}
const judged = (paths: readonly string[], more: Partial<ValidateOptions> = {}) =>
  validate({ paths, namespace: 'default', semantics: 'strict', output: 'text', environment: {}, ...more })

const object = (kind: string, name: string, spec: string, namespace = 'team-a') =>
  `apiVersion: kollect.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: ${namespace} }\nspec: ${spec}\n`
const target = object('KollectTarget', 'shop', '{ profileRef: deployments }')
const profile = object(
  'KollectProfile',
  'deployments',
  '{ targetGVK: { group: apps, version: v1, kind: Deployment }, attributes: [{ name: a, path: "{.a}" }] }',
)

describe('validate', () => {
  it('has nothing against the examples, looks at no other kinds, and says how many it saw', () => {
    const { status, text, notes } = judged(['deploy/examples'])
    expect({ status, notes }).toEqual({ status: 0, notes: [] })
    expect(text).toMatch(/^\d+ objects of inventory; 0 faults; \d+ objects of other kinds not looked at$/)
  })

  it('says of aliases that grow without end where they stand, and looks at the other files', () => {
    const laugh = `a0: &a0 [x, x]\n${Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`)}]\n`).join('')}`
    write('a-laugh.yaml', laugh)
    write('b-lost.yaml', 'a: *nothing\n')
    write('c.yaml', object('KollectTarget', 'UPPER', '{}'))
    const { status, text } = judged([folder])
    expect(status).toBe(2)
    expect(text).toMatch(/a-laugh\.yaml: .*alias.*write out/)
    expect(text).toMatch(/b-lost\.yaml: .*nothing/)
    expect(text).toMatch(/c\.yaml:.*KollectTarget/)
  })

  it('names every fault with file, place, document, object and path', () => {
    const file = write(
      'all.yaml',
      `${target}---\n${object('KollectTarget', 'x', '\n  profileRef: a/b\n  watchMode: Some')}`,
    )
    const { status, text } = judged([file])
    expect(status).toBe(2)
    expect(text.split('\n')).toEqual([
      `${file}:11:14: document 2: KollectTarget team-a/x: spec.watchMode must be one of "All", "OptIn"`,
      `${file}:10:15: document 2: KollectTarget team-a/x: spec.profileRef is "a/b": give the name alone, without a namespace before it`,
      '2 objects of inventory; 2 faults in 1 of the documents',
    ])
  })

  it('reads folders to their ends, and leaves out what is hidden or no manifest', () => {
    write('a/b/target.yaml', target)
    write('a/profile.json', JSON.stringify({ apiVersion: 'kollect.dev/v1alpha1', kind: 'KollectProfile' }))
    write('.git/x.yaml', 'broken: [')
    write('README.md', 'x')
    const { text } = judged([folder])
    expect(text).toContain('2 objects of inventory')
    expect(text).toContain('metadata.name is missing')
    expect(text).toContain('spec is missing')
  })

  it('judges the rest where a file is no YAML, or a document no object', () => {
    const broken = write('a.yaml', 'a: [1\n')
    const text = write('b.yaml', `just text\n---\n- a: b\n---\n${object('KollectTarget', 'x', '{}')}`)
    const said = judged([broken, text]).text
    expect(said).toMatch(new RegExp(`^${broken}: .+line`, 'm'))
    expect(said).toContain(`${text}: document 1: is no object`)
    expect(said).toContain(`${text}:3:3: document 2: apiVersion is missing`)
    expect(said).toContain('spec.profileRef is missing')
  })

  it('takes lists apart', () => {
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'kollect.dev/v1alpha1', kind: 'KollectTarget', metadata: { name: 'a' }, spec: {} }],
    }
    expect(judged([write('list.json', JSON.stringify(list))]).text).toContain(
      'KollectTarget default/a: spec.profileRef is missing',
    )
  })

  it('notices other versions, kinds that there are not, and one name twice', () => {
    const file = write(
      'a.yaml',
      [target.replace('v1alpha1', 'v1'), object('KollectSink', 'x', '{}'), target].join('---\n'),
    )
    const { text } = judged([file])
    expect(text).toContain('apiVersion is "kollect.dev/v1": write kollect.dev/v1alpha1')
    expect(text).toContain('kind is "KollectSink", which kollect.dev/v1alpha1 does not have')
    expect(text).toContain(
      `document 3: KollectTarget team-a/shop: metadata.name is declared in document 1 of ${file} already`,
    )
  })

  it('says what is named and not there, where some of that kind are: exit status 1', () => {
    const alone = judged([write('target.yaml', target)])
    expect(alone).toMatchObject({ status: 0, notes: [] })
    const other = write('profile.yaml', profile.replace('name: deployments', 'name: others'))
    const { status, notes } = judged([join(folder, 'target.yaml'), other])
    expect(status).toBe(1)
    expect(notes).toEqual([
      expect.stringContaining(
        'KollectTarget team-a/shop: spec.profileRef names KollectProfile team-a/deployments, which is not among these manifests',
      ),
    ])
  })

  it('holds intervals against the scopes of their namespace', () => {
    const file = write(
      'a.yaml',
      [
        object('KollectScope', 'floor', '{ minExportInterval: 5m }'),
        object('KollectInventory', 'a', '{ exportMinInterval: 1m }'),
        object('KollectInventory', 'a', '{ exportMinInterval: 1m }', 'team-b'),
      ].join('---\n'),
    )
    expect(judged([file]).text.split('\n').slice(0, -1)).toEqual([
      expect.stringContaining(
        'KollectInventory team-a/a: spec.exportMinInterval is shorter than the scope "floor" allows',
      ),
    ])
  })

  it('compiles paths and rules as the extractor does, and says why one cannot be used', () => {
    const attributes = ['.metadata.name', '{.data.a', 'cel:object.', 'cel:object.a'].map((path, at) => ({
      name: `a${at}`,
      path,
    }))
    const rule = { gvk: { version: 'v1', kind: 'Pod' }, matchPolicy: '1 +' }
    const file = write(
      'a.yaml',
      [
        object('KollectProfile', 'a', JSON.stringify({ targetGVK: { version: 'v1', kind: 'Pod' }, attributes })),
        object('KollectTarget', 'b', JSON.stringify({ profileRef: 'a', resourceRules: [rule] })),
      ].join('---\n'),
    )
    const { text } = judged([file])
    expect(text).toContain(
      'spec.attributes[0].path cannot be used: without braces it is the same text for every object',
    )
    expect(text).toContain('spec.attributes[1].path cannot be used: "{" is not closed')
    expect(text).toContain('spec.attributes[2].path cannot be used')
    expect(text).toContain('spec.resourceRules[0].matchPolicy cannot be used')
    expect(text).toContain('; 4 faults')
  })

  it('judges by the settings of the process, and for the namespace that is named', () => {
    const sink = (host: string) =>
      object(
        'KollectEventSink',
        'a',
        `{ type: nats, endpoint: "nats://${host}:4222", nats: { subject: a }, secretRef: { name: a, namespace: team-a } }`,
      )
    const local = write('local.yaml', sink('127.0.0.1'))
    expect(judged([local]).text).toContain('spec.endpoint names 127.0.0.1, an address of the machine itself')
    expect(judged([local], { environment: { SINK_ALLOW_LOOPBACK: 'true' } }).status).toBe(0)
    const nowhere = write('nowhere.yaml', sink('nats.example.com').replace(', namespace: team-a }\nspec', ' }\nspec'))
    expect(judged([nowhere]).text).toContain('own namespace "default" alone')
    expect(judged([nowhere], { namespace: 'team-a' }).status).toBe(0)
  })

  it('gives programs the same as JSON', () => {
    const { text, status } = judged([write('a.yaml', object('KollectTarget', 'x', '{}'))], { output: 'json' })
    expect(status).toBe(2)
    expect(JSON.parse(text)).toEqual({
      faults: [
        {
          file: join(folder, 'a.yaml'),
          line: 4,
          column: 7,
          document: 1,
          object: 'KollectTarget team-a/x',
          path: 'spec.profileRef',
          message: 'is missing',
        },
      ],
      missing: [],
    })
  })

  it.each([
    ['a path that is not there', () => join(folder, 'nowhere'), 'is not there'],
    ['a folder without manifests', () => folder, 'holds no .yaml'],
    [
      'a file of other kinds',
      () => write('a.yaml', 'apiVersion: v1\nkind: Pod\nmetadata: { name: a }\n'),
      'there is no object of kollect.dev',
    ],
  ])('refuses %s in one sentence', (_, path, words) => expect(() => judged([path()])).toThrow(words))
})
