import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import type { Row } from '#extract'
import type { KollectSnapshotSinkSpec } from '#kinds'
import { DirectorySink } from './directory.ts'
import { layoutOf } from './documents/index.ts'
import type { Delivery } from './sink.ts'
import { sinkContract } from './testing/contract.ts'

const signal = new AbortController().signal
const west = { cluster: 'west', namespace: 'team-a', inventory: 'api' }
const row = (name: string, attributes: Row['attributes'] = {}, more: Partial<Row> = {}): Row => ({
  targetNamespace: 'team-a',
  targetName: 'deployments',
  namespace: 'shop',
  name,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${name}`,
  attributes,
  ...more,
})
const manifest = (name: string) =>
  row(name, { resource: { apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 1 } } })

let clock = 0n
const delivery = (rows: readonly Row[], more: Partial<Delivery> = {}): Delivery => ({
  writing: west,
  position: { epoch: 1n, sequence: ++clock },
  generation: 1,
  complete: true,
  checksum: JSON.stringify(rows),
  itemCount: rows.length,
  takenAt: Number(clock) * 1000,
  rows: () => rows,
  maxPartBytes: 1_572_864,
  ...more,
})

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sink-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}
const sinkIn = (directory: string, spec: Partial<KollectSnapshotSinkSpec> = {}, writer = 'agent-1') =>
  new DirectorySink({
    directory,
    writer,
    layout: layoutOf({ type: 'git', ...spec }, { defaultFormat: 'yaml', takesTrees: true }),
  })
const filesIn = async (folder: string) =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
const yamlIn = async (folder: string, path: string) => parse(await readFile(join(folder, path), 'utf8')) as unknown

it('moves an inventory to where another path template says', async () => {
  const folder = await aFolder()
  const { listedAt = '' } = await sinkIn(folder).deliver(delivery([row('a'), row('b')]), signal)
  const sink = sinkIn(folder, { pathTemplate: 'moved/{cluster}-{name}{extension}' })
  await sink.deliver(delivery([row('a')], { formerList: listedAt }), signal)
  expect(await filesIn(folder)).toEqual(['moved/west-api.manifest.json', 'moved/west-api.yaml'])
  await sinkIn(folder).deliver(delivery([row('a')]), signal)
  await sink.remove(west, { epoch: 9n, sequence: 1n }, signal, listedAt)
  expect(await filesIn(folder)).toEqual([])
})

it('takes away what a killed agent left of a set, and nothing that others have put there since', async () => {
  const folder = await aFolder()
  const sink = sinkIn(folder)
  await sink.deliver(delivery([row('a'), row('b')]), signal)
  const [list = ''] = (await filesIn(folder)).filter((path) => path.endsWith('.manifest.json'))
  const before = await filesIn(folder)
  await sink.deliver(delivery([row('c')], { writing: { ...west, inventory: 'other' } }), signal)
  const [others = ''] = (await filesIn(folder)).filter((path) => !before.includes(path) && !path.endsWith('.json'))
  const place = list.slice(0, list.lastIndexOf('/'))
  const orphan = `${place}/api.part-0001-of-0002.yaml`
  const leftover = [orphan, others]
  await writeFile(join(folder, orphan), 'items: []\n')
  await writeFile(
    join(folder, list),
    JSON.stringify({ ...JSON.parse(await readFile(join(folder, list), 'utf8')), leftover }),
  )
  const all = await filesIn(folder)
  expect(await sink.deliver(delivery([row('a')]), signal)).toMatchObject({ removed: 1 })
  expect(await filesIn(folder)).toEqual(all.filter((path) => path !== orphan))
})
const perResource = { layout: { mode: 'perResource' } } as const
const MANIFEST = 'inventory/team-a/api.west.manifest.json'

sinkContract('a folder of documents', {
  maxPartBytes: 100_000,
  saysWhoWrote: true,
  harness: async () => {
    const folder = await aFolder()
    const pathTemplate = '{cluster}/{namespace}/{name}{extension}'
    return {
      open: async () => sinkIn(folder, { pathTemplate }),
      openAs: async (writer) => sinkIn(folder, { pathTemplate }, writer),
      read: async ({ cluster, namespace, inventory }) => {
        const start = `${cluster}/${namespace}/${inventory}.`
        const paths = (await filesIn(folder)).filter((path) => path.startsWith(start) && path.endsWith('.yaml'))
        return (await Promise.all(paths.map((path) => yamlIn(folder, path) as Promise<Row[]>))).flat()
      },
    }
  },
})

describe('a document', () => {
  it('holds the rows of an inventory, and a list beside it says what belongs to it', async () => {
    const folder = await aFolder()
    const receipt = await sinkIn(folder).deliver(delivery([row('a'), row('b')]), signal)
    expect(receipt).toMatchObject({ written: 2, removed: 0 })
    expect(await filesIn(folder)).toEqual([MANIFEST, 'inventory/team-a/api.yaml'])
    expect(await yamlIn(folder, 'inventory/team-a/api.yaml')).toEqual([row('a'), row('b')])
    expect(JSON.parse(await readFile(join(folder, MANIFEST), 'utf8'))).toMatchObject({
      kind: 'KollectExportSetManifest',
      cluster: 'west',
      namespace: 'team-a',
      name: 'api',
      parts: [1],
      complete: true,
      writer: 'agent-1',
      paths: ['inventory/team-a/api.yaml'],
    })
  })

  it('of equal content is left as it is, to the letter, also an envelope with its time', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder, { serialization: { format: 'json' } })
    await sink.deliver(delivery([row('a')]), signal)
    const before = await readFile(join(folder, 'inventory/team-a/api.json'), 'utf8')
    const listBefore = await readFile(join(folder, MANIFEST), 'utf8')
    expect(await sink.deliver(delivery([row('a')]), signal)).toMatchObject({ written: 0, removed: 0 })
    expect(await readFile(join(folder, 'inventory/team-a/api.json'), 'utf8')).toBe(before)
    expect(await readFile(join(folder, MANIFEST), 'utf8')).toBe(listBefore)
  })

  it('that somebody changed or took away is mended by equal content', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    await sink.deliver(delivery([row('a')]), signal)
    await writeFile(join(folder, 'inventory/team-a/api.yaml'), 'mine')
    expect(await sink.deliver(delivery([row('a')]), signal)).toMatchObject({ written: 1 })
    expect(await yamlIn(folder, 'inventory/team-a/api.yaml')).toEqual([row('a')])
  })

  it('grows into parts and back, and no part of before is left', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    const rows = Array.from({ length: 20 }, (_, i) => row(`n${i}`, { text: 'x'.repeat(200) }))
    await sink.deliver(delivery([row('a')]), signal)
    await sink.deliver(delivery(rows, { maxPartBytes: 2000 }), signal)
    const parts = (await filesIn(folder)).filter((path) => path.endsWith('.yaml'))
    expect(parts.length).toBeGreaterThan(2)
    expect(parts[0]).toBe(`inventory/team-a/api.part-0001-of-000${parts.length}.yaml`)
    const all = await Promise.all(parts.map((path) => yamlIn(folder, path) as Promise<Row[]>))
    expect(all.flat()).toEqual(rows)
    await sink.deliver(delivery([row('a')]), signal)
    expect(await filesIn(folder)).toEqual([MANIFEST, 'inventory/team-a/api.yaml'])
  })

  it('of an emptied inventory is an empty list', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    await sink.deliver(delivery([row('a')]), signal)
    await sink.deliver(delivery([]), signal)
    expect(await readFile(join(folder, 'inventory/team-a/api.yaml'), 'utf8')).toBe('[]\n')
  })

  it.each(['yaml', 'json', 'ndjson'] as const)(
    'in %s loses no row to a snapshot that may lack some',
    async (format) => {
      const folder = await aFolder()
      const sink = sinkIn(folder, { serialization: { format } })
      await sink.deliver(delivery([row('a', { v: 1 }), row('b'), row('c')]), signal)
      await sink.deliver(delivery([row('a', { v: 2 }), row('d')], { complete: false }), signal)
      const text = await readFile(join(folder, `inventory/team-a/api.${format}`), 'utf8')
      const rows =
        format === 'ndjson'
          ? text
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as unknown)
          : format === 'json'
            ? (JSON.parse(text) as { items: unknown }).items
            : parse(text)
      expect(rows).toEqual([row('a', { v: 2 }), row('b'), row('c'), row('d')])
      await sink.deliver(delivery([row('a')]), signal)
      expect(await readFile(join(folder, `inventory/team-a/api.${format}`), 'utf8')).not.toContain('uid-b')
    },
  )
})

describe('order', () => {
  it('comes from the writer: what is older changes nothing, and learns what stands there', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    const late = delivery([row('late')], { position: { epoch: 5n, sequence: 1n } })
    await sink.deliver(late, signal)
    for (const position of [
      { epoch: 4n, sequence: 99n },
      { epoch: 5n, sequence: 1n },
    ])
      expect(await sink.deliver(delivery([row('early')], { position }), signal)).toMatchObject({
        position: late.position,
        written: 0,
        removed: 0,
        bytes: 0,
      })
    expect(await yamlIn(folder, 'inventory/team-a/api.yaml')).toEqual([row('late')])
  })

  it('makes the one that started earlier say who else writes', async () => {
    const folder = await aFolder()
    await sinkIn(folder, {}, 'agent-2').deliver(delivery([row('a')], { position: { epoch: 9n, sequence: 1n } }), signal)
    const receipt = await sinkIn(folder).deliver(
      delivery([row('b')], { position: { epoch: 8n, sequence: 7n } }),
      signal,
    )
    expect(receipt.conflict).toMatch(
      /^agent-2 writes under this identity and started later.*restart this agent, or delete inventory.*\.manifest\.json\)$/,
    )
    expect(await yamlIn(folder, 'inventory/team-a/api.yaml')).toEqual([row('a')])
  })
})

describe('a file for each row', () => {
  it('goes with its row, also the last one of a folder, and nothing else goes', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder, perResource)
    await sink.deliver(delivery([row('a'), row('b', {}, { namespace: 'other' })]), signal)
    await mkdir(join(folder, 'west/mine'), { recursive: true })
    await writeFile(join(folder, 'west/mine/notes.md'), 'mine')
    await writeFile(join(folder, 'west/shop/deployment/notes.md'), 'mine')
    expect(await sink.deliver(delivery([row('a')]), signal)).toMatchObject({ written: 1, removed: 1 })
    expect(await filesIn(folder)).toEqual([
      MANIFEST,
      'west/mine/notes.md',
      'west/shop/deployment/a.yaml',
      'west/shop/deployment/notes.md',
    ])
    await sink.deliver(delivery([]), signal)
    expect(await filesIn(folder)).toEqual([MANIFEST, 'west/mine/notes.md', 'west/shop/deployment/notes.md'])
  })

  it('stays where a snapshot may lack its row, and is owned until one says that it is gone', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder, perResource)
    await sink.deliver(delivery([row('a'), row('b')]), signal)
    expect(await sink.deliver(delivery([row('a')], { complete: false }), signal)).toMatchObject({ removed: 0 })
    expect(await filesIn(folder)).toContain('west/shop/deployment/b.yaml')
    expect(await sink.deliver(delivery([row('a')]), signal)).toMatchObject({ removed: 1 })
  })

  it('of two clusters is never taken away by the other', async () => {
    const folder = await aFolder()
    const east = { ...west, cluster: 'east' }
    const sink = sinkIn(folder, perResource)
    await sink.deliver(delivery([row('a'), row('b')]), signal)
    await sink.deliver(delivery([row('a'), row('b')], { writing: east }), signal)
    await sink.deliver(delivery([], { writing: east }), signal)
    await sink.remove(east, { epoch: 99n, sequence: 1n }, signal)
    expect(await filesIn(folder)).toEqual([MANIFEST, 'west/shop/deployment/a.yaml', 'west/shop/deployment/b.yaml'])
  })

  it('that another inventory owns is an error that says whose it is', async () => {
    const folder = await aFolder()
    const other = { ...west, inventory: 'other' }
    const sink = sinkIn(folder, perResource)
    await sink.deliver(delivery([row('a')]), signal)
    await expect(sink.deliver(delivery([row('a', { v: 2 })], { writing: other }), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringMatching(
        /^west\/shop\/deployment\/a\.yaml belongs to inventory team-a\/api of cluster west: nothing was written/,
      ),
    })
    expect(await yamlIn(folder, 'west/shop/deployment/a.yaml')).toEqual(row('a'))
  })

  it('that another sink of the same inventory owns is an error that names its list: it would be taken away by one of them', async () => {
    const folder = await aFolder()
    await sinkIn(folder, { pathTemplate: 'docs/{name}-1' }).deliver(delivery([row('a')]), signal)
    const other = sinkIn(folder, { pathTemplate: 'docs/{name}-{generation}' })
    await expect(other.deliver(delivery([row('b')]), signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringMatching(/another sink of this inventory, whose list is \S+\.manifest\.json: /),
    })
  })

  it('is written over no list of files, whatever the path template says', async () => {
    const folder = await aFolder()
    await sinkIn(folder, perResource).deliver(delivery([row('a')]), signal)
    const before = await readFile(join(folder, MANIFEST), 'utf8')
    const other = { ...west, inventory: 'other' }
    for (const template of [MANIFEST, MANIFEST.replace('.json', '{extension}')]) {
      const sink = sinkIn(folder, { pathTemplate: template, serialization: { format: 'json' } })
      await expect(sink.deliver(delivery([], { writing: other }), signal)).rejects.toMatchObject({
        errorClass: 'terminal',
        message: expect.stringContaining(`${MANIFEST} is the name of a list of files`),
      })
    }
    const layout = { mode: 'perResource', pathTemplate: MANIFEST } as const
    await expect(
      sinkIn(folder, { layout }).deliver(delivery([row('a')], { writing: other }), signal),
    ).rejects.toMatchObject({ errorClass: 'terminal' })
    expect(await readFile(join(folder, MANIFEST), 'utf8')).toBe(before)
  })

  it('is what rows that embed their objects get where nothing is said, with the object alone', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    await sink.deliver(delivery([manifest('a'), manifest('b')]), signal)
    expect(await filesIn(folder)).toEqual([MANIFEST, 'west/shop/deployment/a.yaml', 'west/shop/deployment/b.yaml'])
    expect(await yamlIn(folder, 'west/shop/deployment/a.yaml')).toEqual(manifest('a').attributes.resource)
    await sink.deliver(delivery([]), signal) // no row says how, and the files go
    expect(await filesIn(folder)).toEqual([MANIFEST])
  })

  it('needs the object where the layout wants it', async () => {
    const sink = sinkIn(await aFolder(), { layout: { mode: 'perResource', content: 'manifest' } })
    await expect(sink.deliver(delivery([row('a')]), signal)).rejects.toMatchObject({ errorClass: 'terminal' })
  })

  it('has an index beside it where that is asked for', async () => {
    const folder = await aFolder()
    const layout = {
      mode: 'split',
      content: 'attributes',
      index: { pathTemplate: '{cluster}/index/{namespace}/{name}' },
    } as const
    const sink = sinkIn(folder, { layout })
    await sink.deliver(delivery([row('a', { v: 1 }), row('b')]), signal)
    expect(await yamlIn(folder, 'west/shop/deployment/a.yaml')).toEqual({ v: 1 })
    const paths = async () =>
      ((await yamlIn(folder, 'west/index/team-a/api.yaml')) as Row[]).map(({ attributes }) => attributes.path)
    expect(await paths()).toEqual(['west/shop/deployment/a.yaml', 'west/shop/deployment/b.yaml'])
    await sink.deliver(delivery([row('c')], { complete: false }), signal)
    expect((await paths()).length).toBe(3)
    await sink.deliver(delivery([row('c')]), signal)
    expect(await paths()).toEqual(['west/shop/deployment/c.yaml'])
  })
})

describe('two clusters with one path', () => {
  it('are told to put the cluster into it, and the first one keeps what it wrote', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder)
    await sink.deliver(delivery([row('a')]), signal)
    const east = delivery([row('b')], { writing: { ...west, cluster: 'east' } })
    await expect(sink.deliver(east, signal)).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('belongs to inventory team-a/api of cluster west'),
    })
    expect(await yamlIn(folder, 'inventory/team-a/api.yaml')).toEqual([row('a')])
    expect(sink.preview(west).warnings).toEqual([expect.stringContaining('{cluster}')])
  })
})

describe('removing an inventory', () => {
  it('takes what the list says, unless somebody wrote later', async () => {
    const folder = await aFolder()
    const sink = sinkIn(folder, perResource)
    await writeFile(join(folder, 'README.md'), 'mine')
    const given = delivery([row('a')], { position: { epoch: 3n, sequence: 3n } })
    await sink.deliver(given, signal)
    await sink.remove(west, { epoch: 3n, sequence: 2n }, signal)
    expect((await filesIn(folder)).length).toBe(3)
    await sink.remove(west, given.position, signal)
    expect(await filesIn(folder)).toEqual(['README.md'])
    await sink.remove(west, given.position, signal)
  })

  it('follows no list that leads out of the folder', async () => {
    const folder = await aFolder()
    const outside = join(folder, 'outside.txt')
    await writeFile(outside, 'mine')
    const sink = sinkIn(join(folder, 'sink'))
    await sink.deliver(delivery([row('a')]), signal)
    const path = join(folder, 'sink', MANIFEST)
    const list = JSON.parse(await readFile(path, 'utf8')) as { paths: string[] }
    await writeFile(path, JSON.stringify({ ...list, paths: ['../outside.txt', outside] }))
    await sink.remove(west, { epoch: 9n, sequence: 1n }, signal)
    await sink.deliver(delivery([]), signal)
    expect(await readFile(outside, 'utf8')).toBe('mine')
  })
})
