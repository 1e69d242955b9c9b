import { exceed, LONGEST_TEXT, type Run, spend } from './run.ts'

const isHigh = (unit: number) => (unit & 0xfc00) === 0xd800
const isLow = (unit: number) => (unit & 0xfc00) === 0xdc00

/** Worth asking the engine about: it looks at many units at once, also before our loops are compiled. */
const LONG = 64
const isLongAscii = (text: string) => text.length > LONG && Buffer.byteLength(text, 'utf8') === text.length

/** How many code points a text has. */
export function countCodePoints(text: string): number {
  if (isLongAscii(text)) return text.length
  let count = text.length
  let isBehindHigh = false
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (isBehindHigh && isLow(unit)) count--
    isBehindHigh = isHigh(unit)
  }
  return count
}

/** The UTF-16 offset that is `count` code points behind `from`; the end of the text where there are fewer. */
function offsetAfter(text: string, from: number, count: number): number {
  let at = from
  for (let left = count; left > 0 && at < text.length; left--) {
    at += isHigh(text.charCodeAt(at)) && at + 1 < text.length && isLow(text.charCodeAt(at + 1)) ? 2 : 1
  }
  return at
}

/** From `start` on, `length` code points (all, where undefined). Whole numbers; empty where `start` is outside or `length` negative. */
export function codePoints(text: string, start: number, length: number | undefined): string {
  if (start < 0 || start >= text.length || (length !== undefined && length <= 0)) return ''
  if (isLongAscii(text)) return text.slice(start, length === undefined ? undefined : start + length)
  const from = offsetAfter(text, 0, start)
  return length === undefined ? text.slice(from) : text.slice(from, offsetAfter(text, from, length))
}

/** By code points, which is also the order of the UTF-8 bytes; UTF-16 units would put U+FFxx behind what follows them. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i++) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left !== right) return rank(left) - rank(right)
  }
  return a.length - b.length
}

/** Surrogates stand for what comes after all other units. */
const rank = (unit: number) => ((unit & 0xf800) === 0xd800 ? unit + 0x10000 : unit)

/** Patterns up to here are searched by the engine, whose search is linear for them. */
const SHORT_PATTERN = 200
const FEW_STEPS = 2 ** 16

/** Whether `part` is in `text`, in linear time whatever they are. */
export function includes(text: string, part: string, run: Run): boolean {
  if (part.length > text.length) return false
  const isShort = part.length <= SHORT_PATTERN || (text.length - part.length + 1) * part.length <= FEW_STEPS
  if (!spend(run, (text.length + part.length) * (isShort ? 2 : 6))) return false
  return isShort ? text.includes(part) : includesLong(text, part)
}

/** Knuth, Morris, Pratt: `borders[i]` is the length of the longest text that both begins and ends `part` up to `i`. */
function includesLong(text: string, part: string): boolean {
  const wanted = unitsOf(part)
  const borders = new Int32Array(wanted.length)
  for (let i = 1, matched = 0; i < wanted.length; i++) {
    const unit = wanted[i]
    while (matched > 0 && wanted[matched] !== unit) matched = borders[matched - 1]!
    if (wanted[matched] === unit) matched++
    borders[i] = matched
  }
  const units = unitsOf(text)
  for (let i = 0, matched = 0; i < units.length; i++) {
    const unit = units[i]
    while (matched > 0 && wanted[matched] !== unit) matched = borders[matched - 1]!
    if (wanted[matched] === unit) matched++
    if (matched === wanted.length) return true
  }
  return false
}

// ── letters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Upper case, one code point to one, in no language: `ß` stays. */
export function upper(text: string, run: Run): string {
  if (!spend(run, text.length * 3)) return ''
  const full = text.includes('ß') ? '' : text.toUpperCase()
  // A letter that becomes many makes the text longer, and nothing makes it shorter.
  return bounded(full.length === text.length ? full : mapEach(text, upperCase, upperTable), run)
}

/** Lower case, one code point to one, in no language. */
export function lower(text: string, run: Run): string {
  if (!spend(run, text.length * 3)) return ''
  // İ becomes two letters, and the lower case of Σ depends on what stands around it.
  const isOdd = text.includes('İ') || text.includes('Σ')
  return bounded(isOdd ? mapEach(text, lowerCase, lowerTable) : text.toLowerCase(), run)
}

function bounded(text: string, run: Run): string {
  if (text.length <= LONGEST_TEXT) return text
  exceed(run)
  return ''
}

/** Unicode's simple mapping, where the full one gives one letter, or there is a simple one beside it. */
function upperCase(letter: string): string {
  const full = letter.toUpperCase()
  if (countCodePoints(full) === 1) return full
  const code = letter.codePointAt(0)!
  const hasSimple =
    (code >= 0x1f80 && code <= 0x1faf && (code & 8) === 0) || code === 0x1fb3 || code === 0x1fc3 || code === 0x1ff3
  return hasSimple ? String.fromCodePoint(code + (code >= 0x1fb0 ? 9 : 8)) : letter
}

const lowerCase = (letter: string): string => (letter === '\u0130' ? 'i' : letter.toLowerCase())

/** Cased letters are in the first two planes. Filled as letters are met; 0 is not known yet. */
const TABLED = 0x20000
const upperTable: Table = { codes: undefined }
const lowerTable: Table = { codes: undefined }
interface Table {
  codes: Uint32Array | undefined
}

function mapEach(text: string, map: (letter: string) => string, table: Table): string {
  table.codes ??= new Uint32Array(TABLED)
  const { codes } = table
  const units = unitsOf(text)
  // A letter of the first plane stays in it, and none of the second leaves that: the text keeps its length in units.
  for (let i = 0; i < units.length; i++) {
    const unit = units[i]!
    const next = units[i + 1]
    if (isHigh(unit) && next !== undefined && isLow(next)) {
      const code = ((unit & 0x3ff) << 10) + (next & 0x3ff) + 0x10000
      i++
      if (code >= TABLED) continue
      const changed = (codes[code] || learn(codes, code, map)) - 0x10000
      units[i - 1] = 0xd800 | (changed >> 10)
      units[i] = 0xdc00 | (changed & 0x3ff)
    } else if (unit !== 0) units[i] = codes[unit] || learn(codes, unit, map)
  }
  return Buffer.from(units.buffer, units.byteOffset, units.byteLength).toString('utf16le')
}

function learn(codes: Uint32Array, code: number, map: (letter: string) => string): number {
  const result = map(String.fromCodePoint(code)).codePointAt(0)!
  codes[code] = result
  return result
}

/** A copy of a text's UTF-16 units, for loops: reading them one by one from the text takes several times as long. */
function unitsOf(text: string): Uint16Array {
  const units = new Uint16Array(text.length)
  Buffer.from(units.buffer).write(text, 'utf16le')
  return units
}
