/** So many bytes may be on their way; whoever has more waits its turn. One that is larger than all goes alone. */
export class Credit {
  readonly #limit: number
  readonly #waiting: { readonly bytes: number; go(): void }[] = []
  #used = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  async take(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#used += bytes
      return
    }
    await new Promise<void>((go) => this.#waiting.push({ bytes, go }))
  }

  give(bytes: number): void {
    this.#used -= bytes
    for (let next = this.#waiting[0]; next && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#used += next.bytes
      next.go()
    }
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#limit
  }
}
