import { type Clock, seconds } from '#model'
import { Random } from './random.ts'
import { churn, controllers, cronJobs, heartbeats, type Scene, type Stage, stages } from './stages.ts'
import type { Pace } from './types.ts'
import type { World } from './world/world.ts'

/** A stage that goes on, and when. `at` is the plan; a step is stamped with the clock where that is earlier. */
interface Cue {
  readonly at: number
  readonly order: number
  readonly stage: Generator<number, void, void>
  readonly scene: { now: number; readonly world: World | undefined }
  readonly label: string
}

/** A process that slept longer than this does not catch up: the plan moves on with the clock. */
const CATCH_UP_MS = seconds(60)

/**
 * Plays the stages of all worlds of a fleet in one order of time. The same seed and pace give the same plan; what
 * happens depends on that plan only, not on how often or late it is looked at.
 */
export class Life {
  readonly #worlds: readonly World[]
  readonly #clock: Clock
  readonly #pace: Pace | undefined
  readonly #random: Random
  /** a binary heap: the next cue first */
  readonly #cues: Cue[] = []
  /** `cluster/stage` of what is going on */
  readonly #playing = new Set<string>()
  #order = 0

  constructor(worlds: readonly World[], options: { clock: Clock; seed: number; pace: Pace | undefined }) {
    this.#worlds = worlds
    this.#clock = options.clock
    this.#pace = options.pace
    this.#random = new Random(`${options.seed}/life`)
    const start = this.#clock.now()
    const pace = this.#pace
    if (!pace) return
    for (const world of worlds) {
      this.wake(world, start)
      this.#begin(world, heartbeats, 'heartbeats', start)
      this.#begin(world, (scene) => churn(scene, pace.churnMs), 'churn', start)
      if (world.cronJobs.size > 0) this.#begin(world, cronJobs, 'cronJobs', start)
    }
    for (const { afterMs, cluster, stage } of pace.opening) {
      const world = worlds.find(({ scenario }) => scenario.name === cluster)
      const found = stages[stage]
      if (world && found) this.#begin(world, found.play, stage, start + afterMs)
    }
    const scene = { now: start, world: undefined }
    this.#add({ at: start, stage: this.#direct(pace, scene), scene, label: 'director' })
  }

  /** When the next step is planned; undefined when nothing will ever happen. */
  get nextAt(): number | undefined {
    return this.#cues[0]?.at
  }

  /** Controllers work in this world from now on; where life has a pace they do so anyway. */
  wake(world: World, at = this.#clock.now()): void {
    if (!this.#playing.has(labelOf(world, 'controllers'))) this.#begin(world, controllers, 'controllers', at)
  }

  /** Begins a stage now. @returns false where the cluster plays it already */
  begin(world: World, name: string, at = this.#clock.now()): boolean {
    const found = stages[name]
    if (!found || this.#playing.has(labelOf(world, name))) return false
    this.wake(world, at)
    this.#begin(world, found.play, name, at)
    return true
  }

  /** Takes the next step of the plan, whenever it is planned. @returns the world it touched */
  step(): World | undefined {
    const cue = this.#take()
    if (!cue) return undefined
    cue.scene.now = Math.min(cue.at, this.#clock.now())
    const next = cue.stage.next()
    if (next.done) this.#playing.delete(cue.label)
    else this.#add({ ...cue, at: cue.at + Math.max(1, Math.round(next.value)) })
    return cue.scene.world
  }

  /** Takes all steps that are due. @returns the worlds they touched */
  advance(): Set<World> {
    const now = this.#clock.now()
    this.#forgive(now)
    const touched = new Set<World>()
    while ((this.nextAt ?? Number.POSITIVE_INFINITY) <= now) {
      const world = this.step()
      if (world) touched.add(world)
    }
    return touched
  }

  /** Chooses what happens next, and where, as long as the fleet lives. */
  *#direct({ happeningMs: [shortest, longest] }: Pace, scene: { readonly now: number }): Generator<number, void, void> {
    const random = this.#random.fork('director')
    const opened = Math.max(0, ...(this.#pace?.opening ?? []).map(({ afterMs }) => afterMs))
    yield opened + random.between(shortest, longest)
    for (;;) {
      const world = random.weighted(this.#worlds, ({ nodes }) => 3 + nodes.size)
      const names = Object.keys(stages).filter((name) => world && this.#canPlay(world, name))
      const name = random.weighted(names, (one) => stages[one]?.weight ?? 0)
      if (world && name !== undefined) this.begin(world, name, scene.now)
      yield random.between(shortest, longest)
    }
  }

  #canPlay(world: World, name: string): boolean {
    if (this.#playing.has(labelOf(world, name))) return false
    if (name.startsWith('volume')) return world.volumes.size > 0
    if (name === 'operatorFails') return world.operators.size > 0
    if (name === 'clusterOperatorDegrades' || name === 'clusterUpdate') return world.version !== undefined
    // One node at a time, so that the rest can carry its pods.
    if (name.startsWith('node')) return !NODE_STAGES.some((one) => this.#playing.has(labelOf(world, one)))
    return true
  }

  #begin(world: World, play: Stage, name: string, at: number): void {
    const scene = { now: at, world, random: world.random.fork(name) } satisfies Scene
    const label = labelOf(world, name)
    this.#playing.add(label)
    this.#add({ at, stage: play(scene), scene, label })
  }

  #forgive(now: number): void {
    const late = now - (this.nextAt ?? now)
    if (late <= CATCH_UP_MS) return
    // The order stays the same, and so does the heap.
    for (const [index, cue] of this.#cues.entries()) this.#cues[index] = { ...cue, at: cue.at + late }
  }

  #add(cue: Omit<Cue, 'order'>): void {
    const cues = this.#cues
    cues.push({ ...cue, order: this.#order++ })
    for (let at = cues.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!before(cues, at, parent)) break
      swap(cues, at, parent)
      at = parent
    }
  }

  #take(): Cue | undefined {
    const cues = this.#cues
    const first = cues[0]
    const last = cues.pop()
    if (!first || !last || cues.length === 0) return first
    cues[0] = last
    for (let at = 0; ; ) {
      const left = at * 2 + 1
      const child = left + 1 < cues.length && before(cues, left + 1, left) ? left + 1 : left
      if (child >= cues.length || !before(cues, child, at)) break
      swap(cues, at, child)
      at = child
    }
    return first
  }
}

const NODE_STAGES = Object.keys(stages).filter((name) => name.startsWith('node'))
const labelOf = ({ scenario }: World, stage: string): string => `${scenario.name}/${stage}`

function before(cues: readonly Cue[], a: number, b: number): boolean {
  const [one, other] = [cues[a], cues[b]]
  if (!one || !other) return false
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

function swap(cues: Cue[], a: number, b: number): void {
  const [one, other] = [cues[a], cues[b]]
  if (one && other) {
    cues[a] = other
    cues[b] = one
  }
}
