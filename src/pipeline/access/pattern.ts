import { RE2JS } from 're2js'
import { alternatives, closing } from './anchored.ts'
import type { DocumentPattern, Semantics } from './types.ts'

/** Says of a text whether it matches. Never throws, never waits; time is linear in the text. */
export type Matches = (text: string) => boolean

/** A pattern ready for use, or why it cannot be read: one sentence without a full stop. */
export type Pattern =
  | { readonly matches: Matches; readonly fault?: never }
  | { readonly fault: string; readonly matches?: never }

/** The longest regular expression a selector may hold, in Unicode code points; the original counted bytes. */
export const maxRegexLength = 256

/** Whether a filter's text is a pattern at all, or a name to be compared. */
export const isWildcard = (text: string): boolean => text.includes('*') || text.includes('?')

/** Whether a text holds syntax of expressions, which wildcards do not have: to the original it was one where it held "*" or "?". */
export const looksLikeRegex = (text: string): boolean => /[\\|()[\]{}^$+]/.test(text)

/**
 * A wildcard over a whole text, case sensitive: "*" is any text, "?" any one Unicode code point, everything else is itself.
 * Neither of the two stands for a line feed, as in the regular expressions that are stored beside it. No expression engine:
 * what lies between stars is looked for from left to right, so time is the text's length times that of the longest such piece.
 */
export function wildcard(pattern: string): Matches {
  if (!isWildcard(pattern)) return (text) => text === pattern
  const pieces = pattern.split('*')
  if (!pattern.includes('?') && !BROKEN.test(pattern)) return literalPieces(pieces)
  const points = pieces.map(pieceOf)
  const start = literalPrefix(pattern)
  return (text) => text.startsWith(start) && matchPoints(points, SURROGATE.test(text) ? [...text] : text)
}

/** What every match begins with, so that most texts are refused by a comparison; '' where that is half a code point. */
function literalPrefix(pattern: string): string {
  const [prefix = ''] = pattern.split(/[*?]/, 1)
  return BROKEN.test(prefix) ? '' : prefix
}

/** A code unit that is half of a code point, and one whose other half is missing. */
const SURROGATE = /[\ud800-\udfff]/
const BROKEN = /\p{Surrogate}/u

/** The pieces between stars without "?": a well-formed piece is found in UTF-16 only where its code points are. */
function literalPieces(pieces: readonly string[]): Matches {
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  const middle = pieces.slice(1, -1).filter(Boolean)
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    let at = first.length
    for (const piece of middle) {
      const found = text.indexOf(piece, at)
      if (found < 0 || found + piece.length > end || hasLineFeed(text, at, found)) return false
      at = found + piece.length
    }
    return !hasLineFeed(text, at, end)
  }
}

function hasLineFeed(text: string, from: number, to: number): boolean {
  const found = text.indexOf('\n', from)
  return found >= 0 && found < to
}

const ANY_ONE = null
/** Indexed by code point: a text as it is where it holds no surrogate. */
type Points = string | readonly string[]
type Piece = readonly (string | typeof ANY_ONE)[]

const pieceOf = (piece: string): Piece => [...piece].map((point) => (point === '?' ? ANY_ONE : point))

/** The same over code points, for "?" and for texts that are not well formed. */
function matchPoints(pieces: readonly Piece[], text: Points): boolean {
  const [first = [], ...rest] = pieces
  const last = rest.pop()
  if (!fits(first, text, 0)) return false
  if (last === undefined) return first.length === text.length
  const end = text.length - last.length
  if (end < first.length || !fits(last, text, end)) return false
  let at = first.length
  for (const piece of rest) {
    const found = findPiece(piece, text, at, end)
    if (found < 0) return false
    at = found + piece.length
  }
  return !text.slice(at, end).includes('\n')
}

/** The first place from `at` where the piece fits before `end`, with nothing but one line skipped on the way; -1 for none. */
function findPiece(piece: Piece, text: Points, at: number, end: number): number {
  for (let place = at; place + piece.length <= end; place++) {
    if (fits(piece, text, place)) return place
    if (text[place] === '\n') return -1
  }
  return -1
}

