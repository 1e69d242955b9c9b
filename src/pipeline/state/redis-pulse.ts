import { type Clock, seconds } from '#model'
import type { Command } from '#redis'
import { own } from './redis-keys.ts'

/** One that says nothing for so long is not heard, ms: two of its looks at Redis, and a moment. */
const SILENT_MS = seconds(12)
/** For followers that start while nobody writes, s. */
const KEPT_S = 3600

/** Says that an owner lives. @param writer the process, as its entries in the stream name it */
export const pulseCommands = (index: number, writer: string, now: number): Command[] => [
  ['HSET', own.pulses, index, `${writer} ${now}`],
  ['EXPIRE', own.pulses, KEPT_S],
]

export const readPulses: Command = ['HGETALL', own.pulses]

interface Pulse {
  readonly text: string
  /** when it was another one, or first seen, by our clock */
  readonly at: number
}

/** Which owners live, as somebody else knows it who reads what they write. Their clocks do not matter. */
export class OwnerPulses {
  readonly #clock: Clock
  readonly #pulses = new Map<number, Pulse>()
  /** by owner: which process wrote last, and when */
  readonly #wrote = new Map<number, { readonly writer: string; readonly at: number }>()
  /** up to when it is known what was said */
  #heardUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * @param hash of `readPulses`; what is not in it any more has run out
   * @param askedAt when it was asked for, ms: a process that stood still gets the answer late, and what was said meanwhile is not in it
   */
  take(hash: Readonly<Record<string, string>>, askedAt = this.#clock.now()): void {
    const at = this.#clock.now()
    this.#heardUntil = askedAt
    for (const [index, text] of Object.entries(hash))
      if (this.#pulses.get(Number(index))?.text !== text) this.#pulses.set(Number(index), { text, at })
  }

  wrote(owner: number, writer: string): void {
    this.#wrote.set(owner, { writer, at: this.#clock.now() })
  }

  /** Nobody could be heard: what was not heard meanwhile says nothing. */
  forget(): void {
    this.#pulses.clear()
    this.#wrote.clear()
    this.#heardUntil = Number.NEGATIVE_INFINITY
  }

  /**
   * The first owner that is silent. One of a version without pulses never is; nor is any while this process itself does not listen.
   * @param count how many owners there are
   */
  silent(count: number): { readonly since: number; readonly reason: string } | undefined {
    for (let index = 1; index <= count; index++) {
      const pulse = this.#pulses.get(index)
      const wrote = this.#wrote.get(index)
      if (!pulse || (wrote && !pulse.text.startsWith(`${wrote.writer} `))) continue
      const since = Math.max(pulse.at, wrote?.at ?? 0)
      if (this.#heardUntil - since < SILENT_MS) continue
      const which = count === 1 ? 'the manager' : `the process of the manager with share ${index} of ${count}`
      return { since, reason: `${which} is not heard` }
    }
    return undefined
  }
}
