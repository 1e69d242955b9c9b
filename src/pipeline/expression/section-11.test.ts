import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { compileExpression } from './compile.ts'
import type { Kind, Value } from './types.ts'

/** Every rule of the language, by the numbers of its specification; what differs from the original on purpose has its COL-Q. */
const NOW = Date.UTC(2026, 0, 1)
const NAMES: readonly { readonly name: string; readonly kind: Kind; readonly value: Value }[] = [
  { name: 'used', kind: 'number', value: 30 },
  { name: 'capacity', kind: 'number', value: 90 },
  { name: 'zero', kind: 'number', value: 0 },
  { name: 'huge', kind: 'number', value: 1.7e308 },
  { name: 'name', kind: 'string', value: 'web-0' },
  { name: 'digits', kind: 'string', value: '12.5' },
  { name: 'empty', kind: 'string', value: '' },
  { name: 'ready', kind: 'boolean', value: true },
  { name: 'paused', kind: 'boolean', value: false },
  { name: 'missing', kind: 'any', value: null },
  { name: 'größe', kind: 'any', value: 7 },
  { name: '名前', kind: 'any', value: 'x' },
  { name: '_a1', kind: 'any', value: 1 },
  { name: 'created', kind: 'string', value: '2025-12-31T23:00:00.5Z' },
]
const slots = NAMES.map(({ value }) => value)

const compiled = (text: string) => compileExpression(text, { names: NAMES })
function value(text: string): Value {
  const { expression, problems } = compiled(text)
  if (!expression) throw new Error(`${text}: ${JSON.stringify(problems)}`)
  return expression.evaluate(slots, { now: NOW })
}
/** `code from-to` of each error. */
const errors = (text: string) =>
  compiled(text)
    .problems.filter(({ severity }) => severity === 'error')
    .map(({ code, from, to }) => `${code} ${from}-${to}`)
const warnings = (text: string) =>
  compiled(text)
    .problems.filter(({ severity }) => severity === 'warning')
    .map(({ code, from, to }) => `${code} ${from}-${to}`)

type Rule = readonly [rule: string, text: string, result: Value]
type Fault = readonly [rule: string, text: string, ...problems: readonly string[]]

