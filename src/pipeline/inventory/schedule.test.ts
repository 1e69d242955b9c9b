import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { minutes, seconds } from '#model'
import {
  type BindingState,
  type Content,
  decide,
  exported,
  exportedInPart,
  failed,
  fresh,
  type Pace,
  retried,
  seeded,
  touched,
} from './schedule.ts'

const DATABASE: Pace = { windowMs: 0, heartbeatMs: undefined }
const GIT: Pace = { windowMs: seconds(60), heartbeatMs: undefined }
const content = (checksum: string, isComplete = true): Content => ({ checksum, isComplete })

interface Life {
  readonly fails?: (attempt: number) => boolean
  readonly random?: () => number
  readonly state?: BindingState
}

interface Sent {
  readonly at: number
  readonly checksum: string
  readonly isComplete: boolean
}

/** A binding that lives by simulated time: content changes at given times, the sink fails when it is told to. */
class Simulation {
  readonly sent: Sent[] = []
  readonly heartbeats: number[] = []
  attempts = 0
  state: BindingState
  now = 0
  content: Content | undefined
  readonly #pace: Pace
  readonly #fails: (attempt: number) => boolean
  readonly #random: () => number

  constructor(pace: Pace, { fails, random, state = fresh }: Life = {}) {
    this.#pace = pace
    this.#fails = fails ?? (() => false)
    this.#random = random ?? (() => 0.5)
    this.state = state
  }

