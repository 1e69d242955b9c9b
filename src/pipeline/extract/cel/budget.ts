import { BudgetFault } from '../fault.ts'

/** Steps and made values of one expression on one object: work of a few hundredths of a second. */
const MAX_COST = 500_000
/** Against single steps that are slow, ms of wall time. */
const MAX_MS = 250
/** Letters that count as one made value. */
const LETTERS = 8
/** Steps between two looks at the clock. */
const STRIDE = 64

/** What one evaluation may still cost. Once it is spent every further step fails, also where an expression passes over errors. */
export class Budget {
  #left = MAX_COST
  #until = 0
  #steps = 0
  #isSpent = false
  #isLate = false

  begin(): void {
    this.#left = MAX_COST
    this.#until = 0
    this.#steps = 0
    this.#isSpent = false
    this.#isLate = false
  }

  /** @throws BudgetFault where it is spent */
  spend(cost: number): void {
    this.#left -= cost
    if (this.#left < 0) this.#isSpent = true
    else if (++this.#steps % STRIDE === 0) {
      const now = performance.now()
      if (this.#until === 0) this.#until = now + MAX_MS
      else if (now > this.#until && !this.#isSpent) {
        this.#isSpent = true
        this.#isLate = true
      }
    }
    this.check()
  }

  /** For a value that was made. */
  made<T>(value: T): T {
    this.spend(1 + sizeOf(value))
    return value
  }

  check(): void {
    if (this.#isSpent)
      throw new BudgetFault(
        'the expression takes too long: it goes over too many values or makes too large ones',
        this.#isLate,
      )
  }
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length / LETTERS
  if (Array.isArray(value)) return value.length
  return value instanceof Uint8Array ? value.length / LETTERS : 0
}
