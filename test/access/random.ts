/** Chance with a seed, so that every world can be made again. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** from 0 to below 1 (mulberry32) */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** a whole number, both ends included */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  /** true this often */
  often(ratio: number): boolean {
    return this.next() < ratio
  }

  one<T>(of: readonly T[]): T {
    if (of.length === 0) throw new Error('nothing to choose from')
    return of[Math.floor(this.next() * of.length)] as T // within the list
  }

  /** some of them, each at most once, in a random order */
  some<T>(of: readonly T[], most: number, least = 0): T[] {
    const left = [...of]
    const count = Math.min(left.length, this.int(least, most))
    return Array.from({ length: count }, () => left.splice(Math.floor(this.next() * left.length), 1)).flat()
  }
}