  /** Until nothing is left to do before `until`. */
  run(until: number): void {
    for (;;) {
      const decision = decide(this.state, this.#pace, () => this.content, this.now)
      if (decision.kind === 'idle') break
      if (decision.kind === 'wait') {
        if (this.now + decision.ms > until) break
        this.now += decision.ms
      } else if (decision.kind === 'heartbeat') {
        this.heartbeats.push(this.now)
        this.state = touched(this.state, this.now)
      } else this.#export()
    }
    this.now = until
  }

  #export(): void {
    const given = this.content as Content
    if (this.#fails(this.attempts++)) {
      this.state = failed(this.state, 'transient', this.now, this.#random())
      return
    }
    this.sent.push({ at: this.now, ...given })
    this.state = exported(this.state, given, this.now)
  }
}

describe('the schedule of a binding', () => {
  it('makes of 600 changes in 600 s at most 12 exports, the last with the final content', () => {
    const binding = new Simulation(GIT)
    for (let at = 1; at <= 600; at++) {
      binding.run(seconds(at))
      binding.content = content(String(at))
    }
    binding.run(seconds(3600))
    expect(binding.sent.length).toBeLessThanOrEqual(12)
    expect(binding.sent.length).toBeGreaterThanOrEqual(10)
    expect(binding.sent.at(-1)?.checksum).toBe('600')
    expect(binding.sent[0]?.at).toBe(seconds(1))
  })

  it('exports every change at once where there is no window', () => {
    const binding = new Simulation(DATABASE)
    for (const at of [1, 2, 3]) {
      binding.run(at)
      binding.content = content(String(at))
    }
    binding.run(10)
    expect(binding.sent.map(({ at, checksum }) => [at, checksum])).toEqual([
      [1, '1'],
      [2, '2'],
      [3, '3'],
    ])
  })

  it('exports nothing before there is something complete', () => {
    const binding = new Simulation(DATABASE)
    binding.run(minutes(60))
    expect(binding.attempts).toBe(0)
  })

  it('takes what was given of an incomplete snapshot for no full one', () => {
    const binding = new Simulation(DATABASE)
    binding.content = content('a')
    binding.run(1)
    binding.content = content('a', false)
    binding.run(2)
    expect(binding.sent).toHaveLength(1)
    binding.content = content('b', false)
    binding.run(3)
    binding.content = content('b')
    binding.run(4)
    expect(binding.sent.map(({ checksum, isComplete }) => [checksum, isComplete])).toEqual([
      ['a', true],
      ['b', false],
      ['b', true],
    ])
  })

  it('writes nothing after a restart where the sink holds the content, and at once where it does not', () => {
    const same = new Simulation(DATABASE, { state: seeded('a', -5000) })
    same.content = content('a')
    same.run(minutes(60))
    expect(same.sent).toEqual([])
    const other = new Simulation(DATABASE, { state: seeded('a', -5000) })
    other.content = content('b')
    other.run(1)
    expect(other.sent).toHaveLength(1)
  })

  it('keeps the window over a restart', () => {
    const binding = new Simulation(GIT, { state: seeded('a', -20_000) })
    binding.content = content('b')
    binding.run(minutes(60))
    expect(binding.sent.map(({ at }) => at)).toEqual([40_000])
  })

  it('gives a sign of life each interval, and no row again', () => {
    const binding = new Simulation({ windowMs: 0, heartbeatMs: seconds(30) })
    binding.content = content('a')
    binding.run(seconds(100))
    expect(binding.sent).toHaveLength(1)
    expect(binding.heartbeats).toEqual([seconds(30), seconds(60), seconds(90)])
  })

  it('tries again first within 10 s, then ever later, at most each 5 min', () => {
    let state: BindingState = fresh
    const waits: number[] = []
    for (let attempt = 0; attempt < 12; attempt++) {
      state = failed(state, 'transient', 0, 0.999_999)
      waits.push((state.failure?.retryAt ?? 0) / 1000)
    }
    expect(waits[0]).toBeLessThanOrEqual(10)
    expect(waits.slice(1, 5).map(Math.round)).toEqual([20, 40, 80, 160])
    expect(Math.max(...waits)).toBeLessThanOrEqual(300)
    expect(Math.round(waits.at(-1) ?? 0)).toBe(300)
  })

  it('gives what waits for its deletions again when they may be made, and other content at once', () => {
    const state = exportedInPart(content('a'), 0, seconds(90))
    expect(decide(state, DATABASE, () => content('a'), seconds(1))).toEqual({ kind: 'wait', ms: seconds(89) })
    expect(decide(state, DATABASE, () => content('a'), seconds(90))).toEqual({ kind: 'export' })
    expect(decide(state, DATABASE, () => content('b'), seconds(1))).toEqual({ kind: 'export' })
  })

  it('looks every ten minutes at what only a person can mend, or at once when something changed', () => {
    const state = failed(fresh, 'terminal', 0, 0.5)
    const latest = () => content('a')
    expect(decide(state, DATABASE, latest, 1)).toEqual({ kind: 'wait', ms: minutes(10) - 1 })
    expect(decide(state, DATABASE, latest, minutes(10))).toEqual({ kind: 'export' })
    expect(decide(retried(state), DATABASE, latest, 1)).toEqual({ kind: 'export' })
  })

  it('tries other content than what somebody has to mend as after any failure', () => {
    const given = (checksum: string) => () => content(checksum)
    let state = failed(fresh, 'terminal', 0, 1, 'too large')
    expect(decide(state, DATABASE, given('mended'), 1)).toEqual({ kind: 'wait', ms: seconds(10) - 1 })
    expect(decide(state, DATABASE, given('mended'), seconds(10))).toEqual({ kind: 'export' })
    expect(decide(state, DATABASE, given('too large'), seconds(10))).toMatchObject({ ms: minutes(10) - seconds(10) })
    expect(decide(state, DATABASE, () => undefined, seconds(10))).toMatchObject({ kind: 'wait' })
    // It was no mend: the next is tried later, and never less often than each five minutes.
    let now = 0
    for (let i = 0; i < 20; i++) state = failed(state, 'terminal', now++, 1, `other ${i}`)
    expect(decide(state, DATABASE, given('mended'), now)).toMatchObject({ kind: 'wait', ms: minutes(5) - 1 })
  })

  it('exports what it had exported before, once an attempt failed in between: the sink may hold either', () => {
    const binding = new Simulation(DATABASE, { fails: (attempt) => attempt === 1 })
    for (const [at, checksum] of [
      [0, 'a'],
      [1, 'b'],
      [2, 'a'],
    ] as const) {
      binding.run(at)
      binding.content = content(checksum)
    }
    binding.run(minutes(1))
    expect(binding.sent.map(({ checksum }) => checksum)).toEqual(['a', 'a'])
  })

  it('waits for no clock that was set back longer than the window', () => {
    const state = exported(fresh, content('a'), minutes(1))
    const decision = decide(state, GIT, () => content('b'), minutes(1) - 1)
    expect(decision.kind === 'wait' && decision.ms).toBeLessThanOrEqual(seconds(60) + 1)
  })

  const life = fc.record({
    windowMs: fc.constantFrom(0, 1000, 60_000),
    changes: fc.array(fc.record({ after: fc.nat(90_000), content: fc.nat(3), isComplete: fc.boolean() }), {
      minLength: 1,
      maxLength: 40,
    }),
    failing: fc.array(fc.nat(60), { maxLength: 20 }),
    random: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  })

  it('delivers the last complete content, keeps its window, and repeats nothing, whatever happens', () =>
    fc.assert(
      fc.property(life, ({ windowMs, changes, failing, random }) => {
        const binding = new Simulation(
          { windowMs, heartbeatMs: undefined },
          { fails: (attempt) => failing.includes(attempt), random: () => random },
        )
        let at = 0
        for (const change of changes) {
          at += change.after
          binding.run(at)
          binding.content = content(String(change.content), change.isComplete)
        }
        const last = { ...(binding.content as Content), isComplete: true }
        binding.content = last
        binding.run(at + minutes(60 * 24))
        // 2: the trailing change arrives, complete.
        expect(binding.sent.at(-1)).toMatchObject({ checksum: last.checksum })
        const held = binding.sent.findLast(({ isComplete }) => isComplete)
        expect(held?.checksum).toBe(last.checksum)
        for (const [place, sent] of binding.sent.entries()) {
          const before = binding.sent[place - 1]
          if (!before) continue
          expect(sent.at - before.at).toBeGreaterThanOrEqual(windowMs)
          // 3: unless something failed, or the one before was incomplete.
          if (failing.length === 0 && before.isComplete) expect(sent.checksum).not.toBe(before.checksum)
        }
      }),
    ))
})
