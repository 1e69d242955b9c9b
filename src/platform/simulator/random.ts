/**
 * Chance under a seed: equal seeds give equal worlds, on every machine. Small Fast Counter (32 bit) over a seed that is
 * spread by a splitmix step. Not for secrets.
 */
export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number | string) {
    let state = typeof seed === 'number' ? Math.imul(seed, 0x9e3779b1) >>> 0 : hash(seed)
    const spread = () => {
      state = (state + 0x9e3779b9) >>> 0
      let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
      return (mixed ^ (mixed >>> 15)) >>> 0
    }
    this.#a = spread()
    this.#b = spread()
    this.#c = spread()
    for (let round = 0; round < 8; round++) this.word()
  }

  /** 32 random bits, as a whole number. */
  word(): number {
    const result = (this.#a + this.#b + this.#counter) >>> 0
    this.#counter = (this.#counter + 1) >>> 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) >>> 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) >>> 0
    return result
  }

  /** From 0 up to, not including, 1. */
  ratio(): number {
    return this.word() / 2 ** 32
  }

  /** Any amount of the range. */
  between(low: number, high: number): number {
    return low + (high - low) * this.ratio()
  }

  /** A whole number of the range, both ends included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.ratio() * (high - low + 1))
  }

  chance(probability: number): boolean {
    return this.ratio() < probability
  }

  /** @returns undefined only from an empty list */
  pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.ratio() * items.length)]
  }

  /** Weights need no certain sum; what weighs 0 is never taken. */
  weighted<T>(items: readonly T[], weight: (item: T) => number): T | undefined {
    const total = items.reduce((sum, item) => sum + weight(item), 0)
    let left = this.ratio() * total
    for (const item of items) {
      left -= weight(item)
      if (left < 0) return item
    }
    return undefined
  }

  /** Waiting time of a steady process with this mean, cut at four means. */
  exponential(mean: number): number {
    return Math.min(-Math.log(1 - this.ratio()) * mean, 4 * mean)
  }

  /** Letters and digits as Kubernetes gives to generated names: no vowels, nothing that looks like another. */
  suffix(length: number): string {
    return Array.from({ length }, () => SAFE[Math.floor(this.ratio() * SAFE.length)]).join('')
  }

  uuid(): string {
    const hex = [0, 0, 0, 0].map(() => this.word().toString(16).padStart(8, '0')).join('')
    const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) & 3] ?? '8'
    return uuidOf(hex, variant)
  }

  /** Chance of its own for one part, so that parts do not disturb each other. */
  fork(label: string): Random {
    return new Random(`${this.word()}/${label}`)
  }
}

const SAFE = 'bcdfghjklmnpqrstvwxz2456789'

/** 32 bits of a text (FNV-1a with a final mix). */
export const hash = (text: string): number => hashAfter(BEGUN, text)

const BEGUN = 0x811c9dc5

/** What `hash` has made of the start of a text, for texts that begin alike. */
export const hashBegun = (text: string): number => fold(BEGUN, text)

/** `hash` of a text whose start is begun. */
export function hashAfter(begun: number, rest: string): number {
  let state = fold(begun, rest)
  state ^= state >>> 16
  state = Math.imul(state, 0x7feb352d)
  state ^= state >>> 15
  return state >>> 0
}

function fold(begun: number, text: string): number {
  let state = begun
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193)
  return state
}

/** A text of as many hexadecimal digits, always the same for the same text. */
export function hexOf(text: string, digits: number): string {
  const words = Array.from({ length: Math.ceil(digits / 8) }, (_, part) =>
    hash(`${part}:${text}`).toString(16).padStart(8, '0'),
  )
  return words.join('').slice(0, digits)
}

/** A UUID that is always the same for the same text. */
export const uuidFrom = (text: string): string => uuidOf(hexOf(text, 32), 'a')

// Joined, not added up: the result is one flat text and not a tree of its parts, which counts with many of them.
const uuidOf = (hex: string, variant: string): string =>
  [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-')