describe('11.1 tokens', () => {
  it.each<Rule>([
    ['11.1 space, tab, CR and LF separate', ' \t\r\n1\r\n+\t2 ', 3],
    ['11.1 a number is digits', '007', 7],
    ['11.1 a number may have one point', '12.50', 12.5],
    ['11.1 a number may end in its point', '3.', 3],
    ['11.1 a text stands in double quotes', '"a b"', 'a b'],
    ['11.1 a text stands in single quotes', '\'a "b"\'', 'a "b"'],
    ['11.1 a backslash keeps the quote from ending the text', '"a\\"b"', 'a"b'],
    ['11.1 a text may run over lines', '"a\nb"', 'a\nb'],
    ['11.1 an identifier begins with a letter or _', '_a1', 1],
    ['11.1 keywords in any case: true', 'TRUE', true],
    ['11.1 keywords in any case: false', 'False', false],
    ['11.1 keywords in any case: null', 'nUlL', null],
    ['11.1 keywords in any case: nil', 'NIL', null],
    ['11.1 operators need no space', '1+2*3==7&&!false', true],
    ['COL-Q42 \\\\ is a backslash', '"a\\\\b"', 'a\\b'],
    ['COL-Q42 \\" is a double quote', '"\\""', '"'],
    ["COL-Q42 \\' is a single quote", "'\\''", "'"],
    ['COL-Q42 \\n is a new line', '"\\n"', '\n'],
    ['COL-Q42 \\t is a tab', '"\\t"', '\t'],
    ['COL-Q42 \\u is a code unit', '"\\u00e9"', 'é'],
    ['COL-Q42 two \\u are one character beyond the first plane', '"\\uD83D\\uDE00"', '😀'],
    ['COL-Q42 any other escape keeps its backslash', '"\\d+"', '\\d+'],
    ['COL-Q45 identifiers are of letters of any script', 'größe + 1', 8],
    ['COL-Q45 identifiers may have no ASCII at all', '名前', 'x'],
  ])('%s: %j gives %j', (_, text, result) => expect(value(text)).toBe(result))

  it.each<Fault>([
    ['11.1 1.2.3 is one token and no number', '1.2.3', 'bad_number 0-5'],
    ['11.1 a number beyond all numbers is none', '9'.repeat(400), 'bad_number 0-400'],
    ['11.1 a number has no leading point', '.5', 'unknown_character 0-1'],
    ['11.1 a number has no exponent', '1e3', 'trailing_text 1-3'],
    ['COL-Q41 = is no operator', 'used = 1', 'unknown_character 5-6'],
    ['COL-Q41 & is no operator', 'used & 1', 'unknown_character 5-6'],
    ['COL-Q41 | is no operator', 'used | 1', 'unknown_character 5-6'],
    ['COL-Q41 ? : is no operator', 'used ? 1 : 2', 'unknown_character 5-6', 'unknown_character 9-10'],
    ['COL-Q41 names have no parts', 'used.a', 'unknown_character 4-5'],
    ['COL-Q41 @ means nothing', 'used @', 'unknown_character 5-6'],
    ['COL-Q41 [ ] mean nothing', 'used[0]', 'unknown_character 4-5', 'unknown_character 6-7'],
    ['COL-Q41 NUL does not end the expression', 'used\0', 'unknown_character 4-5'],
    ['COL-Q41 other spaces are no separators', 'used\u00a0+ 1', 'unknown_character 4-5'],
    ['COL-Q41 characters of two units are one', '1 + 😀', 'unknown_character 4-6'],
    ['COL-Q42 \\u takes four digits', '"\\u12"', 'bad_escape 1-3'],
    ['COL-Q42 half a character is none', '"\\ud83d"', 'bad_escape 1-7'],
    ['COL-Q42 halves in the wrong order are none', '"\\ude00\\ud83d"', 'bad_escape 1-7', 'bad_escape 7-13'],
    ['COL-Q43 a text must end', 'used + "abc', 'unterminated_text 7-11'],
    ['COL-Q43 an escaped quote does not end it', '"abc\\"', 'unterminated_text 0-6'],
    ['COL-Q46 a lone backslash at the end is an error, no crash', '"abc\\', 'unterminated_text 0-5'],
  ])('%s', (_, text, ...problems) => expect(errors(text)).toEqual(problems))

  it('COL-Q42 an unknown escape is pointed out', () => expect(warnings('"a\\d"')).toEqual(['unknown_escape 2-4']))
})

