import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parseClusterName } from '#model'
import { bundled } from '../../../test/bundled.ts'
import { serveHub } from './testing/grpc-hub.ts'
import { MemoryHub } from './testing/memory-hub.ts'

/** how often the agent is killed; more on request */
const CYCLES = Number(process.env.KILL_CYCLES ?? 4)
let directory = ''
let program: Awaited<ReturnType<typeof bundled>>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agent-kill-'))
  program = await bundled(join(import.meta.dirname, 'testing/kill-child.ts'))
})
afterAll(async () => {
  await program?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

describe('an agent that is killed at any moment', () => {
  it(`loses no batch that it kept, doubles none, and declares nothing lost (${CYCLES} kills)`, async () => {
    const hub = new MemoryHub({ cluster: parseClusterName('west'), now: () => Date.now() })
    await using served = await serveHub(hub)
    const origins = new Set<string>()
    let random = 7
    const next = (below: number) => {
      random = (random * 1103515245 + 12345) % 2147483648
      return (random >> 8) % below
    }
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      hub.up = next(4) > 0
      const child = start(served.port, cycle)
      await once(child.stdout ?? child, 'data')
      await sleep(next(700))
      if (next(3) === 0) hub.cut()
      await sleep(next(300))
      child.kill('SIGKILL')
      await once(child, 'close')
      hub.cut()
      if (hub.origin !== '') origins.add(hub.origin)
    }
    hub.up = true
    const last = start(served.port, CYCLES)
    try {
      let before = -1
      await vi.waitFor(
        () => {
          const now = hub.received[0]?.[1] ?? 0
          const isWhole = hub.received.length === 1 && hub.arrivals.get(now)?.backfill === false
          const isLater = before >= 0 && now > before
          before = before < 0 && isWhole ? now : before
          if (!isWhole || !isLater) throw new Error(`the hub has ${JSON.stringify(hub.received)}`)
        },
        { timeout: 120_000, interval: 100 },
      )
    } finally {
      last.kill('SIGKILL')
      await once(last, 'close')
    }
    const { streams } = hub
    expect([...hub.losses.values()]).toEqual([])
    origins.add(hub.origin)
    expect(origins.size).toBe(1)
    expect(streams, 'most runs reached the hub').toBeGreaterThan(CYCLES / 4)
    expect(hub.received[0]?.[0]).toBe(1)
    // Of each run, every round up to its last known one: a hole would be a batch that was kept and lost.
    const rounds = new Map<string, number[]>()
    for (const { view } of hub.arrivals.values()) {
      const { run = '', count = '' } = view.namespace?.get('ns-0')?.labels ?? {}
      rounds.set(run, [...(rounds.get(run) ?? []), Number(count)])
    }
    for (const [run, counts] of rounds) {
      const sorted = counts.sort((a, b) => a - b)
      expect(sorted, `run ${run}`).toEqual(Array.from({ length: sorted.length }, (_, i) => i + 1))
    }
    expect(rounds.size).toBeGreaterThan(CYCLES / 2)
  }, 600_000)
})

function start(port: number, run: number): ChildProcess {
  return spawn(process.execPath, [program.path, join(directory, 'buffer'), String(port), `run-${run}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}
