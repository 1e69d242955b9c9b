import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { bundle, root } from './bundle.ts'
import { faults, runFault } from './faults.ts'
import type { Failure } from './run.ts'

/*
 * npm run fuzz:access -- --worlds 200000 --seed 7 [--minutes 20] [--api-every 20] [--workers 2]
 * npm run fuzz:access -- --faults [--named lists]
 */
interface Words {
  readonly worlds: number
  readonly api: number
  readonly end?: boolean
  readonly failure?: Failure
}

const { values } = parseArgs({
  options: {
    worlds: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    minutes: { type: 'string' },
    'api-every': { type: 'string', default: '20' },
    workers: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    faults: { type: 'boolean', default: false },
    named: { type: 'string', default: '' },
  },
})
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
const directory = mkdtempSync(join(root, 'node_modules/.cache/access-fuzz-'))
try {
  process.exitCode = (await (values.faults ? seedFaults() : fuzz())) ? 0 : 1
} finally {
  rmSync(directory, { recursive: true, force: true })
}

async function seedFaults(): Promise<boolean> {
  const counts = { caught: 0, missed: 0, unjudged: 0 }
  const chosen = faults.filter(({ name }) => name.includes(values.named))
  for (const fault of chosen) {
    try {
      const { found, detail, ms } = await runFault(fault, directory)
      counts[found ? 'caught' : 'missed'] += 1
      say(`${found ? 'caught' : 'MISSED'}  ${fault.name} (${(ms / 1000).toFixed(1)} s)${found ? `: ${detail}` : ''}`)
    } catch (error) {
      counts.unjudged += 1
      say(`FAILED  ${fault.name}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  say(`${counts.caught} of ${chosen.length} faults caught, ${counts.missed} missed, ${counts.unjudged} runs failed`)
  return counts.caught === chosen.length && counts.caught > 0
}

async function fuzz(): Promise<boolean> {
  const file = await bundle(directory, 'fuzz')
  const workers = Number(values.workers)
  const each = Math.ceil(Number(values.worlds) / workers)
  const began = Date.now()
  const until = values.minutes === undefined ? undefined : began + Number(values.minutes) * 60_000
  say(
    `seed ${values.seed}: ${values.worlds} worlds in ${workers} processes, every ${values['api-every']}th through the API`,
  )
  const told: Words[] = Array.from({ length: workers }, () => ({ worlds: 0, api: 0 }))
  const sum = (of: 'worlds' | 'api'): number => told.reduce((total, one) => total + one[of], 0)
  const rate = (): string => `${Math.round(sum('worlds') / ((Date.now() - began) / 1000))} worlds/s`
  const children: ChildProcess[] = []
  const timer = setInterval(() => say(`${sum('worlds')} worlds, ${sum('api')} through the API, ${rate()}`), 10_000)
  await Promise.all(
    told.map(async (_, index) => {
      const words = ['--seed', String(Number(values.seed) + index * each), '--worlds', String(each)]
      const child = spawn(
        process.execPath,
        [
          '--enable-source-maps',
          file,
          ...words,
          '--api-every',
          values['api-every'],
          ...(until ? ['--until', String(until)] : []),
        ],
        { env: { ...process.env, ACCESS_FUZZ_WORKER: '1' }, stdio: ['ignore', 'pipe', 'inherit'] },
      )
      children.push(child)
      const closed = once(child, 'close')
      for await (const line of createInterface({ input: child.stdout })) {
        told[index] = JSON.parse(line) as Words
        if (told[index].failure) for (const other of children) if (other !== child) other.kill()
      }
      await closed
    }),
  )
  clearInterval(timer)
  const failures = told.flatMap(({ failure }) => (failure ? [failure] : []))
  for (const { seed, level, kind, detail, world } of failures) {
    say(`\nDIFFERENCE of ${level} in the world of seed ${seed}: ${kind}\n${detail}\n${JSON.stringify(world, null, 1)}`)
  }
  const ended = failures.length > 0 || told.every(({ end }) => end)
  say(
    `${sum('worlds')} worlds, ${sum('api')} through the API, ${rate()}: ${failures.length > 0 ? 'DIFFERENT' : ended ? 'no difference' : 'a process died'}`,
  )
  return ended && failures.length === 0
}
