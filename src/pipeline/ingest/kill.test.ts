import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundled } from '../../../test/bundled.ts'

/** KILL_CYCLES=200 for the long run. */
const CYCLES = Number(process.env.KILL_CYCLES ?? 5)

interface Told {
  /** highest acknowledged sequence */
  acknowledged: number
  /** removed: acknowledged; removing: perhaps */
  life: 'there' | 'removing' | 'removed'
}

describe('kill -9 of the hub', () => {
  let directory: string
  let program: Awaited<ReturnType<typeof bundled>>
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kill-'))
    program = await bundled(join(import.meta.dirname, 'test/kill-child.ts'))
  })
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true })
    await program[Symbol.asyncDispose]()
  })

  it(`at random moments, ${CYCLES} times: every acknowledged batch is there after the restart`, {
    timeout: 120_000 + CYCLES * 60_000,
  }, async () => {
    const told = new Map<string, Told>()
    let acknowledgements = 0
    for (let cycle = 0; cycle <= CYCLES; cycle++) {
      const found = new Map<string, { sequence: number; nodes: string }>()
      const child = spawn(process.execPath, [program.path, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(child, 'exit')
      // However slow the machine is, it gets so far.
      let [isDue, fresh] = [false, 0]
      const killWhenDue = () => isDue && fresh >= 2 && child.kill('SIGKILL')
      for await (const line of createInterface({ input: child.stdout })) {
        const [word = '', name = '', number, nodes = ''] = line.split(' ')
        if (word === 'found') found.set(name, { sequence: Number(number), nodes })
        if (word === 'ready') {
          check(found, told)
          const waitMs = Math.random() * 150
          setTimeout(() => {
            isDue = true
            killWhenDue()
          }, waitMs)
        }
        if (word === 'acknowledged') {
          told.set(name, { acknowledged: Number(number), life: 'there' })
          acknowledgements++
          fresh++
          killWhenDue()
        }
        const known = told.get(name)
        if (known && (word === 'removing' || word === 'removed')) known.life = word
      }
      const [, signal] = (await ended) as [number | null, string | null]
      expect(signal).toBe('SIGKILL') // it did not end by itself
    }
    expect(acknowledgements).toBeGreaterThan(CYCLES)
  })
})

function check(found: ReadonlyMap<string, { sequence: number; nodes: string }>, told: Map<string, Told>): void {
  for (const [name, { acknowledged, life }] of told) {
    const state = found.get(name)
    // It is gone, and its numbers with it: the next process begins anew.
    if (!state && life !== 'there') told.set(name, { acknowledged: 0, life: 'removed' })
    if (life === 'there')
      expect(state?.sequence, `${name} after ${acknowledged} was acknowledged`).toBeGreaterThanOrEqual(acknowledged)
    // Declared again after the removal, perhaps with a batch that was on its way: never with an old one.
    if (life === 'removed' && state && state.sequence > 0) expect(state.sequence).toBeGreaterThan(acknowledged)
    // All of a batch or nothing of it.
    if (state && state.sequence > 0) expect(state.nodes).toBe(`n${state.sequence},always`)
  }
}