describe('11.2 grammar', () => {
  it.each<Rule>([
    ['11.2 `??` binds least', 'missing ?? false || true', true],
    ['11.2 `??` is weaker than ||', 'false || missing ?? 5', false],
    ['11.2 || is weaker than &&', 'true || false && false', true],
    ['11.2 && is weaker than ==', 'false == false && true', true],
    ['11.2 == is weaker than <', 'true == 1 < 2', true],
    ['11.2 < is weaker than +', '1 + 1 < 3', true],
    ['11.2 + is weaker than *', '1 + 2 * 3', 7],
    ['11.2 * is weaker than unary', '-2 * -3', 6],
    ['11.2 ! binds tighter than ==', '!true == false', true],
    ['11.2 unary is weaker than a call', '-abs(-2)', -2],
    ['11.2 brackets first', '(1 + 2) * 3', 9],
    ['11.2 - is left-associative', '10 - 3 - 2', 5],
    ['11.2 / is left-associative', '64 / 4 / 2', 8],
    ['11.2 % and * are of one level', '10 % 4 * 3', 6],
    ['11.2 < is left-associative', '3 > 2 > 1', false],
    ['11.2 == is left-associative', '2 == 2 == true', true],
    ['11.2 == and != are of one level', '1 != 2 == true', true],
    ['11.2 `??` is left-associative', 'missing ?? null ?? 3', 3],
    ['11.2 unary operators stack', '!!1', true],
    ['11.2 minus may follow minus', '1 - -1', 2],
    ['11.2 a call may have space before its bracket', 'max (1, 2)', 2],
    ['11.2 a call takes whole expressions', 'max(1 + 1, 2 * (3))', 6],
    ['11.2 long chains are no deep trees', Array(3000).fill('1').join(' + '), 3000],
    ['11.2 64 brackets are not too deep', `${'('.repeat(64)}1${')'.repeat(64)}`, 1],
  ])('%s', (_, text, result) => expect(value(text)).toBe(result))

  it.each<Fault>([
    ['11.2 an empty text is no expression', '', 'empty_expression 0-0'],
    ['11.2 spaces are no expression', '  ', 'empty_expression 2-2'],
    ['11.2 an operator needs a right side', 'used +', 'unexpected_end 6-6'],
    ['11.2 an operator needs a left side', '* used', 'unexpected_token 0-1'],
    ['11.2 brackets need content', '()', 'unexpected_token 1-2'],
    ['11.2 a bracket must be closed', '(used', 'missing_bracket 0-1'],
    ['11.2 the bracket of a call must be closed', 'max(1, 2', 'missing_bracket 3-4'],
    ['11.2 a bracket must be opened', 'used)', 'unexpected_token 4-5'],
    ['11.2 arguments are not left out', 'max(, 2)', 'unexpected_token 4-5'],
    ['11.2 no comma behind the last argument', 'max(1, 2,)', 'unexpected_token 9-10'],
    ['11.2 a comma belongs into a call', '1, 2', 'trailing_text 1-2'],
    ['COL-Q41 what follows is not ignored: a b', 'used capacity', 'trailing_text 5-13'],
    ['COL-Q41 what follows is not ignored: 1 + 2 3', '1 + 2 3', 'trailing_text 6-7'],
    ['COL-Q41 ! does not stand between', 'used ! 1', 'trailing_text 5-6'],
    ['COL-Q44 a number is not called', '5 (3)', 'not_callable 0-3'],
    ['COL-Q44 a text is not called', '"a"(3)', 'not_callable 0-4'],
    ['COL-Q44 a bracket is not called', '(used)(3)', 'not_callable 0-7'],
    ['COL-Q44 the result of a call is not called', 'now()()', 'not_callable 0-6'],
    ['COL-Q44 a keyword is not called', 'true(1)', 'not_callable 0-5'],
    ['11.2 65 brackets are too deep', `${'('.repeat(65)}1${')'.repeat(65)}`, 'too_deep 65-66'],
    ['11.2 65 signs are too deep', `${'-'.repeat(65)}1`, 'too_deep 65-66'],
  ])('%s', (_, text, ...problems) => expect(errors(text)).toEqual(problems))

  it('11.2 references are all identifiers that are no call names, once each, in order', () => {
    const { expression } = compiled('max(capacity, used) + used + len(name)')
    expect(expression?.references).toEqual(['capacity', 'used', 'name'])
  })

  it('11.2 a name that is not declared is an error with its place and what was meant', () =>
    expect(compiled('1 + capacty').problems).toMatchObject([
      { severity: 'error', code: 'unknown_name', from: 4, to: 11, suggestion: 'capacity' },
    ]))

  it('11.2 a function without its brackets is no name', () =>
    expect(compiled('now').problems).toMatchObject([{ code: 'unknown_name', suggestion: 'now()' }]))

  it('11.2 10 000 brackets are refused quickly, and do not overflow the stack', () => {
    for (const text of ['('.repeat(10_000), '-'.repeat(10_000), 'abs('.repeat(4000), '!('.repeat(8000)]) {
      const begin = process.cpuUsage()
      expect(errors(text)).toHaveLength(1)
      expect(cpuMs(begin)).toBeLessThan(500)
    }
  })

  it('11.2 a text beyond the limit is refused unread', () => {
    expect(compileExpression('1'.repeat(16_385), { names: [] }).problems).toMatchObject([
      { code: 'too_long', from: 16_384 },
    ])
    expect(compileExpression('1 + 1', { names: [], maxLength: 4 }).problems).toMatchObject([{ code: 'too_long' }])
    expect(compileExpression('1 +1', { names: [], maxLength: 4 }).expression?.evaluate([], { now: 0 })).toBe(2)
  })

  it('names at most twenty problems', () => expect(compiled('@ '.repeat(5000)).problems).toHaveLength(20))
})

