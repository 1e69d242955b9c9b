/**
 * The first few of many in a total order, without sorting the others: most of what comes is compared once, with the worst that
 * is kept. A binary heap whose root is that worst.
 */
export class Best<T> {
  readonly #most: number
  readonly #compare: (left: T, right: T) => number
  readonly #heap: T[] = []

  /** @param compare never 0 for two different items */
  constructor(most: number, compare: (left: T, right: T) => number) {
    this.#most = most
    this.#compare = compare
  }

  add(item: T): void {
    const heap = this.#heap
    if (heap.length < this.#most) {
      heap.push(item)
      this.#up(heap.length - 1)
    } else if (heap.length > 0 && this.#compare(item, heap[0] as T) < 0) {
      heap[0] = item
      this.#down()
    }
  }

  /** What the next has to be better than; undefined: anything is taken. */
  get bound(): T | undefined {
    return this.#heap.length < this.#most ? undefined : this.#heap[0]
  }

  /** What is kept, best first. */
  sorted(): T[] {
    return this.#heap.toSorted(this.#compare)
  }

  #up(from: number): void {
    const heap = this.#heap
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      if (this.#compare(heap[at] as T, heap[above] as T) <= 0) return // both within the heap
      this.#swap(at, above)
      at = above
    }
  }

  #down(): void {
    const heap = this.#heap
    let at = 0
    for (;;) {
      let worst = at
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && this.#compare(heap[below] as T, heap[worst] as T) > 0) worst = below
      }
      if (worst === at) return
      this.#swap(at, worst)
      at = worst
    }
  }

  #swap(one: number, other: number): void {
    const kept = this.#heap[one] as T
    this.#heap[one] = this.#heap[other] as T
    this.#heap[other] = kept
  }
}
