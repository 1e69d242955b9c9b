import { parseArgs } from 'node:util'
import { compareAnswers, endServers } from './answers.ts'
import { compareAccessViews, type Difference } from './compare.ts'
import { worldOf } from './generate.ts'
import { compareMonitor, endMonitor } from './monitor.ts'
import { reduced } from './reduce.ts'
import type { World } from './world.ts'

/** Worlds of seeds in a row, each asked at the access core, every so many through the whole API. */
export interface Run {
  readonly seed: number
  readonly worlds: number
  /** every how many worlds the API is asked as well; 0: never */
  readonly apiEvery: number
  /** asks the API only what this finds */
  readonly ask?: RegExp
  /** ms since the Unix epoch after which no further world begins */
  readonly until?: number
  /** called after each world */
  readonly progress?: (done: Progress) => void
  /** called as soon as something is found, before its world is made small; absent: it is left as it is */
  readonly found?: (failure: Failure, done: Progress) => void
}

export interface Progress {
  worlds: number
  api: number
}

export interface Failure extends Difference {
  readonly seed: number
  readonly level: 'access view' | 'api' | 'monitor'
  /** as small as it could be made in time */
  readonly world: World
}

/** How long a world is made smaller, ms. */
const REDUCE_MS = 60_000

/** @returns the first difference with its world; undefined where there was none */
export async function runWorlds(run: Run): Promise<{ readonly done: Progress; readonly failure?: Failure }> {
  const done: Progress = { worlds: 0, api: 0 }
  const told = async (world: World, { kind, detail }: Difference, level: Failure['level'], ask: Ask) => {
    const failure = { seed: world.seed, level, kind, detail, world }
    run.found?.(failure, done)
    return run.found ? smaller(failure, ask) : failure
  }
  try {
    for (let seed = run.seed; seed < run.seed + run.worlds; seed++) {
      if (run.until !== undefined && Date.now() > run.until) break
      const world = worldOf(seed)
      const answers = (one: World) => compareAnswers(one, run.ask)
      const difference = await compareAccessViews(world)
      if (difference) return { done, failure: await told(world, difference, 'access view', compareAccessViews) }
      done.worlds += 1
      if (run.apiEvery > 0 && seed % run.apiEvery === 0) {
        const answered = await answers(world)
        if (answered) return { done, failure: await told(world, answered, 'api', answers) }
        const monitored = run.ask && !run.ask.test('monitor') ? undefined : await compareMonitor(world)
        if (monitored) return { done, failure: await told(world, monitored, 'monitor', compareMonitor) }
        done.api += 1
      }
      run.progress?.(done)
    }
    return { done }
  } finally {
    await endServers()
    await endMonitor()
  }
}

type Ask = (world: World) => Promise<Difference | undefined>

async function smaller(failure: Failure, ask: Ask): Promise<Failure> {
  const differs = async (one: World) => (await ask(one))?.kind === failure.kind
  const world = await reduced(failure.world, differs, Date.now() + REDUCE_MS)
  const again = await ask(world)
  // What shows only after other worlds (something kept too long) is not there a second time.
  return again ? { ...failure, detail: again.detail, world } : failure
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      worlds: { type: 'string' },
      'api-every': { type: 'string' },
      until: { type: 'string' },
      ask: { type: 'string' },
      'as-found': { type: 'boolean', default: false },
    },
  })
  const say = (words: object) => void process.stdout.write(`${JSON.stringify(words)}\n`)
  let told = Date.now()
  const { done, failure } = await runWorlds({
    seed: Number(values.seed ?? 1),
    worlds: Number(values.worlds ?? 1000),
    apiEvery: Number(values['api-every'] ?? 20),
    ...(values.until && { until: Number(values.until) }),
    ...(values.ask && { ask: new RegExp(values.ask) }),
    progress: (now) => {
      if (Date.now() - told < 2000) return
      told = Date.now()
      say(now)
    },
    ...(!values['as-found'] && { found: (failure: Failure, now: Progress) => say({ ...now, failure }) }),
  })
  say({ ...done, end: true, failure })
  process.exitCode = failure ? 1 : 0
}

if (process.env.ACCESS_FUZZ_WORKER === '1') await main()
