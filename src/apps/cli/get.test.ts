import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { aNode, aWorld, complete, start, type World } from '../../pipeline/api/test/world.ts'
import { type GetOptions, get } from './get.ts'

describe('clusterpulse get, of a hub of several processes', () => {
  let world: World
  let server = ''
  beforeAll(async () => {
    world = await aWorld()
    await world.connect('east', { owner: 'owner-1' })
    await world.connect('west', { owner: 'owner-2', mode: 'push' })
    for (const name of ['east', 'west']) await world.batch(name, [complete('node', [aNode('a')])])
    await world.agent('west', { process: 'owner-2' })
    server = await world.server.start()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const ask = async (over: Partial<GetOptions>) =>
    (await get({ noun: 'clusters', server, clusters: [], output: 'table', ...over }, start)).text
  /** Cells of a column, by the name in the first. */
  const column = (text: string, header: string) => {
    const [titles = [], ...rows] = text.split('\n').map((line) => line.split(/ {3,}/))
    return Object.fromEntries(rows.map((cells) => [cells[0], cells[titles.indexOf(header)]]))
  }

  it('tells in its wide form where each cluster is and who owns it, and else takes no room for that', async () => {
    const wide = await ask({ output: 'wide' })
    expect(column(wide, 'OWNER')).toEqual({ east: 'owner-1', west: 'owner-2' })
    expect(column(wide, 'ENDPOINT')).toEqual({ east: 'https://west.example:6443', west: 'https://west.example:6443' })
    const narrow = await ask({})
    expect(narrow).not.toMatch(/OWNER|ENDPOINT|owner-/)
    expect(column(narrow, 'MODE')).toEqual({ east: 'pull', west: 'push' })
  })

  it.each(['table', 'wide'] as const)('names the process of every agent in a %s', async (output) => {
    expect(column(await ask({ noun: 'agents', output }), 'PROCESS')).toEqual({ west: 'owner-2' })
  })

  it('gives programs the owner beside the agent', async () => {
    const [json] = JSON.parse(await ask({ noun: 'agents', output: 'json' }))
    expect(json).toMatchObject({ name: 'west', mode: 'push', owner: 'owner-2', agent: { process: 'owner-2' } })
    expect(parse(await ask({ noun: 'agents', output: 'yaml' }))).toEqual([json])
  })

  it('knows no owners where one process has all', async () => {
    await world.connect('east')
    expect(column(await ask({ output: 'wide' }), 'OWNER')).toEqual({ east: '-', west: 'owner-2' })
  })
})
