import { JoinedTexts, type Keys } from '#model'
import { ChunkMemo, FEW_ROWS } from './chunk-memo.ts'
import { allRows, noRows, type RowSet, setOfRows } from './row-set.ts'

/*
 * Names of the rows of a chunk as one text, in lower case, so that a word is looked for in all of them at once: mostly the very text
 * that the keys are, which chunks keep while only values change.
 */

interface NameText {
  /** every name with a line break behind it */
  readonly text: string
  /** where in the text each name begins; and the end */
  readonly starts: ArrayLike<number>
  /** the row with the shortest name, of several the first by name */
  readonly shortest: number
}

/** Of as many chunks as two million rows have. */
const texts = new ChunkMemo(2 ** 20).answers<NameText>(
  'names',
  // Mostly they are those of the keys.
  () => 100,
)
/** What some thousand words found among a million rows: most are found in few chunks. */
const words = new ChunkMemo(16 * 2 ** 20)

function textOf({ names }: Keys): NameText {
  let shortest = 0
  let best = names.at(0) as string
  let row = 0
  for (const name of names) {
    if (name.length < best.length || (name.length === best.length && name < best)) [shortest, best] = [row, name]
    row += 1
  }
  if (names instanceof JoinedTexts && names.text.toLowerCase() === names.text)
    return { text: names.text, starts: names.starts, shortest }
  const starts = [0]
  let text = ''
  for (const name of names) {
    text += `${name.toLowerCase()}\n`
    starts.push(text.length)
  }
  return { text, starts, shortest }
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

/** Finds a word, in lower case and without white space, in the names of chunks. */
export function nameFinder(word: string): (keys: Keys) => Found {
  if (word === '' || /\s/.test(word)) return () => (word === '' ? everywhere : nowhere)
  const answers = words.answers<Found>(word, ({ rows }) => (rows.length === 0 ? 0 : 280 + rows.byteLength))
  // What is told of a few rows is not asked again.
  return (keys) => (keys.names.length < FEW_ROWS ? find(keys, word) : answers.of(keys, () => find(keys, word)))
}

function find(keys: Keys, word: string): Found {
  const { text, starts } = keys.names.length < FEW_ROWS ? textOf(keys) : texts.of(keys, textOf)
  const rows: number[] = []
  let [best, bestRank, bestLength] = [-1, rankAnywhere + 1, 0]
  for (let row = 0, at = text.indexOf(word); at >= 0; at = text.indexOf(word, starts[row])) {
    while ((starts[row + 1] as number) <= at) row += 1
    rows.push(row)
    const [start, end] = [starts[row] as number, (starts[row + 1] as number) - 1]
    const rank = rankAt(text, at, start, end - word.length)
    const length = end - start
    const isBetter =
      rank < bestRank ||
      (rank === bestRank &&
        (length < bestLength ||
          (length === bestLength && (keys.names.at(row) as string) < (keys.names.at(best) as string))))
    if (isBetter) [best, bestRank, bestLength] = [row, rank, length]
    row += 1
  }
  return best < 0 ? nowhere : { rows: setOfRows(rows, keys.names.length), best, rank: bestRank }
}

/** @param last where the word stands if it ends the name */
function rankAt(text: string, at: number, start: number, last: number): number {
  if (at === start) return at === last ? 0 : 1
  return /[a-z0-9]/.test(text[at - 1] as string) ? rankAnywhere : 2
}
