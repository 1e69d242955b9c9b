import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Row } from '#extract'
import { SinkError } from '../sink.ts'
import { layoutOf } from './layout.ts'
import {
  literalExtension,
  manifestPath,
  partPath,
  renderPath,
  safeSegment,
  segmentOf,
  uniqueSegmentOf,
  wholePath,
  withExtension,
} from './paths.ts'
import { rowPaths } from './row-files.ts'

const west = { cluster: 'west', namespace: 'team-a', inventory: 'api' }
const anyText = fc.string({ unit: 'binary', maxLength: 40 })
const nasty = fc.oneof(
  anyText,
  fc
    .array(fc.constantFrom('..', '/', '\\', '.', 'a', ':', '\0', ' ', '-', '.git', 'é'), { maxLength: 12 })
    .map((all) => all.join('')),
)

describe('a value as a segment', () => {
  it.each([
    ['web', 'web'],
    ['system:node:n1', 'system-node-n1'],
    ['a/b\\c:d', 'a-b-c-d'],
    ['a..b...c', 'a-b-c'],
    [' -.web.- ', 'web'],
    ['v1.2', 'v1.2'],
    ['.git', 'git'],
  ])('%j becomes %s', (value, text) => expect(segmentOf(value).text).toBe(text))

  it('never leads anywhere, is never longer than it may be, and says when it is not the value', () =>
    fc.assert(
      fc.property(nasty, fc.integer({ min: 12, max: 80 }), (value, max) => {
        for (const text of [segmentOf(value, max).text, uniqueSegmentOf(value, max), safeSegment(value)]) {
          // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
          expect(text).not.toMatch(/[/\\:\0-\x1f]|\.\./)
          expect(['.', '.git']).not.toContain(text)
        }
        expect([...segmentOf(value, max).text].length).toBeLessThanOrEqual(max)
        expect([...uniqueSegmentOf(value, max)].length).toBeLessThanOrEqual(max)
        expect(segmentOf(value, max).isChanged).toBe(segmentOf(value, max).text !== value)
        if (value !== '') expect(segmentOf(value, max).text).not.toBe('')
      }),
    ))

  it('is made once: a segment is the segment of itself', () =>
    fc.assert(
      fc.property(nasty, (value) => {
        const { text } = segmentOf(value)
        expect(segmentOf(text).text).toBe(text)
      }),
    ))
})