describe('11.3 values', () => {
  it.each<Rule>([
    ['11.3 number of null is 0', 'missing + 5', 5],
    ['11.3 number of true is 1', 'ready + 1', 2],
    ['11.3 number of false is 0', 'paused + 1', 1],
    ['COL-Q47 number of a decimal text is its number', 'digits * 2', 25],
    ['COL-Q47 with a sign', '"-3" * 2', -6],
    ['COL-Q47 with an exponent', '"1e3" * 1', 1000],
    ['COL-Q47 number of any other text: null comes out', 'name * 2', null],
    ['COL-Q47 the empty text is no number', 'empty * 2', null],
    ['COL-Q47 spaces are no part of a number', 'concat(" ", digits) - 1', null],
    ['COL-Q47 neither is Infinity', 'concat("Infinity", empty) - 1', null],
    ['COL-Q47 nor 0x10', 'concat("0x10", empty) - 1', null],
    ['COL-Q47 null from inside counts as 0 outside', 'name * 2 + 1', 1],
    ['11.3 text of null is empty', 'missing + ""', ''],
    ['11.3 text of a whole number has no fraction', '"" + 9007199254740993', '9007199254740992'],
    ['11.3 text of a fraction is the shortest', '"" + 0.1', '0.1'],
    ['11.3 text of true', '"" + ready', 'true'],
    ['11.3 text of false', '"" + paused', 'false'],
    ['COL-Q50 large fractions are plain', '"" + 1234567.5', '1234567.5'],
    ['COL-Q50 small fractions are plain', '"" + 0.00001', '0.00001'],
    ['COL-Q50 smaller fractions too', '"" + 0.00000012', '0.00000012'],
    ['COL-Q50 down to 21 places', '"" + 0.000000000000000000001', '0.000000000000000000001'],
    ['COL-Q50 and not below', '"" + 0.0000000000000000000001', '1e-22'],
    ['COL-Q50 whole numbers up to 21 digits', '"" + 123456789012345680000', '123456789012345680000'],
    ['COL-Q50 and not above', '"" + 1000000000000000000000', '1e+21'],
    ['11.3 truth of null is false', '!missing', true],
    ['11.3 truth of 0 is false', '!zero', true],
    ['11.3 truth of other numbers is true', '!!used', true],
    ['11.3 truth of the empty text is false', '!empty', true],
    ['11.3 truth of a text is true', '!!name', true],
    ['11.3 truth of "false" is true', '!!concat("fal", "se")', true],
    ['COL-Q49 an overflow is null', 'huge * 10', null],
    ['COL-Q49 no infinity inside either: it counts as null', 'huge * 10 + 1', 1],
    ['COL-Q49 nor in a comparison', 'huge * 10 > huge', false],
    ['no negative zero', 'zero * -1', 0],
  ])('%s', (_, text, result) => expect(value(text)).toBe(result))
})

