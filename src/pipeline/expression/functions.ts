import type { Place } from './ast.ts'
import { warnOfConstant, warnOfNoNumber, warnOfNoTime } from './checks.ts'
import {
  BOOLEAN,
  type Code,
  folded,
  isOnly,
  mayBe,
  NULL,
  NUMBER,
  numberCode,
  TEXT,
  textCode,
  truthCode,
  valueCode,
} from './code.ts'
import { formatBytes, roundDecimal } from './decimal.ts'
import type { Problems } from './problems.ts'
import { joined, type Run, spend } from './run.ts'
import { codePoints, countCodePoints, includes, lower, upper } from './text.ts'
import { formatTime, parseTime } from './time.ts'
import type { FunctionDescription, Value } from './types.ts'

/** An argument with its place. */
export interface Argument extends Place {
  readonly code: Code
}

interface Definition extends FunctionDescription {
  readonly least: number
  readonly most: number
  /** it is not computed before it runs */
  readonly readsClock?: true
  /** `args` are as many as it takes */
  readonly make: (args: readonly [Argument, ...Argument[]], problems: Problems) => Code
}

const numberResult = (args: readonly Argument[]) =>
  args.every(({ code }) => isOnly(code, NUMBER | BOOLEAN | NULL)) ? NUMBER : NUMBER | NULL

/** A function of one number. */
function ofNumber(compute: (x: number) => number): Definition['make'] {
  return ([x], problems) => {
    warnOfNoNumber(x, problems)
    const { number } = x.code
    return numberCode((run) => compute(number(run)), numberResult([x]))
  }
}

/** A function of two numbers. */
function ofNumbers(compute: (a: number, b: number) => number): Definition['make'] {
  return ([a, b = a], problems) => {
    for (const argument of [a, b]) warnOfNoNumber(argument, problems)
    const [left, right] = [a.code.number, b.code.number]
    return numberCode((run) => compute(left(run), right(run)), numberResult([a, b]))
  }
}

/** A question about two texts. */
function ofTexts(ask: (text: string, part: string, run: Run) => boolean): Definition['make'] {
  return ([a, b = a]) => {
    const [left, right] = [a.code.text, b.code.text]
    return truthCode((run) => ask(left(run), right(run), run))
  }
}

