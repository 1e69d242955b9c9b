import { parseArgs } from 'node:util'
import { compareAnswers, endServers } from './answers.ts'
import { compareSights, type Difference } from './compare.ts'
import { worldOf } from './generate.ts'
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
}

export interface Progress {
  worlds: number
  api: number
}

export interface Failure extends Difference {
  readonly seed: number
  readonly level: 'sight' | 'api'
  /** as small as it could be made */
  readonly world: World
}

/** @returns the first difference with its world, made small; undefined where there was none */
export async function runWorlds(run: Run): Promise<{ readonly done: Progress; readonly failure?: Failure }> {
  const done: Progress = { worlds: 0, api: 0 }
  try {
    for (let seed = run.seed; seed < run.seed + run.worlds; seed++) {
      if (run.until !== undefined && Date.now() > run.until) break
      const world = worldOf(seed)
      const answers = (one: World) => compareAnswers(one, run.ask)
      const difference = await compareSights(world)
      if (difference) return { done, failure: await failureOf(world, difference, 'sight', compareSights) }
      done.worlds += 1
      if (run.apiEvery > 0 && seed % run.apiEvery === 0) {
        const answered = await answers(world)
        if (answered) return { done, failure: await failureOf(world, answered, 'api', answers) }
        done.api += 1
      }
      run.progress?.(done)
    }
    return { done }
  } finally {
    await endServers()
  }
}

async function failureOf(
  world: World,
  difference: Difference,
  level: Failure['level'],
  ask: (world: World) => Promise<Difference | undefined>,
): Promise<Failure> {
  const small = await reduced(
    world,
    async (smaller) => (await ask(smaller))?.kind === difference.kind,
    difference.kind.startsWith('stream') ? 25 : level === 'api' ? 300 : 3000,
  )
  const again = await ask(small)
  // What shows only after other worlds (something kept too long) is not there a second time.
  return {
    seed: world.seed,
    level,
    kind: difference.kind,
    detail: (again ?? difference).detail,
    world: again ? small : world,
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      worlds: { type: 'string' },
      'api-every': { type: 'string' },
      until: { type: 'string' },
      ask: { type: 'string' },
    },
  })
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
      process.stdout.write(`${JSON.stringify(now)}\n`)
    },
  })
  process.stdout.write(`${JSON.stringify({ ...done, end: true, failure })}\n`)
  process.exitCode = failure ? 1 : 0
}

if (process.env.ACCESS_FUZZ_WORKER === '1') await main()
