/** Rows of numbers in arrival order, packed; the oldest goes when there is no room for more. */
export class Ring {
  readonly #width: number
  readonly #maxRows: number
  #times = new Float64Array(0)
  #values: Float64Array | Float32Array
  #first = 0
  size = 0

  /** @param width values of a row @param isExact values as doubles; else as floats, to seven digits */
  constructor(width: number, maxRows: number, isExact: boolean) {
    this.#width = width
    this.#maxRows = maxRows
    this.#values = isExact ? new Float64Array(0) : new Float32Array(0)
  }

  get bytes(): number {
    return this.#times.byteLength + this.#values.byteLength
  }

  /** @param mayGrow asked for this many more bytes; where it says no the oldest row makes room */
  push(time: number, values: ArrayLike<number>, mayGrow: (bytes: number) => boolean): void {
    const rows = this.#times.length
    if (this.size === rows && rows < this.#maxRows) this.#grow(mayGrow)
    const room = this.#times.length
    if (room === 0) return
    if (this.size === room) {
      this.#first = (this.#first + 1) % room
      this.size--
    }
    const row = (this.#first + this.size) % room
    this.#times[row] = time
    this.#values.set(values, row * this.#width)
    this.size++
  }

  timeAt(index: number): number {
    return this.#times[(this.#first + index) % this.#times.length] ?? Number.NaN
  }

  /** The row's values; of use until the next push. */
  valuesAt(index: number): ArrayLike<number> {
    const row = (this.#first + index) % this.#times.length
    return this.#values.subarray(row * this.#width, (row + 1) * this.#width)
  }

  #grow(mayGrow: (bytes: number) => boolean): void {
    const rows = Math.min(this.#maxRows, Math.max(16, this.#times.length * 2))
    const rowBytes = 8 + this.#width * this.#values.BYTES_PER_ELEMENT
    // The first rows are always given: an entity without any would be none.
    if (!mayGrow((rows - this.#times.length) * rowBytes) && this.#times.length > 0) return
    const times = new Float64Array(rows)
    const values =
      this.#values instanceof Float64Array ? new Float64Array(rows * this.#width) : new Float32Array(rows * this.#width)
    for (let at = 0; at < this.size; at++) {
      times[at] = this.timeAt(at)
      values.set(this.valuesAt(at), at * this.#width)
    }
    this.#first = 0
    this.#times = times
    this.#values = values
  }
}
