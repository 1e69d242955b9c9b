import { exceed, LONGEST_TEXT, type Run, spend } from './run.ts'

const isHigh = (unit: number) => (unit & 0xfc00) === 0xd800
const isLow = (unit: number) => (unit & 0xfc00) === 0xdc00

/** How many code points a text has. */
export function countCodePoints(text: string): number {
  let pairs = 0
  for (let i = 1; i < text.length; i++) {
    if (isLow(text.charCodeAt(i)) && isHigh(text.charCodeAt(i - 1))) pairs++
  }
  return text.length - pairs
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
  const from = offsetAfter(text, 0, start)
  return length === undefined ? text.slice(from) : text.slice(from, offsetAfter(text, from, length))
}

/** By code points, which is also the order of the UTF-8 bytes; UTF-16 units would put U+FFxx behind what follows them. */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  const shorter = Math.min(a.length, b.length)
  for (let i = 0; i < shorter; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)]
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
export function includes(text: string, part: string): boolean {
  if (part.length > text.length) return false
  if (part.length <= SHORT_PATTERN || (text.length - part.length + 1) * part.length <= FEW_STEPS)
    return text.includes(part)
  return includesLong(text, part)
}

/** Knuth, Morris, Pratt: `borders[i]` is the length of the longest text that both begins and ends `part` up to `i`. */
function includesLong(text: string, part: string): boolean {
  const borders = new Int32Array(part.length)
  for (let i = 1, matched = 0; i < part.length; i++) {
    const unit = part.charCodeAt(i)
    while (matched > 0 && part.charCodeAt(matched) !== unit) matched = borders[matched - 1]!
    if (part.charCodeAt(matched) === unit) matched++
    borders[i] = matched
  }
  for (let i = 0, matched = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    while (matched > 0 && part.charCodeAt(matched) !== unit) matched = borders[matched - 1]!
    if (part.charCodeAt(matched) === unit) matched++
    if (matched === part.length) return true
  }
  return false
}

// ── letters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Letters whose upper case is more than one letter. */
const MANY_UPPER =
  /[\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1f50\u1f52\u1f54\u1f56\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6\u1fb7\u1fbc\u1fc2-\u1fc4\u1fc6\u1fc7\u1fcc\u1fd2\u1fd3\u1fd6\u1fd7\u1fe2-\u1fe4\u1fe6\u1fe7\u1ff2-\u1ff4\u1ff6\u1ff7\u1ffc\ufb00-\ufb06\ufb13-\ufb17]/
/** İ becomes two letters, and the lower case of Σ depends on what stands around it. */
const ODD_LOWER = /[\u0130\u03a3]/

/** Upper case, one code point to one, in no language: `ß` stays. */
export const upper = (text: string, run: Run): string => mapped(text, run, MANY_UPPER, upperCase, upperTable)
/** Lower case, one code point to one, in no language. */
export const lower = (text: string, run: Run): string => mapped(text, run, ODD_LOWER, lowerCase, lowerTable)

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

function mapped(text: string, run: Run, odd: RegExp, map: (letter: string) => string, table: Table): string {
  if (!spend(run, text.length * 2)) return ''
  const result = odd.test(text)
    ? mapEach(text, map, table)
    : odd === ODD_LOWER
      ? text.toLowerCase()
      : text.toUpperCase()
  if (result.length <= LONGEST_TEXT) return result
  exceed(run)
  return ''
}

const PIECE = 4096

function mapEach(text: string, map: (letter: string) => string, table: Table): string {
  table.codes ??= new Uint32Array(TABLED)
  const { codes } = table
  const pieces: string[] = []
  let piece: number[] = []
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i)!
    if (code > 0xffff) i++
    piece.push(code < TABLED ? codes[code] || learn(codes, code, map) : code)
    if (piece.length === PIECE) {
      pieces.push(String.fromCodePoint(...piece))
      piece = []
    }
  }
  return pieces.join('') + String.fromCodePoint(...piece)
}

/** 0 itself is asked for anew each time, which costs little. */
function learn(codes: Uint32Array, code: number, map: (letter: string) => string): number {
  const result = map(String.fromCodePoint(code)).codePointAt(0)!
  codes[code] = result
  return result
}
