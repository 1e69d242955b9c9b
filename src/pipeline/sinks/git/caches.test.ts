import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { GitCaches } from './caches.ts'
import { MAX_FILE_BYTES } from './process.ts'

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'git-caches-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** Files without anything in them take no room. */
async function fill(folder: string, name: string, bytes: number): Promise<void> {
  await mkdir(join(folder, name, 'objects'), { recursive: true })
  const file = join(folder, name, 'objects', 'pack')
  await writeFile(file, '')
  await truncate(file, bytes)
}

it('keeps the caches that were used last, and those in use', async () => {
  const folder = await aFolder()
  const caches = new GitCaches(folder, 1000)
  const use = (name: string, bytes: number) => caches.using(name, () => fill(folder, name, bytes))
  await use('a', 400)
  await use('b', 400)
  await use('a', 400)
  await use('c', 400)
  expect((await readdir(folder)).sort()).toEqual(['a', 'c'])
  await caches.using('a', () => use('d', 900))
  expect((await readdir(folder)).sort()).toEqual(['a'])
})

it('knows what an earlier process left, and takes its keys away', async () => {
  const folder = await aFolder()
  await fill(folder, 'before', 800)
  await fill(folder, 'before.access', 10)
  const caches = new GitCaches(folder, 1000)
  await caches.using('new', async () => expect(await readdir(folder)).toEqual(['before']))
  await caches.using('new', () => fill(folder, 'new', 400))
  expect(await readdir(folder)).toEqual(['new'])
})

it('keeps none that is too large for itself, also where its call failed', async () => {
  const folder = await aFolder()
  const caches = new GitCaches(folder)
  const call = caches.using('a', async () => {
    await fill(folder, 'a', MAX_FILE_BYTES + 1)
    throw new Error('broken off')
  })
  await expect(call).rejects.toThrow('broken off')
  expect(await readdir(folder)).toEqual([])
})
