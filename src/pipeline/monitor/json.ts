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
  if (value instanceof Items) yield* enclosed('[', value.made, jsonPieces, ']')
  else if (value instanceof Members) yield* enclosed('{', value.made, memberPieces, '}')
  else yield JSON.stringify(value)
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

function* memberPieces([name, value]: Member): Generator<string> {
  yield `${JSON.stringify(name)}:`
  yield* jsonPieces(value)
}

function* enclosed<T>(
  first: string,
  all: Iterable<T | undefined>,
  pieces: (one: T) => Iterable<string>,
  last: string,
): Generator<string> {
  yield first
  let comma = ''
  for (const one of all) {
    if (one === undefined) {
      yield ''
      continue
    }
    yield comma
    yield* pieces(one)
    comma = ','
  }
  yield last
}