function fits(piece: Piece, text: Points, at: number): boolean {
  if (at + piece.length > text.length) return false
  for (let i = 0; i < piece.length; i++) {
    const found = text[at + i]
    if (piece[i] === ANY_ONE ? found === '\n' : found !== piece[i]) return false
  }
  return true
}

/**
 * A regular expression in the syntax of RE2, found anywhere in the text. Runs in time linear in the text whatever it says.
 * @param semantics `original` counts the length in bytes of UTF-8, as the original did
 */
export function re2(text: string, semantics: Semantics = 'strict'): Pattern {
  const length = semantics === 'original' ? Buffer.byteLength(text) : [...text].length
  if (length > maxRegexLength) {
    const unit = semantics === 'original' ? 'bytes' : 'characters'
    return { fault: `it has ${length} ${unit} and may have ${maxRegexLength}` }
  }
  return regex(text)
}

function regex(text: string): Pattern {
  try {
    const compiled = RE2JS.compile(text)
    // Within \Q and \E brackets and bars are letters, and no part of the syntax as it is read here.
    const isPlain = text.startsWith('^') && !text.includes('\\Q') && alternatives(text).length === 1
    const starts = isPlain ? literalStarts(text.slice(1)) : []
    if (starts.length === 0 || starts.includes('')) return { matches: (value) => compiled.test(value) }
    return { matches: (value) => beginsWithAny(value, starts) && compiled.test(value) }
  } catch (error) {
    return { fault: error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : String(error) }
  }
}

/**
 * What matches of an anchored expression begin with, one of them at least: letters that nothing makes optional, and those of
 * the alternatives of a group behind them. Most texts are refused by comparing them, without the engine.
 */
function literalStarts(text: string): readonly string[] {
  const [letters = ''] = /^[\w-]*/.exec(text) ?? []
  const rest = text.slice(letters.length)
  if (/^[?*{]/.test(rest)) return [letters.slice(0, -1)]
  const [open] = /^\((?:\?:)?(?!\?)/.exec(rest) ?? []
  const end = open === undefined ? -1 : closing(rest)
  if (open === undefined || end < 0 || /^[?*{]/.test(rest.slice(end + 1))) return [letters]
  const starts = alternatives(rest.slice(open.length, end)).flatMap(literalStarts)
  return starts.length > MAX_STARTS ? [letters] : starts.map((start) => letters + start)
}

const MAX_STARTS = 16

function beginsWithAny(text: string, starts: readonly string[]): boolean {
  for (const start of starts) if (text.startsWith(start)) return true
  return false
}

/** How a wildcard is stored: as written, and as a regular expression in which everything but "*" and "?" is escaped. */
export const documentPattern = (text: string): DocumentPattern => [text, translate(text, /[\\.+()|[\]{}^$]/g)]

/** How the original translated it: "." is escaped and nothing else, so that the rest reaches the engine as syntax. */
const originalRegex = (text: string): string => translate(text, /\./g)

const translate = (text: string, special: RegExp): string =>
  `^${text.replace(special, '\\$&').replaceAll('*', '.*').replaceAll('?', '.')}$`

/**
 * A stored pair as it is evaluated. `original` goes by the expression alone. `strict` goes by the wildcard as written, and
 * demands of the expression that it is one of the two translations and can be read: a pair changed by hand could mean either.
 * Where an original manager translated, and the wildcard and the expression differ, what either denies is denied, and only
 * what both allow is allowed: a migration never shows what was hidden.
 * @param list in which it stands
 */
export function storedPattern(
  [text, stored]: DocumentPattern,
  semantics: Semantics,
  list: 'allowed' | 'denied',
): Pattern {
  if (semantics === 'original') return regex(stored)
  const asWritten = wildcard(text)
  if (stored === documentPattern(text)[1]) return { matches: asWritten }
  if (stored !== originalRegex(text))
    return { fault: `${JSON.stringify(stored)} is not what ${JSON.stringify(text)} means` }
  const { matches: asExpression, fault } = regex(stored)
  if (fault !== undefined) return { fault }
  return {
    matches:
      list === 'denied'
        ? (value) => asWritten(value) || asExpression(value)
        : (value) => asWritten(value) && asExpression(value),
  }
}