describe('a path', () => {
  it.each([
    ['{cluster}/{namespace}/{name}{extension}', 'west/team-a/api.yaml'],
    ['{cluster}//{group}/{name}', 'west/api'],
    ['{cluster}/{group}/{name}', 'west/api'],
  ])('of %s is %s', (template, path) =>
    expect(
      renderPath(template, { cluster: 'west', namespace: 'team-a', name: 'api', group: '', extension: '.yaml' }),
    ).toBe(path),
  )

  it.each([
    '/etc/{name}',
    '../{name}',
    'a/..b/{name}',
    'a\\{name}',
    '.git/{name}',
    '.GIT/{name}',
    'git~1/{name}',
    './{name}',
    '{nmae}',
    '',
    '{name}\0',
  ])('is refused: %j', (template) => {
    expect(() => renderPath(template, { name: 'api' })).toThrow(SinkError)
    expect(() => renderPath(template, { name: 'api' })).toThrow(/path template/)
  })

  it('never leaves its place, whatever values are', () =>
    fc.assert(
      fc.property(nasty, nasty, nasty, (one, two, three) => {
        const values = { a: segmentOf(one).text, b: segmentOf(two).text, c: segmentOf(three).text }
        let path: string
        try {
          path = renderPath('top/{a}/{b}.{c}', values)
        } catch (error) {
          expect(error).toBeInstanceOf(SinkError)
          return
        }
        expect(path.startsWith('top/')).toBe(true)
        expect(new URL(path.replace(/[?#%]/g, '_'), 'file:///').pathname.split('/')[1]).toBe('top')
      }),
    ))

  it.each([
    ['{namespace}/{name}', undefined, '{namespace}/{name}{extension}'],
    ['{namespace}/{name}.json', '.json', '{namespace}/{name}.json'],
    ['a.b/{namespace}/{name}', undefined, 'a.b/{namespace}/{name}{extension}'],
    ['{namespace}.{name}', undefined, '{namespace}.{name}{extension}'],
    ['{name}/{namespace}{extension}', undefined, '{name}/{namespace}{extension}'],
    ['{namespace}/{name}/rows.yml', '.yml', '{namespace}/{name}/rows.yml'],
  ])('template %s spells out the extension %s', (template, extension, whole) => {
    expect(literalExtension(template)).toBe(extension)
    expect(withExtension(template)).toBe(whole)
  })

  it('of a part is told from those of others, and leads back to the whole', () => {
    expect(partPath('a.b/api.yaml', { index: 2, total: 3 })).toBe('a.b/api.part-0002-of-0003.yaml')
    expect(partPath('a.b/api', { index: 2, total: 12_345 })).toBe('a.b/api.part-0002-of-12345')
    expect(partPath('api.json', { index: 1, total: 1 })).toBe('api.json')
    for (const path of ['a.b/api.yaml', 'a.b/api', 'api.v2.json'])
      expect(wholePath(partPath(path, { index: 3, total: 7 }))).toBe(path)
    expect(manifestPath('a.b/api.yaml')).toBe('a.b/api.manifest.json')
    expect(manifestPath('a.b/api')).toBe('a.b/api.manifest.json')
  })
})

const row = (name: string, more: Partial<Row> = {}): Row => ({
  targetNamespace: 'team-a',
  targetName: 'all',
  namespace: 'shop',
  name,
  version: 'v1',
  kind: 'ConfigMap',
  uid: `uid-${name}`,
  attributes: {},
  ...more,
})
const tree = (more: object = {}) =>
  layoutOf({ type: 'git', layout: { mode: 'perResource', ...more } }, { defaultFormat: 'yaml', takesTrees: true })
const pathsOf = (rows: readonly Row[], more: object = {}) => rowPaths(rows, tree(more), west, 1)

describe('files of rows', () => {
  it('stand under cluster, namespace and kind; objects of the whole cluster have no namespace', () => {
    const rows = [
      row('web'),
      row('n1', { namespace: '', kind: 'Node' }),
      row('system:node:n1', { kind: 'Role', group: 'rbac' }),
    ]
    expect(pathsOf(rows)).toEqual([
      'west/shop/configmap/web.yaml',
      'west/node/n1.yaml',
      'west/shop/role/system-node-n1.yaml',
    ])
    const layout = { pathTemplate: '{group}/{kind}/{sourceName}.json', filename: { lowercaseKind: false } }
    expect(pathsOf(rows, layout)[2]).toBe('rbac/Role/system-node-n1.json')
    expect(pathsOf(rows, { ...layout, filename: { groupInPath: 'never' } })[2]).toBe('role/system-node-n1.json')
  })

  it('that are equal only after cutting or changing are told apart by a mark, and the unchanged one keeps its name', () => {
    const rows = [row('a:b'), row('a-b'), row('a/b')]
    const paths = pathsOf(rows)
    expect(paths[1]).toBe('west/shop/configmap/a-b.yaml')
    expect(paths[0]).toMatch(/^west\/shop\/configmap\/a-b-[0-9a-f]{8}\.yaml$/)
    expect(new Set(paths).size).toBe(3)
    const long = 'x'.repeat(80)
    const cut = pathsOf([row(`${long}1`), row(`${long}2`)])
    expect(new Set(cut).size).toBe(2)
    for (const path of cut) expect(path.split('/').at(-1)).toMatch(/^x{54}-[0-9a-f]{8}\.yaml$/)
  })

  it('never stand where somebody keeps the list of their files, whatever a row is called', () => {
    const json = { pathTemplate: '{cluster}/team-a/{sourceName}.json' }
    const [named, other] = pathsOf([row('api.manifest'), row('API.Manifest')], json)
    expect(named).toMatch(/^west\/team-a\/api\.manifest-[0-9a-f]{8}\.json$/)
    expect(other).toMatch(/^west\/team-a\/API\.Manifest-[0-9a-f]{8}\.json$/)
    expect(pathsOf([row('api.manifest')])).toEqual(['west/shop/configmap/api.manifest.yaml'])
  })

  it('that are equal without that are an error that names both, never an overwrite', () => {
    const rows = [
      row('web', { kind: 'Ingress', group: 'extensions' }),
      row('web', { kind: 'Ingress', group: 'networking.k8s.io' }),
    ]
    expect(() => pathsOf(rows)).toThrow(
      expect.objectContaining({
        errorClass: 'terminal',
        message: expect.stringMatching(
          /^Ingress\.extensions shop\/web .* and Ingress\.networking\.k8s\.io shop\/web .* west\/shop\/ingress\/web\.yaml: add \{group\}/,
        ),
      }),
    )
    expect(new Set(pathsOf(rows, { pathTemplate: '{group}/{kind}/{sourceName}' })).size).toBe(2)
  })

  it('are as many as there are rows and do not depend on their order, whatever they are called', () =>
    fc.assert(
      fc.property(fc.uniqueArray(nasty, { minLength: 1, maxLength: 12 }), (names) => {
        const rows = names.map((name, i) => row(name, { uid: String(i) }))
        let paths: readonly string[]
        try {
          paths = pathsOf(rows)
        } catch (error) {
          expect(error).toBeInstanceOf(SinkError)
          return
        }
        expect(new Set(paths).size).toBe(rows.length)
        const reverse = pathsOf([...rows].reverse())
        expect([...reverse].reverse()).toEqual(paths)
      }),
    ))
})
