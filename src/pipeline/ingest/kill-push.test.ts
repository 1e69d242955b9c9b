import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { bundled } from '../../../test/bundled.ts'
import type { AgentPlan } from './test/kill-push-child.ts'

/** KILL_CYCLES=1000 for the long run. */
const CYCLES = Number(process.env.KILL_CYCLES ?? 3)
const AGENTS = 4

/** What the parent heard of one agent. */
class Heard {
  readonly name: string
  newest = 0
  readonly open = new Set<number>()
  readonly acknowledged = new Set<number>()
  readonly losing = new Map<number, number[]>()
  readonly lost = new Map<number, number[]>()

  constructor(name: string) {
    this.name = name
  }

  take(word: string, [sequence = 0, ...lost]: number[]): void {
    this.newest = Math.max(this.newest, sequence)
    if (word === 'made') this.open.add(sequence)
    if (word === 'acknowledged') {
      this.open.delete(sequence)
      this.acknowledged.add(sequence)
    }
    if (word === 'losing') {
      this.losing.set(sequence, lost)
      for (const one of lost) this.open.delete(one)
    }
    if (word === 'lost') {
      this.lost.set(sequence, this.losing.get(sequence) ?? [])
      this.losing.delete(sequence)
    }
  }

  plan(): AgentPlan {
    const { name, newest, open, losing, acknowledged } = this
    // What was made between the last word and the kill may have been taken: its numbers are not given again.
    return { name, next: newest + 1, open: [...open], losing: [...losing], acknowledged: [...acknowledged].slice(-200) }
  }
}

describe.each(['file', 'duckdb'])('kill -9 of a hub that is pushed to, with history in a %s', (driver) => {
  it(`at random moments, ${CYCLES} times: all that was acknowledged is in history exactly once, and state is the newest`, {
    timeout: 120_000 + CYCLES * 60_000,
  }, async () => {
    await using program = await bundled(join(import.meta.dirname, 'test/kill-push-child.ts'))
    const directory = await mkdtemp(join(tmpdir(), 'kill-push-'))
    const agents = new Map(Array.from({ length: AGENTS }, (_, i) => [`c${i}`, new Heard(`c${i}`)]))
    try {
      for (let cycle = 0; cycle <= CYCLES; cycle++) {
        await writeFile(join(directory, 'plan.json'), JSON.stringify([...agents.values()].map((agent) => agent.plan())))
        const child = spawn(process.execPath, [program.path, directory, driver], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const ended = once(child, 'exit')
        // However slow the machine is, it gets so far.
        let [isDue, acknowledgements] = [false, 0]
        const killWhenDue = () => isDue && acknowledgements >= AGENTS && child.kill('SIGKILL')
        for await (const line of createInterface({ input: child.stdout })) {
          const [word = '', name = '', ...rest] = line.split(' ')
          const agent = agents.get(name)
          if (word === 'ready')
            setTimeout(() => {
              isDue = true
              killWhenDue()
            }, Math.random() * 250)
          if (word === 'acknowledged') acknowledgements++
          killWhenDue()
          if (!agent) continue
          if (word === 'found') checkState(agent, Number(rest[0]), rest[1] ?? '')
          else if (word === 'history') checkHistory(agent, numbersOf(rest[0]))
          else if (word === 'losses') checkLosses(agent, numbersOf(rest[0]))
          else agent.take(word, rest.map(Number))
          expect(word, `${name} was acknowledged, and taken a second time: ${rest}`).not.toBe('twice')
        }
        const [, signal] = (await ended) as [number | null, string | null]
        expect(signal).toBe('SIGKILL') // it did not end by itself
      }
      const heard = [...agents.values()]
      expect(heard.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0)).toBeGreaterThan(CYCLES * AGENTS)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})

const numbersOf = (text = '') => (text === '' ? [] : text.split(',').map(Number))

function checkState({ name, acknowledged, newest }: Heard, sequence: number, nodes: string): void {
  expect(sequence, `state of ${name}`).toBeGreaterThanOrEqual(Math.max(0, ...acknowledged))
  expect(sequence, `state of ${name}`).toBeLessThanOrEqual(newest)
  // All of a batch or nothing of it, whole or told as a difference.
  if (sequence > 0) expect(nodes).toBe(['always', `n${sequence}`].sort().join(','))
}

function checkHistory({ name, acknowledged, open, lost, losing }: Heard, sequences: readonly number[]): void {
  const times = new Map<number, number>()
  for (const sequence of sequences) times.set(sequence, (times.get(sequence) ?? 0) + 1)
  for (const sequence of acknowledged) expect(times.get(sequence) ?? 0, `${sequence} of ${name}`).toBe(1)
  // An agent that was killed with its hub may declare lost what had arrived: then it is there, once.
  const perhaps = new Set([...open, ...[...lost.values()].flat(), ...[...losing.values()].flat()])
  for (const [sequence, count] of times) {
    if (acknowledged.has(sequence)) continue
    expect(perhaps.has(sequence), `${sequence} of ${name} comes from nowhere`).toBe(true)
    expect(count, `${sequence} of ${name}`).toBe(1)
  }
}

function checkLosses({ name, lost, acknowledged }: Heard, declared: readonly number[]): void {
  expect(new Set(declared).size, `losses of ${name}`).toBe(declared.length)
  for (const sequence of declared) expect(acknowledged.has(sequence)).toBe(false)
  // One whose batches had all arrived is no loss; here an agent declares only what it never sent, or sent into a kill.
  expect(declared.length).toBeGreaterThanOrEqual(lost.size - CYCLES * AGENTS)
}
