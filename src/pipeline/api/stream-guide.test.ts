import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { Table } from '#model'
import { aRow } from './test/sources.ts'
import { aWorld, type World } from './test/world.ts'

async function pods(world: World, ...names: readonly string[]): Promise<void> {
  const rows = Table.of(
    ['phase'],
    names.map((name) => aRow('shop', name, { phase: 'Running' })),
  )
  const facts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }
  const part = { source: 'pods', hash: 'x', durationMs: 1, outcome: 'complete', rows, ...facts } as const
  await world.batch('west', [], { tables: [part] })
}

it('the client of the guide tells how many pods there are as they come and go', async () => {
  const guide = await readFile(new URL('../../../docs/guide/streams.md', import.meta.url), 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
  expect(code.trim().split('\n').length).toBeLessThanOrEqual(30)
  const directory = await mkdtemp(join(tmpdir(), 'stream-guide-'))
  await writeFile(join(directory, 'client.mjs'), code)
  await using world = await aWorld()
  await world.connect('west')
  await pods(world, 'a', 'b')
  const client = spawn(process.execPath, [join(directory, 'client.mjs'), await world.server.start()])
  try {
    const lines: string[] = []
    createInterface({ input: client.stdout }).on('line', (line) => lines.push(line.trim()))
    await expect.poll(() => lines.at(-1)).toBe('2 pods')
    await pods(world, 'b', 'c', 'd')
    await expect.poll(() => lines.at(-1)).toBe('3 pods')
  } finally {
    client.kill()
    await once(client, 'exit')
    await rm(directory, { recursive: true })
  }
})
