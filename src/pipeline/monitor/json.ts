import type { Steps } from '#runtime'

/*
 * Documents whose large parts are made while they are written. In these parts undefined stands for a step of the work that adds
 * nothing, after which others may have their turn.
 */

export type Member = readonly [name: string, value: unknown]

/** An object. */
export class Members {
  readonly made: Iterable<Member | undefined>

  constructor(made: Iterable<Member | undefined>) {
    this.made = made
  }

  /** Of an object whose values may be such parts themselves. */
  static of(object: object): Members {
    return new Members(Object.entries(object))
  }
}

/** A list. */
export class Items {
  readonly made: Iterable<unknown>

  constructor(made: Iterable<unknown>) {
    this.made = made
  }
}

/** What `JSON.stringify` would make of the whole, a little at a time. Parts are made in the order in which they stand. */
export function* jsonPieces(value: unknown): Generator<string> {
  const made = piecesOf(value)
  if (typeof made === 'string') yield made
  else yield* made
}

/** Of most values one text: a generator for each of them would be most of the work. */
function piecesOf(value: unknown): string | Iterable<string> {
  if (value instanceof Items) return enclosed('[', value.made, piecesOf, ']')
  if (value instanceof Members) return enclosed('{', value.made, memberPieces, '}')
  return JSON.stringify(value)
}

/** Pieces are put together to about so many letters: a text of very many pieces is slow to write. */
const PART = 64 * 1024

/** The same as one text, for what is sent to many. */
export function* jsonText(value: unknown): Steps<string> {
  const parts: string[] = []
  let part = ''
  for (const piece of jsonPieces(value)) {
    part += piece
    if (part.length >= PART) {
      parts.push(part)
      part = ''
    }
    yield
  }
  return `${parts.join('')}${part}`
}

function memberPieces([name, value]: Member): string | Iterable<string> {
  const made = piecesOf(value)
  return typeof made === 'string' ? `${JSON.stringify(name)}:${made}` : begun(`${JSON.stringify(name)}:`, made)
}

function* begun(first: string, rest: Iterable<string>): Generator<string> {
  yield first
  yield* rest
}

function* enclosed<T>(
  first: string,
  all: Iterable<T | undefined>,
  pieces: (one: T) => string | Iterable<string>,
  last: string,
): Generator<string> {
  yield first
  let comma = ''
  for (const one of all) {
    if (one === undefined) {
      yield ''
      continue
    }
    const made = pieces(one)
    if (typeof made === 'string') yield `${comma}${made}`
    else yield* begun(comma, made)
    comma = ','
  }
  yield last
}
