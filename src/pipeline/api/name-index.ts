import { JoinedTexts, type Keys, MAX_CHUNK_ROWS } from '#model'
import { ChunkMemo, FEW_ROWS } from './chunk-memo.ts'
import { allRows, listRows, noRows, type RowSet, setOfBits } from './row-set.ts'

/*
 * Names of the rows of a chunk as one text, in lower case, so that a word is looked for in all of them at once: mostly the very text
 * that the keys are, which chunks keep while only values change.
 */

interface NameText {
  /** every name with a line break behind it */
  readonly text: string
  /** where in the text each name begins; and the end */
  readonly starts: ArrayLike<number>
  /** names are in lower case themselves */
  readonly isOfKeys: boolean
  /** the row with the shortest name, of several the first by name */
  readonly shortest: number
}

/** Of as many chunks as two million rows have. */
const texts = new ChunkMemo(2 ** 20).answers<NameText>(
  'names',
  // Mostly they are those of the keys.
  () => 100,
)
function textOf({ names }: Keys): NameText {
  let shortest = 0
  let best = names.at(0) as string
  let row = 0
  for (const name of names) {
    if (name.length < best.length || (name.length === best.length && name < best)) [shortest, best] = [row, name]
    row += 1
  }
  if (names instanceof JoinedTexts && names.text.toLowerCase() === names.text)
    return { text: names.text, starts: names.starts, isOfKeys: true, shortest }
  const starts = [0]
  let text = ''
  for (const name of names) {
    text += `${name.toLowerCase()}\n`
    starts.push(text.length)
  }
  return { text, starts, isOfKeys: false, shortest }
}

/** How well a word is found in a name: less is better. */
export const rankAnywhere = 3

/** What a word found among the names of a chunk. */
export interface Found {
  readonly rows: RowSet
  /** the best of them by rank, length and name; -1: none */
  readonly best: number
  /** 0: it is the name; 1: its beginning; 2: the beginning of a word in it; 3: anywhere */
  readonly rank: number
}

const everywhere: Found = { rows: allRows, best: 0, rank: 1 }
const nowhere: Found = { rows: noRows, best: -1, rank: rankAnywhere + 1 }

/** The row with the shortest name, of several the first by name. */
export const shortestOf = (keys: Keys): number => texts.of(keys, textOf).shortest

/** @param among these rows are all that are looked at */
type NameFinder = (keys: Keys, among?: RowSet) => Found

/** Finds a word, in lower case and without white space, in the names of chunks. */
export function nameFinder(word: string): NameFinder {
  if (word === '') return () => everywhere
  return /\s/.test(word) ? () => nowhere : (keys, among) => find(keys, word, among)
}

/** Rows of which each is looked at, rather than all of the text. */
const FEW_FOUND = 64
const listed = new Uint16Array(MAX_CHUNK_ROWS)
/** Rows that have the word, while one chunk is searched. */
const bits = new Uint32Array(MAX_CHUNK_ROWS >> 5)

function find(keys: Keys, word: string, among: RowSet = allRows): Found {
  const { text, starts, isOfKeys } = keys.names.length < FEW_ROWS ? textOf(keys) : texts.of(keys, textOf)
  const size = keys.names.length
  bits.fill(0)
  let best = -1
  let bestRank = rankAnywhere + 1
  let bestLength = 0
  /**
   * Rows come from the first to the last.
   * @param at where the word stands first in the name of the row
   */
  const take = (row: number, at: number): void => {
    bits[row >> 5] = (bits[row >> 5] as number) | (1 << (row & 31))
    const start = starts[row] as number
    const end = (starts[row + 1] as number) - 1
    const rank = rankAt(text, at, start, end - word.length)
    if (rank > bestRank) return
    const length = end - start
    if (rank === bestRank) {
      if (length > bestLength) return
      if (length === bestLength && !comesFirst(keys, row, best, isOfKeys ? text : undefined)) return
    }
    best = row
    bestRank = rank
    bestLength = length
  }
  const count = among === allRows ? FEW_FOUND : listRows(among, size, listed)
  if (count < FEW_FOUND) {
    for (let i = 0; i < count; i++) {
      const row = listed[i] as number
      const start = starts[row] as number
      const at = text.slice(start, starts[row + 1]).indexOf(word)
      if (at >= 0) take(row, start + at)
    }
  } else {
    for (let row = 0, at = text.indexOf(word); at >= 0; at = text.indexOf(word, starts[row])) {
      while ((starts[row + 1] as number) <= at) row += 1
      take(row, at)
      row += 1
      // Names that begin alike follow each other.
      if (at === starts[row - 1])
        while (row < size && text.startsWith(word, starts[row])) take(row, starts[row++] as number)
    }
  }
  return best < 0 ? nowhere : { rows: setOfBits(bits, size), best, rank: bestRank }
}

/**
 * Whether the name of a row comes before that of one above it.
 * @param text the names, where it has them as they are; they are of one length
 */
function comesFirst({ namespaces, names }: Keys, row: number, above: number, text?: string): boolean {
  // Those of one namespace lie in order.
  if (namespaces.at(row) === namespaces.at(above)) return false
  if (!(names instanceof JoinedTexts) || text === undefined)
    return (names.at(row) as string) < (names.at(above) as string)
  const [from, to, other] = [
    names.starts[row] as number,
    names.starts[row + 1] as number,
    names.starts[above] as number,
  ]
  for (let i = 0; from + i < to; i++) {
    const difference = text.charCodeAt(from + i) - text.charCodeAt(other + i)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** @param last where the word stands if it ends the name */
function rankAt(text: string, at: number, start: number, last: number): number {
  if (at === start) return at === last ? 0 : 1
  const before = text.charCodeAt(at - 1)
  const isOfWord = (before >= 97 && before <= 122) || (before >= 48 && before <= 57) // a to z, 0 to 9
  return isOfWord ? rankAnywhere : 2
}
