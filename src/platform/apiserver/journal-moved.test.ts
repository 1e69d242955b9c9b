import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLogger } from '#runtime'
import { configMap } from './behaviour/subject.ts'
import type { ApiServer } from './server.ts'
import { aDirectory, aServer, listening } from './test/server.ts'
import type { ApiObject } from './types.ts'

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const map = (name: string): ApiObject => ({ ...configMap(name, {}), metadata: { name, namespace: 'default' } })

async function running() {
  const dir = join(aDirectory(), 'objects')
  const said: string[] = []
  const logger = {
    ...silentLogger,
    child: () => logger,
    error: (_: unknown, text: string) => said.push(text),
    warn: (_: unknown, text: string) => said.push(text),
  } as unknown as typeof silentLogger
  const server = await aServer({ storage: { kind: 'journal', dir }, logger })
  await server.objects.create(map('before'))
  return { dir, server, said }
}

async function ready(server: ApiServer) {
  const { client } = await listening(server)
  return client.ask('GET', '/readyz')
}

describe('stored objects that are moved away while running', () => {
  it('refuse writes, and are written again when they are back', async () => {
    const { dir, server, said } = await running()
    renameSync(dir, `${dir}.away`)
    const refused = {
      httpCode: 503,
      message: expect.stringContaining(
        'move the very same folder back, or stop, put a copy or a backup there, and start again',
      ),
    }
    for (const name of ['lost-1', 'lost-2'])
      await expect(server.objects.create(map(name))).rejects.toMatchObject(refused)
    expect(await ready(server)).toMatchObject({
      code: 500,
      body: expect.stringContaining('[-]etcd failed: the stored objects were moved or deleted'),
    })
    expect(said.filter((text) => text.includes('moved or deleted'))).toHaveLength(1)

    cpSync(`${dir}.away`, dir, { recursive: true })
    expect(await ready(server), 'a copy is another folder').toMatchObject({ code: 500 })
    rmSync(dir, { recursive: true })
    renameSync(`${dir}.away`, dir)
    expect(await ready(server)).toMatchObject({ code: 200 })
    await server.objects.create(map('after'))
    await server[Symbol.asyncDispose]()
    const next = await aServer({ storage: { kind: 'journal', dir } })
    expect(next.objects.list(CONFIG_MAPS).map(({ metadata }) => metadata.name)).toEqual(['after', 'before'])
  })

  it('are noticed where nobody writes or asks', async () => {
    const { dir, said } = await running()
    renameSync(dir, `${dir}.away`)
    await expect.poll(() => said.join()).toContain('moved or deleted')
  })

  it.each(['a', 'b'])('are not lost with their copy %s: it is made anew at once', async (copy) => {
    const { dir, server, said } = await running()
    renameSync(join(dir, copy), join(dir, 'away'))
    expect(await ready(server)).toMatchObject({ code: 200 })
    expect(said).toEqual(['a copy of the stored objects was moved or deleted: it is made anew from the other'])
    await server.objects.create(map('after'))
    await server[Symbol.asyncDispose]()
    await startsFrom(dir, copy)
  })

  it('are whole in both copies after the files of one were deleted or put back as another folder', async () => {
    const { dir, server } = await running()
    for (const name of readdirSync(join(dir, 'a'))) if (name.endsWith('.segment')) unlinkSync(join(dir, 'a', name))
    expect(await ready(server)).toMatchObject({ code: 200 })
    cpSync(join(dir, 'b'), join(dir, 'other'), { recursive: true })
    rmSync(join(dir, 'b'), { recursive: true })
    renameSync(join(dir, 'other'), join(dir, 'b'))
    rmSync(join(dir, 'b', 'lock'))
    await server.objects.create(map('after'))
    await server[Symbol.asyncDispose]()
    for (const copy of ['a', 'b']) await startsFrom(dir, copy)
  })
})

/** Every object is there with this copy alone. */
async function startsFrom(dir: string, copy: string): Promise<void> {
  const alone = join(aDirectory(), 'objects')
  mkdirSync(alone)
  cpSync(join(dir, copy), join(alone, copy), { recursive: true })
  const server = await aServer({ storage: { kind: 'journal', dir: alone } })
  expect(server.objects.list(CONFIG_MAPS).map(({ metadata }) => metadata.name)).toEqual(['after', 'before'])
}