const definitions: readonly Definition[] = [
  {
    name: 'abs',
    signature: 'abs(x)',
    description: 'The number without its sign.',
    example: { text: 'abs(-2.5)', result: 2.5 },
    least: 1,
    most: 1,
    make: ofNumber(Math.abs),
  },
  {
    name: 'age',
    signature: 'age(time)',
    description:
      'Seconds, with a fraction, since an RFC 3339 time; negative for times to come, null for any other text.',
    example: { text: 'age("2025-12-31T23:00:00Z")', result: 3600 },
    least: 1,
    most: 1,
    readsClock: true,
    make: ([time], problems) => {
      warnOfNoTime(time, problems)
      const { text } = time.code
      return numberCode((run) => (run.now - parseTime(text(run))) / 1000)
    },
  },
  {
    name: 'ceil',
    signature: 'ceil(x)',
    description: 'The least whole number that is not below x.',
    example: { text: 'ceil(2.1)', result: 3 },
    least: 1,
    most: 1,
    make: ofNumber(Math.ceil),
  },
  {
    name: 'coalesce',
    signature: 'coalesce(a, …)',
    description: 'The first value that is not null; null where all are.',
    example: { text: 'coalesce(null, 0, 5)', result: 0 },
    least: 1,
    most: Number.POSITIVE_INFINITY,
    make: (args) => firstOf(args.map(({ code }) => code)),
  },
  {
    name: 'concat',
    signature: 'concat(a, …)',
    description: 'The texts of all values, joined; null is empty.',
    example: { text: 'concat("disk-", 1, null)', result: 'disk-1' },
    least: 1,
    most: Number.POSITIVE_INFINITY,
    make: (args) => {
      const texts = args.map(({ code }) => code.text)
      return textCode((run) => texts.reduce((all, text) => joined(all, text(run), run), ''))
    },
  },
  {
    name: 'contains',
    signature: 'contains(text, part)',
    description: 'Whether part is in the text; the empty part is in all.',
    example: { text: 'contains("kube-system", "sys")', result: true },
    least: 2,
    most: 2,
    make: ofTexts(includes),
  },
  {
    name: 'endsWith',
    signature: 'endsWith(text, end)',
    description: 'Whether the text ends so.',
    example: { text: 'endsWith("kube-system", "system")', result: true },
    least: 2,
    most: 2,
    make: ofTexts((text, end, run) => spend(run, end.length * 4) && text.endsWith(end)),
  },
  {
    name: 'floor',
    signature: 'floor(x)',
    description: 'The greatest whole number that is not above x.',
    example: { text: 'floor(-2.1)', result: -3 },
    least: 1,
    most: 1,
    make: ofNumber(Math.floor),
  },
  {
    name: 'formatBytes',
    signature: 'formatBytes(bytes)',
    description: 'Bytes as people read them: steps of 1024 up to Pi, two decimals.',
    example: { text: 'formatBytes(1536)', result: '1.50Ki' },
    least: 1,
    most: 1,
    make: ([bytes], problems) => {
      warnOfNoNumber(bytes, problems)
      const { number } = bytes.code
      const kinds = numberResult([bytes]) === NUMBER ? TEXT : TEXT | NULL
      return valueCode(kinds, (run) => bytesText(number(run), run))
    },
  },
  {
    name: 'if',
    signature: 'if(condition, then, else)',
    description: 'The second value where the first is true, else the third. Only the one that is given is computed.',
    example: { text: 'if(3 > 2, "more", "less")', result: 'more' },
    least: 3,
    most: 3,
    make: ([condition, yes = condition, no = condition], problems) => {
      warnOfConstant(condition, problems)
      return choice(condition.code, yes.code, no.code)
    },
  },
  {
    name: 'len',
    signature: 'len(text)',
    description: 'How many characters (Unicode code points) the text has.',
    example: { text: 'len("Zürich")', result: 6 },
    least: 1,
    most: 1,
    make: ([{ code }]) => {
      return numberCode((run) => {
        const text = code.text(run)
        return spend(run, text.length * 4) ? countCodePoints(text) : 0
      }, NUMBER)
    },
  },
  {
    name: 'lower',
    signature: 'lower(text)',
    description: 'The text in lower case, character by character, the same in every language.',
    example: { text: 'lower("Ready")', result: 'ready' },
    least: 1,
    most: 1,
    make: ([{ code }]) => textCode((run) => lower(code.text(run), run)),
  },
  {
    name: 'max',
    signature: 'max(a, b)',
    description: 'The greater of two numbers; null counts as 0.',
    example: { text: 'max(2, 7)', result: 7 },
    least: 2,
    most: 2,
    make: ofNumbers(Math.max),
  },
  {
    name: 'min',
    signature: 'min(a, b)',
    description: 'The lesser of two numbers; null counts as 0.',
    example: { text: 'min(2, 7)', result: 2 },
    least: 2,
    most: 2,
    make: ofNumbers(Math.min),
  },
  {
    name: 'now',
    signature: 'now()',
    description: 'The time of the evaluation: RFC 3339, UTC, whole seconds.',
    example: { text: 'now()', result: '2026-01-01T00:00:00Z' },
    least: 0,
    most: 0,
    readsClock: true,
    make: () => valueCode(TEXT | NULL, (run) => formatTime(run.now) ?? null),
  },
  {
    name: 'round',
    signature: 'round(x [, decimals])',
    description: 'Rounded half away from zero, by its decimal digits; negative decimals are places before the point.',
    example: { text: 'round(1.005, 2)', result: 1.01 },
    least: 1,
    most: 2,
    make: ([x, decimals], problems) => {
      for (const argument of decimals ? [x, decimals] : [x]) warnOfNoNumber(argument, problems)
      const { number } = x.code
      if (!decimals) return numberCode((run) => roundDecimal(number(run), 0), numberResult([x]))
      const places = decimals.code.number
      return numberCode((run) => roundDecimal(number(run), Math.trunc(places(run))))
    },
  },
  {
    name: 'startsWith',
    signature: 'startsWith(text, begin)',
    description: 'Whether the text begins so.',
    example: { text: 'startsWith("kube-system", "kube-")', result: true },
    least: 2,
    most: 2,
    make: ofTexts((text, begin, run) => spend(run, begin.length * 4) && text.startsWith(begin)),
  },
  {
    name: 'substr',
    signature: 'substr(text, start [, length])',
    description:
      'Characters (Unicode code points) from start on, counted from 0; empty where start is outside of the text.',
    example: { text: 'substr("v1.30.2", 1, 4)', result: '1.30' },
    least: 2,
    most: 3,
    make: ([text, start = text, length], problems) => {
      for (const argument of length ? [start, length] : [start]) warnOfNoNumber(argument, problems)
      const of = text.code.text
      const from = start.code.number
      const count = length?.code.number
      const kinds = numberResult(length ? [start, length] : [start]) === NUMBER ? TEXT : TEXT | NULL
      return valueCode(kinds, (run) => {
        const whole = of(run)
        const first = Math.trunc(from(run))
        const many = count && Math.trunc(count(run))
        if (Number.isNaN(first) || Number.isNaN(many)) return null
        return spend(run, whole.length * 2) ? codePoints(whole, first, many) : ''
      })
    },
  },
  {
    name: 'toNumber',
    signature: 'toNumber(value)',
    description:
      'The number of a decimal text, of null (0) and of booleans (1 and 0); null for any other text, also for quantities.',
    example: { text: 'toNumber("12.5")', result: 12.5 },
    least: 1,
    most: 1,
    make: ofNumber((x) => x),
  },
  {
    name: 'toString',
    signature: 'toString(value)',
    description: 'The value as text; numbers in plain decimal, null is empty.',
    example: { text: 'toString(0.5)', result: '0.5' },
    least: 1,
    most: 1,
    make: ([{ code }]) => textCode(code.text),
  },
  {
    name: 'upper',
    signature: 'upper(text)',
    description: 'The text in upper case, character by character, the same in every language: ß stays.',
    example: { text: 'upper("ready")', result: 'READY' },
    least: 1,
    most: 1,
    make: ([{ code }]) => textCode((run) => upper(code.text(run), run)),
  },
]