describe('11.4 operators', () => {
  it.each<Rule>([
    ['11.4 `a && b` is a boolean', 'used && name', true],
    ['11.4 `a && b` is false where one is', 'used && zero', false],
    ['11.4 `a || b` is a boolean', 'zero || name', true],
    ['11.4 `a || b` is false where both are', 'zero || empty', false],
    ['11.4 `a ?? b` is a where it is not null', 'zero ?? 5', 0],
    ['11.4 `a ?? b` is b where a is null', 'missing ?? 5', 5],
    ['11.4 `a ?? b` takes the empty text as it is', 'empty ?? "x"', ''],
    ['11.4 `a ?? b` replaces a null that was computed', 'used / zero ?? -1', -1],
    ['11.4 `!a`', '!ready', false],
    ['11.4 `-a`', '-used', -30],
    ['11.4 `-null` is 0', '-missing', 0],
    ['11.4 `-a` of a text that is no number is null', '-name', null],
    ['11.4 `a + b` adds numbers', 'used + capacity', 120],
    ['11.4 `a + b` joins where the left is text', 'name + 1', 'web-01'],
    ['11.4 `a + b` joins where the right is text', '1 + name', '1web-0'],
    ['11.4 `a + b` joins texts of digits too', 'digits + 1', '12.51'],
    ['11.4 `a + b` of nulls is 0', 'missing + null', 0],
    ['11.4 `a + b` from the left', '1 + 2 + "a" + 1 + 2', '3a12'],
    ['11.4 `a - b`', 'capacity - used', 60],
    ['11.4 `a * b`', 'used * 0.5', 15],
    ['11.4 `a / b`', 'used / capacity', 30 / 90],
    ['11.4 `a / b` is null where b is 0', 'used / zero', null],
    ['11.4 `a / b` is null where b is null', 'used / missing', null],
    ['11.4 `a / b` is null for 0 / 0', 'zero / zero', null],
    ['11.4 `a % b` has the sign of a', '-7 % 3', -1],
    ['11.4 `a % b` whatever the sign of b', '7 % -3', 1],
    ['11.4 `a % b` of fractions', '5.5 % 2', 1.5],
    ['COL-Q49 `a % b` is null where b is 0', 'used % zero', null],
    ['11.4 `a < b` of numbers', 'used < capacity', true],
    ['11.4 `a <= b` of equal numbers', 'used <= 30', true],
    ['11.4 `a > b`', 'used > 30', false],
    ['11.4 `a >= b`', 'used >= 30', true],
    ['11.4 `a < b` counts null as 0', 'missing < used', true],
    ['11.4 `a >= b` counts null as 0', 'missing >= 0', true],
    ['11.4 `a > b` counts booleans as 1 and 0', 'ready > paused', true],
    ['COL-Q48 texts compare as texts', '"b" > "a" + ""', true],
    ['COL-Q48 texts of digits too', 'digits < "9"', true],
    ['COL-Q48 by code points', '"\\uff5e" < "\\ud83d\\ude00"', true],
    ['COL-Q48 a prefix comes first', 'name < name + "0"', true],
    ['COL-Q48 a decimal text compares with a number as a number', 'digits < 100', true],
    ['COL-Q48 any other text compares with no number: <', 'name < 100', false],
    ['COL-Q48 any other text compares with no number: >=', 'name >= 100', false],
    ['COL-Q48 any other text compares with no null', 'name > missing', false],
    ['COL-Q40 whole numbers are equal', 'used == 30', true],
    ['11.4 null equals null', 'missing == null', true],
    ['11.4 null equals nothing else', 'missing == zero', false],
    ['11.4 null is not the empty text', 'missing == empty', false],
    ['11.4 equal texts', 'name == "web-0"', true],
    ['11.4 texts are not equal by their numbers', 'digits == "12.50"', false],
    ['COL-Q48 a text equals a number of its amount', 'digits == 12.5', true],
    ['COL-Q48 from both sides', '12.5 == digits', true],
    ['COL-Q48 a text that is no number equals none', 'zero == name', false],
    ['11.4 a number equals a boolean of its amount', '1 == ready', true],
    ['COL-Q48 from both sides, and no other', '2 == ready || ready == 2', false],
    ['11.4 a text equals the boolean it names', 'concat("tr", "ue") == ready', true],
    ['COL-Q48 from both sides, and no other text', 'ready == name', false],
    ['11.4 `a != b` is not ==', 'missing != zero', true],
    ['11.4 `a != b` of equals', 'used != 30', false],
  ])('%s', (_, text, result) => expect(value(text)).toBe(result))

  it('11.4 `&&`, `||`, `??`, if and coalesce do not compute what does not count', () => {
    const names = [{ name: 'big', kind: 'string' }] as const
    const big = 'a'.repeat(2 ** 20)
    for (const text of [
      'big == "" && len(big + big) > 0',
      'big != "" || len(big + big) > 0',
      'big ?? big + big',
      'if(big == "", big + big, 1)',
      'coalesce(big, big + big)',
    ]) {
      let exceeded = false
      compileExpression(text, { names }).expression?.evaluate([big], { now: 0, exceeded: () => (exceeded = true) })
      expect(exceeded, text).toBe(false)
    }
  })

  it('COL-Q44 an error inside is an error of the whole, even where it would not be computed', () =>
    expect(errors('true || nosuch(1)')).toEqual(['unknown_function 8-14']))
})

