import type { SequenceRange } from '#model'

/** A set of sequences, held as sorted runs that neither touch nor overlap. */
export class Ranges {
  #runs: [first: number, last: number][] = []

  constructor(runs: Iterable<SequenceRange> = []) {
    for (const [first, last] of runs) this.add(first, last)
  }

  get runs(): readonly SequenceRange[] {
    return this.#runs
  }

  /** how many sequences */
  get count(): number {
    return this.#runs.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  }

  has(sequence: number): boolean {
    const run = this.#runs[this.#firstEndingAt(sequence)]
    return run !== undefined && run[0] <= sequence
  }

  add(first: number, last = first): void {
    if (!(last >= first)) return
    // Runs that touch the new one become part of it.
    const from = this.#firstEndingAt(first - 1)
    let to = from
    let merged: [number, number] = [first, last]
    for (let run = this.#runs[to]; run && run[0] <= last + 1; run = this.#runs[++to]) {
      merged = [Math.min(merged[0], run[0]), Math.max(merged[1], run[1])]
    }
    this.#runs.splice(from, to - from, merged)
  }

  /** What of `first` to `last` is not in the set. */
  missing(first: number, last: number): SequenceRange[] {
    const found: SequenceRange[] = []
    let next = first
    for (let at = this.#firstEndingAt(first); next <= last; at++) {
      const run = this.#runs[at]
      const until = Math.min(last, (run?.[0] ?? Number.POSITIVE_INFINITY) - 1)
      if (until >= next) found.push([next, until])
      if (!run) break
      next = run[1] + 1
    }
    return found
  }

  /** index of the first run that ends at `sequence` or later */
  #firstEndingAt(sequence: number): number {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#runs[middle]?.[1] ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}