/** By name. */
export const definitionOf: ReadonlyMap<string, Definition> = new Map(definitions.map((one) => [one.name, one]))

/** All functions there are, by name. Examples are computed at 2026-01-01T00:00:00Z. */
export const functions: readonly FunctionDescription[] = definitions.map(({ name, signature, description, example }) =>
  Object.freeze({ name, signature, description, example }),
)

/** Beyond 10^21 the digits are worked out one by one. */
const MANY_DIGITS = 1e21

function bytesText(bytes: number, run: Run): Value {
  if (!Number.isFinite(bytes)) return null
  return Math.abs(bytes) < MANY_DIGITS || spend(run, 4096) ? formatBytes(bytes) : ''
}

/** The first that is not null; what stands behind one that never is counts for nothing. */
export function firstOf(codes: readonly Code[]): Code {
  const never = codes.findIndex((code) => !mayBe(code, NULL))
  const used = never < 0 ? codes : codes.slice(0, never + 1)
  const all = used.reduce((kinds, code) => kinds | code.kinds, 0)
  const values = used.map((code) => code.value)
  const code = valueCode(never < 0 ? all : all & ~NULL, (run) => {
    for (const value of values) {
      const found = value(run)
      if (found !== null) return found
    }
    return null
  })
  return folded(code, used)
}

function choice(condition: Code, yes: Code, no: Code): Code {
  if (condition.constant !== undefined) return condition.truth({ slots: [], now: 0, left: 0 }) ? yes : no
  const { truth } = condition
  return {
    kinds: yes.kinds | no.kinds,
    constant: undefined,
    value: (run) => (truth(run) ? yes.value(run) : no.value(run)),
    number: (run) => (truth(run) ? yes.number(run) : no.number(run)),
    text: (run) => (truth(run) ? yes.text(run) : no.text(run)),
    truth: (run) => (truth(run) ? yes.truth(run) : no.truth(run)),
  }
}