describe('11.6 functions', () => {
  it.each<Rule>([
    ['11.6 concat joins', 'concat("a", 1, true, missing, "b")', 'a1trueb'],
    ['11.6 concat takes one', 'concat(5)', '5'],
    ['11.6 lower', 'lower("ÄB1")', 'äb1'],
    ['11.6 lower maps one to one: Σ does not look around', 'lower("ΑΣ")', 'ασ'],
    ['11.6 lower maps one to one: İ', 'lower("İ")', 'i'],
    ['11.6 upper', 'upper("äb1")', 'ÄB1'],
    ['11.6 upper: ß stays', 'upper("straße")', 'STRAßE'],
    ['11.6 upper: ligatures stay', 'upper("ﬁx")', 'ﬁX'],
    ['11.6 upper beyond the first plane', 'upper("𐐨")', '𐐀'],
    ['11.6 lower of a number is its text', 'lower(1.5)', '1.5'],
    ['11.6 len', 'len(name)', 5],
    ['COL-Q45 len counts code points', 'len("é😀")', 2],
    ['11.6 len of null is 0', 'len(missing)', 0],
    ['11.6 len of a number is that of its text', 'len(100)', 3],
    ['11.6 substr from start', 'substr(name, 1)', 'eb-0'],
    ['11.6 substr with a length', 'substr(name, 1, 2)', 'eb'],
    ['11.6 substr: the end is cut', 'substr(name, 3, 100)', '-0'],
    ['11.6 substr: start below 0 is empty', 'substr(name, -1)', ''],
    ['11.6 substr: start at the end is empty', 'substr(name, 5)', ''],
    ['11.6 substr: start beyond the end is empty', 'substr(name, 500, 2)', ''],
    ['11.6 substr: positions are cut to whole numbers', 'substr(name, 1.9, 2.9)', 'eb'],
    ['COL-Q46 substr: a negative length is empty', 'substr(name, 3, -2)', ''],
    ['COL-Q45 substr counts code points', 'substr("a😀é😀b", 1, 3)', '😀é😀'],
    ['11.6 substr: a position that is no number gives null', 'substr(name, name)', null],
    ['11.6 contains', 'contains(name, "b-")', true],
    ['11.6 contains: not', 'contains(name, "B")', false],
    ['11.6 contains the empty text', 'contains(empty, missing)', true],
    ['11.6 startsWith', 'startsWith(name, "web")', true],
    ['11.6 startsWith: longer', 'startsWith("a", "ab")', false],
    ['11.6 endsWith', 'endsWith(name, "-0")', true],
    ['11.6 endsWith of numbers', 'endsWith(105, 5)', true],
    ['11.6 round', 'round(2.4)', 2],
    ['11.6 round: half away from zero', 'round(2.5)', 3],
    ['11.6 round: half away from zero, below', 'round(-2.5)', -3],
    ['11.6 round: at decimals', 'round(33.3333, 2)', 33.33],
    ['11.6 round: by decimal digits', 'round(1.005, 2)', 1.01],
    ['11.6 round: by decimal digits, below', 'round(-1.005, 2)', -1.01],
    ['11.6 round: 0.285', 'round(0.285, 2)', 0.29],
    ['11.6 round: decimals are cut to whole', 'round(1.26, 1.9)', 1.3],
    ['11.6 round: negative decimals', 'round(1250, -2)', 1300],
    ['11.6 round: to nothing', 'round(49, -2)', 0],
    ['11.6 round: more decimals than there are', 'round(0.1, 300)', 0.1],
    ['11.6 round: null decimals are 0', 'round(2.5, missing)', 3],
    ['11.6 round of null is 0', 'round(missing)', 0],
    ['11.6 round: never beyond all numbers', 'round(huge, -308)', null],
    ['11.6 floor', 'floor(-1.5)', -2],
    ['11.6 ceil', 'ceil(-1.5)', -1],
    ['11.6 abs', 'abs(-1.5)', 1.5],
    ['11.6 abs of null is 0', 'abs(missing)', 0],
    ['11.6 abs of a decimal text', 'abs("-2")', 2],
    ['11.6 abs of any other text is null', 'abs(name)', null],
    ['11.6 min', 'min(used, capacity)', 30],
    ['11.6 min: null counts 0', 'min(used, missing)', 0],
    ['11.6 max', 'max(used, capacity)', 90],
    ['11.6 max: null counts 0', 'max(-5, missing)', 0],
    ['11.6 coalesce: the first that is not null', 'coalesce(missing, null, zero, 5)', 0],
    ['11.6 coalesce: null where all are', 'coalesce(missing, null)', null],
    ['11.6 now is RFC 3339, UTC, seconds', 'now()', '2026-01-01T00:00:00Z'],
    ['11.6 age in seconds with fraction', 'age(created)', 3599.5],
    ['11.6 age of an offset', 'age("2026-01-01T01:00:00+02:00")', 3600],
    ['11.6 age of what is to come is negative', 'age("2026-01-01T00:00:10Z")', -10],
    ['11.6 age of null is null', 'age(missing)', null],
    ['11.6 age of the empty text is null', 'age(empty)', null],
    ['11.6 age of no time is null', 'age(name)', null],
    ['11.6 age of a day alone is null', 'age(substr(created, 0, 10))', null],
    ['11.6 age of a day that is none is null', 'age(concat("2025-02-29T00:00:00Z", empty))', null],
    ['11.6 age of the 25th hour is null', 'age(concat("2025-02-28T24:00:00Z", empty))', null],
    ['11.6 formatBytes', 'formatBytes(1536)', '1.50Ki'],
    ['11.6 formatBytes of 0', 'formatBytes(0)', '0.00B'],
    ['11.6 formatBytes of null', 'formatBytes(missing)', '0.00B'],
    ['11.6 formatBytes in each unit', 'formatBytes(5 * 1024 * 1024 * 1024)', '5.00Gi'],
    ['11.6 formatBytes: at most Pi', 'formatBytes(1024 * 1024 * 1024 * 1024 * 1024 * 2048)', '2048.00Pi'],
    ['11.6 formatBytes: halves to the even digit', 'formatBytes(1152) + formatBytes(1408)', '1.12Ki1.38Ki'],
    ['COL-Q51 formatBytes: negative by their magnitude', 'formatBytes(-1536)', '-1.50Ki'],
    ['11.6 formatBytes of a text that is no number', 'formatBytes(name)', null],
    ['11.6 toString', 'toString(1.50)', '1.5'],
    ['11.6 toNumber of null is 0', 'toNumber(missing)', 0],
    ['11.6 toNumber of a boolean', 'toNumber(ready)', 1],
    ['COL-Q47 toNumber of decimal text', 'toNumber(digits)', 12.5],
    ['COL-Q47 toNumber of any other text is null', 'toNumber(name)', null],
    ['COL-Q47 toNumber of a quantity is null', 'toNumber(concat("5Gi", empty))', null],
    ['COL-Q44 if: then', 'if(used > 5, "many", 0)', 'many'],
    ['COL-Q44 if: else', 'if(missing, "many", 0)', 0],
    ['COL-Q44 if within if', 'if(used > 50, "a", if(used > 20, "b", "c"))', 'b'],
  ])('%s', (_, text, result) => expect(value(text)).toBe(result))

  it.each<Fault>([
    ['COL-Q44 an unknown function', 'lenn(name)', 'unknown_function 0-4'],
    ['COL-Q44 names are case-sensitive', 'Round(1.5)', 'unknown_function 0-5'],
    ['COL-Q44 too few arguments', 'max(1)', 'wrong_argument_count 0-6'],
    ['COL-Q44 too many arguments', 'len(name, 1)', 'wrong_argument_count 0-12'],
    ['COL-Q44 no arguments where there must be one', 'concat()', 'wrong_argument_count 0-8'],
    ['COL-Q44 arguments where there are none', 'now(1)', 'wrong_argument_count 0-6'],
    ['COL-Q44 if takes three', 'if(ready, 1)', 'wrong_argument_count 0-12'],
    ['COL-Q44 all of them are told', 'foo(bar(1), used)', 'unknown_function 4-7', 'unknown_function 0-3'],
  ])('%s', (_, text, ...problems) => expect(errors(text)).toEqual(problems))

  it('COL-Q44 the function that was meant is suggested', () => {
    expect(compiled('lenn(name)').problems[0]?.suggestion).toBe('len')
    expect(compiled('ROUND(1)').problems[0]?.suggestion).toBe('round')
    expect(compiled('startWith(name, "a")').problems[0]?.suggestion).toBe('startsWith')
    expect(compiled('frobnicate(name)').problems[0]?.suggestion).toBeUndefined()
    expect(compiled('if(1)').problems[0]?.suggestion).toBe('if(condition, then, else)')
  })
})

