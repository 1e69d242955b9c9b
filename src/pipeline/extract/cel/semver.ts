import type { Environment } from '@marcbachmann/cel-js'
import { define } from './define.ts'

const NUMBER = String.raw`(0|[1-9]\d{0,17})`
const LABELS = String.raw`[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`
const TEXT = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-(${LABELS}))?(?:\\+${LABELS})?$`)
const MAX_LETTERS = 256

/** A version as semver.org 2.0 has it. */
class Semver {
  readonly #text: string
  readonly numbers: readonly [bigint, bigint, bigint]
  /** labels of a pre-release */
  readonly labels: readonly string[]

  constructor(text: string, numbers: readonly [bigint, bigint, bigint], labels: readonly string[]) {
    this.#text = text
    this.numbers = numbers
    this.labels = labels
  }

  toJSON(): string {
    return this.#text
  }
}

function read(text: string): Semver | undefined {
  const match = text.length <= MAX_LETTERS ? TEXT.exec(text) : null
  if (!match) return undefined
  const [, major = '', minor = '', patch = '', labels] = match
  const list = labels === undefined ? [] : labels.split('.')
  if (list.some((label) => /^0\d+$/.test(label))) return undefined
  return new Semver(text, [BigInt(major), BigInt(minor), BigInt(patch)], list)
}

/** As people write them: `v1.30`, `01.2.3`. */
function normal(text: string): string {
  const match = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?$/.exec(text)
  if (!match) return text
  const [, major = '', minor = '0', patch = '0', rest = ''] = match
  return `${[major, minor, patch].map((part) => part.replace(/^0+(?=\d)/, '')).join('.')}${rest}`
}

function semver(text: string, isLoose = false): Semver {
  const made = read(isLoose ? normal(text) : text)
  if (!made) throw new Error('semver() takes a version, such as 1.30.2')
  return made
}

function compare(a: Semver, b: Semver): number {
  for (const i of [0, 1, 2] as const) if (a.numbers[i] !== b.numbers[i]) return a.numbers[i] < b.numbers[i] ? -1 : 1
  if (a.labels.length === 0 || b.labels.length === 0) return Math.sign(b.labels.length - a.labels.length)
  for (const [i, label] of a.labels.entries()) {
    const other = b.labels[i]
    if (other === undefined) return 1
    if (label !== other) return compareLabels(label, other)
  }
  return a.labels.length < b.labels.length ? -1 : 0
}

/** Numbers come before words. */
function compareLabels(a: string, b: string): number {
  const [isNumber, isOther] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  if (isNumber && isOther) return BigInt(a) < BigInt(b) ? -1 : 1
  if (isNumber !== isOther) return isNumber ? -1 : 1
  return a < b ? -1 : 1
}

/** @see Kubernetes API reference, "CEL", semver library */
export function registerSemver(cel: Environment): void {
  cel.registerType('Semver', Semver)
  define(cel, 'semver(string): Semver', (text: string) => semver(text))
  define(cel, 'semver(string, bool): Semver', semver)
  define(cel, 'isSemver(string): bool', (text: string) => read(text) !== undefined)
  define(
    cel,
    'isSemver(string, bool): bool',
    (text: string, isLoose: boolean) => read(isLoose ? normal(text) : text) !== undefined,
  )
  for (const [i, part] of (['major', 'minor', 'patch'] as const).entries())
    define(cel, `Semver.${part}(): int`, ({ numbers }: Semver) => numbers[i])
  define(cel, 'Semver.compareTo(Semver): int', (a: Semver, b: Semver) => BigInt(compare(a, b)))
  define(cel, 'Semver.isGreaterThan(Semver): bool', (a: Semver, b: Semver) => compare(a, b) > 0)
  define(cel, 'Semver.isLessThan(Semver): bool', (a: Semver, b: Semver) => compare(a, b) < 0)
  cel.registerOperator('Semver == Semver', (a: Semver, b: Semver) => compare(a, b) === 0)
}
