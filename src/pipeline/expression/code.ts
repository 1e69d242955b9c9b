import { decimalText } from './decimal.ts'
import { newRun, type Run } from './run.ts'
import type { Kind, Value } from './types.ts'
import { textOf, toNumber, truthOf } from './values.ts'

/** Which kinds a value may be of, as a set of bits. An evaluation that costs too much is null besides. */
export type Kinds = number
export const TEXT = 1
export const NUMBER = 2
export const BOOLEAN = 4
export const NULL = 8
export const ANY = TEXT | NUMBER | BOOLEAN | NULL

/**
 * A part of an expression, ready to run, in the four contexts a value can be wanted in. Which one is called is decided when the
 * expression is compiled, so numbers pass from operator to operator without being looked at.
 */
export interface Code {
  readonly kinds: Kinds
  /** known before anything runs; undefined: it depends */
  readonly constant: Value | undefined
  readonly value: (run: Run) => Value
  /** null is 0; NaN: a text that is no number */
  readonly number: (run: Run) => number
  readonly text: (run: Run) => string
  readonly truth: (run: Run) => boolean
}

export function constantCode(value: Value): Code {
  const number = toNumber(value, newRun([], 0))
  const text = textOf(value)
  const truth = truthOf(value)
  return {
    kinds: kindsOfValue(value),
    constant: value,
    value: () => value,
    number: () => number,
    text: () => text,
    truth: () => truth,
  }
}

/** From what gives a value of one of these kinds. */
export function valueCode(kinds: Kinds, value: (run: Run) => Value): Code {
  return {
    kinds,
    constant: undefined,
    value,
    number: (run) => {
      const found = value(run)
      return typeof found === 'number' ? found : toNumber(found, run)
    },
    text: (run) => textOf(value(run)),
    truth: (run) => truthOf(value(run)),
  }
}

/** From what gives a number, where one that is not finite means null. */
export function numberCode(number: (run: Run) => number, kinds: Kinds = NUMBER | NULL): Code {
  return {
    kinds,
    constant: undefined,
    value: (run) => {
      const found = number(run)
      return found - found === 0 ? found : null
    },
    number: (run) => {
      const found = number(run)
      return found - found === 0 ? found : 0
    },
    text: (run) => decimalText(number(run)),
    truth: (run) => {
      const found = number(run)
      return found - found === 0 && found !== 0
    },
  }
}

/** From what gives a text, never null. */
export function textCode(text: (run: Run) => string): Code {
  return {
    kinds: TEXT,
    constant: undefined,
    value: text,
    number: (run) => toNumber(text(run), run),
    text,
    truth: (run) => text(run) !== '',
  }
}

/** From what gives a boolean, never null. */
export function truthCode(truth: (run: Run) => boolean): Code {
  return {
    kinds: BOOLEAN,
    constant: undefined,
    value: truth,
    number: (run) => (truth(run) ? 1 : 0),
    text: (run) => (truth(run) ? 'true' : 'false'),
    truth,
  }
}

/** Computed now, where all it reads is known. What costs too much stays as it is, to be told when it runs. */
export function folded(code: Code, reads: readonly Code[]): Code {
  if (reads.some((operand) => operand.constant === undefined)) return code
  const run = newRun([], 0)
  const value = code.value(run)
  return run.left < 0 ? code : constantCode(value)
}

export const isOnly = (code: Code, kinds: Kinds): boolean => (code.kinds & ~kinds) === 0
export const mayBe = (code: Code, kinds: Kinds): boolean => (code.kinds & kinds) !== 0

export function kindsOf(kind: Kind): Kinds {
  switch (kind) {
    case 'string':
      return TEXT | NULL
    case 'number':
      return NUMBER | NULL
    case 'boolean':
      return BOOLEAN | NULL
    case 'null':
      return NULL
    case 'any':
      return ANY
  }
}

export function kindOf(kinds: Kinds): Kind {
  switch (kinds & ~NULL) {
    case TEXT:
      return 'string'
    case NUMBER:
      return 'number'
    case BOOLEAN:
      return 'boolean'
    case 0:
      return 'null'
    default:
      return 'any'
  }
}

function kindsOfValue(value: Value): Kinds {
  if (value === null) return NULL
  return typeof value === 'string' ? TEXT : typeof value === 'number' ? NUMBER : BOOLEAN
}