describe('checks', () => {
  it.each<Fault>([
    ['arithmetic with a text that is no number', '"abc" - used', 'not_a_number 0-5'],
    ['a sign before such a text', '-"abc"', 'not_a_number 1-6'],
    ['a number of such a text', 'round("abc", 2)', 'not_a_number 6-11'],
    ['decimals of such a text', 'round(used, "two")', 'not_a_number 12-17'],
    ['a division by 0', 'used / 0', 'division_by_zero 7-8'],
    ['a division by what is computed to 0', 'used / (1 - 1)', 'division_by_zero 7-14'],
    ['a remainder of null', 'used % null', 'division_by_zero 7-11'],
    ['the age of a number', 'age(used)', 'not_a_time 4-8'],
    ['the age of a text that is no time', 'age("yesterday")', 'not_a_time 4-15'],
    ['0 divided by itself', '0 / 0', 'division_by_zero 4-5'],
  ])('%s can only be null, and is a warning', (_, text, ...problems) => {
    expect(warnings(text)).toEqual(problems)
    expect(compiled(text).expression?.evaluate([], { now: 0 })).toBeNull()
    expect(compiled(`coalesce(${text}, 7)`).expression?.evaluate([], { now: 0 })).toBe(7)
  })

  it.each<Fault>([
    ['a text in the place of a condition', 'ready || "false"', 'constant_condition 9-16'],
    ['a condition that is known', 'if(1 > 2, 1, 2)', 'constant_condition 3-8'],
    ['a number compared with a text', 'used == "many"', 'always_different 8-14'],
    ['a boolean compared with a text', 'ready == "True"', 'always_different 9-15'],
    ['an order of a number and a text', 'used < "b"', 'always_different 7-10'],
    ['a replacement of what is never null', 'len(name) ?? 0', 'never_used 13-14'],
  ])('%s is a warning, and compiles', (_, text, ...problems) => {
    expect(warnings(text)).toEqual(problems)
    expect(compiled(text).expression).toBeDefined()
  })

  it.each([
    'used == "30"',
    'ready == "true"',
    'missing == "x"',
    'name == "x"',
    'digits * 2',
    'round((used / capacity) * 100, 2)',
    'if(ready, name, "-")',
    'name ?? "-"',
    'used / capacity ?? 0',
    'age(created) / 3600 > 24',
  ])('%j is in order', (text) => expect(compiled(text).problems).toEqual([]))

  it.each<readonly [string, Kind]>([
    ['used', 'number'],
    ['used + 1', 'number'],
    ['name + "-"', 'string'],
    ['name + 1', 'any'],
    ['used > 1', 'boolean'],
    ['ready && name', 'boolean'],
    ['if(ready, 1, "a")', 'any'],
    ['if(ready, 1, null)', 'number'],
    ['name ?? "-"', 'string'],
    ['null', 'null'],
    ['missing', 'any'],
    ['1 + 1', 'number'],
    ['formatBytes(used)', 'string'],
  ])('%s is of kind %s', (text, kind) => expect(compiled(text).expression?.kind).toBe(kind))

  it('knows who reads the clock', () => {
    expect(compiled('age(created) > 5').expression?.isTimeDependent).toBe(true)
    expect(compiled('now()').expression?.isTimeDependent).toBe(true)
    expect(compiled('used').expression?.isTimeDependent).toBe(false)
  })

  it('computes the clock at each evaluation, also without any name', () => {
    const { expression } = compiled('age("2026-01-01T00:00:00Z")')
    expect(expression?.evaluate([], { now: NOW + 1000 })).toBe(1)
    expect(expression?.evaluate([], { now: NOW + 9000 })).toBe(9)
  })

  it('counts a slot that is not there as null, and a number that is not finite too', () => {
    const { expression } = compileExpression('used', { names: [{ name: 'used', kind: 'number' }] })
    expect(expression?.evaluate([], { now: 0 })).toBeNull()
    expect(expression?.evaluate([Number.NaN], { now: 0 })).toBeNull()
    expect(expression?.evaluate([Number.POSITIVE_INFINITY], { now: 0 })).toBeNull()
  })

  it('gives no time of a clock that is out of its mind', () => {
    const { expression } = compileExpression('now()', { names: [] })
    expect(expression?.evaluate([], { now: Number.NaN })).toBeNull()
    expect(expression?.evaluate([], { now: 1e300 })).toBeNull()
  })
})
