import { type FleetError, type Ranges, withRange } from '#model'
import type { Effects } from './effects.ts'
import { isSequence } from './frames.ts'
import type { Answer } from './session-events.ts'

type Refusal = Pick<FleetError, 'code' | 'message'>

/** What an agent hears of its frames: those on disk in runs, several at once; those that are refused, each at once. */
export class Acknowledgements {
  readonly #effects: Effects
  readonly #random: () => number
  #waiting: Ranges = []

  constructor(effects: Effects, random: () => number) {
    this.#effects = effects
    this.#random = random
  }

  add(sequence: number) {
    if (this.#waiting.length === 0) this.#effects.add({ kind: 'flush' })
    this.#waiting = withRange(this.#waiting, [sequence, sequence])
  }

  flush() {
    if (this.#waiting.length === 0) return
    const received = this.#waiting.map(([first, last]) => ({ first, last }))
    this.#waiting = []
    this.#effects.send(ack({ success: true, received }))
  }

  refuse(sequence: number, error: FleetError) {
    if (error.retryable) return this.resend(sequence, error, Math.round(2_000 + 3_000 * this.#random()))
    this.#effects.count('refused')
    const facts = { sequence, code: error.code, error: error.message }
    this.#effects.note('warn', facts, 'a frame of an agent was refused')
    this.#send(sequence, error, undefined)
  }

  /** It is to be sent again, perhaps otherwise. */
  resend(sequence: number, refusal: Refusal, retryAfterMs: number) {
    this.#send(sequence, refusal, retryAfterMs)
  }

  #send(sequence: number, { code, message }: Refusal, retryAfterMs: number | undefined) {
    this.#effects.send(
      ack({
        error: message.slice(0, 1024),
        received: isSequence(sequence) ? [{ first: sequence, last: sequence }] : [],
        retryable: retryAfterMs !== undefined,
        retryAfterMs: retryAfterMs ?? 0,
        code,
      }),
    )
  }
}

type Ack = Extract<Answer, { readonly case: 'ack' }>

/** An acknowledgement; what is not given is empty. */
export const ack = (value: Partial<Ack['value']>): Answer => ({
  case: 'ack',
  value: {
    batchId: '',
    success: false,
    error: '',
    received: [],
    retryable: false,
    retryAfterMs: 0,
    code: '',
    ...value,
  },
})
