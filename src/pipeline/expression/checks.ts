import type { Place } from './ast.ts'
import { BOOLEAN, type Code, isOnly, NULL, NUMBER } from './code.ts'
import { parseDecimal } from './decimal.ts'
import type { Problems } from './problems.ts'
import { parseTime } from './time.ts'

/** A part of an expression with its place, to be judged. */
interface Part extends Place {
  readonly code: Code
}

/** A text that is no number where a number is wanted: nothing but null can come out. */
export function warnOfNoNumber(part: Part, problems: Problems): void {
  const { constant } = part.code
  if (typeof constant !== 'string' || !Number.isNaN(parseDecimal(constant))) return
  problems.warning('not_a_number', part, 'a number is wanted here, and this text is none: the result is always null')
}

/** What can be no time: nothing but null can come out. */
export function warnOfNoTime(part: Part, problems: Problems): void {
  const { code } = part
  const isNone =
    typeof code.constant === 'string' ? Number.isNaN(parseTime(code.constant)) : isOnly(code, NUMBER | BOOLEAN | NULL)
  if (!isNone) return
  const message = 'an RFC 3339 time such as "2026-01-01T00:00:00Z" is wanted here: the result is always null'
  problems.warning('not_a_time', part, message)
}

/** A divisor that is always 0: nothing but null can come out. */
export function warnOfNoDivisor(part: Part, problems: Problems): void {
  const { constant } = part.code
  const isZero =
    constant === null || constant === false || (typeof constant === 'string' ? parseDecimal(constant) : constant) === 0
  if (isZero) problems.warning('division_by_zero', part, 'this is always 0: the result is always null')
}

/** A condition that is decided before anything is read. */
export function warnOfConstant(part: Part, problems: Problems): void {
  const { constant } = part.code
  if (constant === undefined) return
  const isTrue = constant !== null && constant !== false && constant !== 0 && constant !== ''
  const why = typeof constant === 'string' && isTrue ? ': a text that is not empty counts as true' : ''
  problems.warning('constant_condition', part, `this is always ${isTrue}${why}`)
}

/** Two sides that can never be equal, or never be compared. */
export function warnOfUnlike(operator: string, left: Part, right: Part, problems: Problems): void {
  for (const [text, other] of [
    [left, right.code],
    [right, left.code],
  ] as const) {
    const { constant } = text.code
    if (typeof constant !== 'string' || other.constant !== undefined) continue
    const isEquality = operator === '==' || operator === '!='
    const noNumber =
      isOnly(other, isEquality ? NUMBER : NUMBER | BOOLEAN | NULL) && Number.isNaN(parseDecimal(constant))
    const noNumberOrNull = isOnly(other, NUMBER | NULL) && Number.isNaN(parseDecimal(constant))
    const noTruth = isEquality && isOnly(other, BOOLEAN | NULL) && constant !== 'true' && constant !== 'false'
    if (!noNumber && !noNumberOrNull && !noTruth) continue
    const what = noTruth && isOnly(other, BOOLEAN | NULL) ? 'a boolean' : 'a number'
    problems.warning(
      'always_different',
      text,
      `this text is compared with ${what}: the result is always ${operator === '!='}`,
    )
  }
}

/** A replacement for null behind what never is null. */
export function warnOfUnused(left: Part, right: Place, problems: Problems): void {
  if ((left.code.kinds & NULL) === 0)
    problems.warning('never_used', right, 'the value before ?? is never null: this is never used')
}
