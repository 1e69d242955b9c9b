import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { bundled } from '../../../test/bundled.ts'

const cycles = Number(process.env.HISTORY_KILL_CYCLES ?? 5)
const directories: string[] = []
afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true })
})

const begin = 1_700_000_100_000
let program: Awaited<ReturnType<typeof bundled>>
beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, 'testing/append-until-killed.ts'))
})
afterAll(() => program?.[Symbol.asyncDispose]())

/** @returns the last position it called safe */
async function appendAndDie(directory: string, afterMs: number): Promise<number> {
  const child = spawn(process.execPath, [program.path, directory, String(begin)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let safe = -1
  for await (const line of createInterface({ input: child.stdout })) {
    if (safe === -1) setTimeout(() => child.kill('SIGKILL'), afterMs)
    safe = Number(line)
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return safe
}

async function stored(directory: string): Promise<{ position: number; samples: number; sum: number }> {
  const database = await DuckDBInstance.create(join(directory, 'history.duckdb'))
  const connection = await database.connect()
  try {
    const [row = []] = (
      await connection.runAndReadAll(`
        SELECT (SELECT value FROM meta WHERE name = 'position')::DOUBLE, sum(n)::DOUBLE, sum(v * n)::DOUBLE FROM (
          SELECT 1 AS n, m_pods_total AS v FROM cluster_recent UNION ALL
          SELECT 1 AS n, m_pods_total AS v FROM cluster_raw UNION ALL
          SELECT n, m_pods_total AS v FROM cluster_rolled)`)
    ).getRows()
    return { position: Number(row[0]), samples: Number(row[1]), sum: Number(row[2]) }
  } finally {
    connection.closeSync()
    database.closeSync()
  }
}

it(
  'loses nothing at or below its position and doubles nothing, killed at any moment',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'history-kill-'))
    directories.push(directory)
    for (let cycle = 0; cycle < cycles; cycle++) {
      const safe = await appendAndDie(directory, Math.random() * 300)
      const { position, samples, sum } = await stored(directory)
      expect(position).toBeGreaterThanOrEqual(safe)
      expect(samples).toBe(position + 1)
      expect(Math.round(sum)).toBe((position * (position + 1)) / 2)
    }
    expect((await readdir(directory)).filter((name) => name.includes('damaged'))).toEqual([])
  },
  60_000 + cycles * 30_000,
)
