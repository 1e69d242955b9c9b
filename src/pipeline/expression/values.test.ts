import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decimalText, formatBytes, parseDecimal, roundDecimal } from './decimal.ts'
import { newRun } from './run.ts'
import { numbers } from './testing/arbitrary.ts'
import { rounded } from './testing/reference.ts'
import { codePoints, compareTexts, countCodePoints, includes, lower, upper } from './text.ts'
import { formatTime, parseTime } from './time.ts'
import type { Value } from './types.ts'
import { convertTo, numberOf, textOf } from './values.ts'

describe('11.5 result conversion', () => {
  it.each<readonly [Value, 'string' | 'integer' | 'float' | 'boolean', Value]>([
    [null, 'string', null],
    [null, 'integer', null],
    [null, 'float', null],
    [null, 'boolean', null],
    [1.5, 'string', '1.5'],
    [true, 'string', 'true'],
    ['a', 'string', 'a'],
    [1.9, 'integer', 1],
    [-1.9, 'integer', -1],
    [-0.5, 'integer', 0],
    ['12.9', 'integer', 12],
    ['a', 'integer', null],
    [true, 'integer', 1],
    [1.5, 'float', 1.5],
    ['1e3', 'float', 1000],
    ['', 'float', null],
    ['5Gi', 'float', null],
    [false, 'float', 0],
    [0, 'boolean', false],
    [2, 'boolean', true],
    ['', 'boolean', false],
    ['false', 'boolean', true],
    [true, 'boolean', true],
  ])('11.5 %j as %s is %j', (value, type, result) => expect(convertTo(value, type)).toBe(result))
})

describe('numbers and their texts', () => {
  it('every number is read back from its text', () =>
    fc.assert(
      fc.property(numbers, (x) => {
        expect(numberOf(textOf(x))).toBe(x + 0)
      }),
      { numRuns: 5000 },
    ))

  it('has an exponent only beyond 21 digits', () =>
    fc.assert(
      fc.property(numbers, (x) => {
        const isPlain = x === 0 || (Math.abs(x) >= 1e-21 && Math.abs(x) < 1e21)
        expect(/^-?\d+(\.\d+)?$/.test(decimalText(x))).toBe(isPlain)
      }),
      { numRuns: 5000 },
    ))

  it.each([
    '',
    '-',
    '.',
    '1.2.3',
    '1e',
    '1 ',
    ' 1',
    '+-1',
    '0x1',
    '1_000',
    '1,5',
    'NaN',
    'Infinity',
    '١',
    '5Gi',
    '1e999',
  ])('%j is no number', (text) => expect(numberOf(text)).toBeNull())
  it.each([
    ['1', 1],
    ['+1', 1],
    ['-1.50', -1.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1E3', 1000],
    ['1e-400', 0],
    ['007', 7],
    ['9007199254740993', 9007199254740992],
  ])('%j is %d', (text, number) => expect(numberOf(text)).toBe(number))

  it('a text of more than 1024 characters is none, whatever it says', () => {
    expect(parseDecimal(`0.${'0'.repeat(1022)}`)).toBe(0)
    expect(parseDecimal(`0.${'0'.repeat(1023)}`)).toBeNaN()
  })

  it('formats bytes beyond all units in plain digits', () => {
    expect(formatBytes(1.7e308)).toMatch(/^\d{290,}\.00Pi$/)
    expect(formatBytes(-0.001)).toBe('0.00B')
    expect(formatBytes(Number.POSITIVE_INFINITY)).toBe('')
  })
})

/** A number as a fraction of whole numbers, exactly. */
function exact(x: number): readonly [bigint, bigint] {
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, x)
  const raw = bits.getBigUint64(0)
  const power = Number((raw >> 52n) & 0x7ffn)
  const fraction = raw & 0xfffffffffffffn
  const whole = (power === 0 ? fraction : fraction | (1n << 52n)) * (raw >> 63n ? -1n : 1n)
  const shift = BigInt(Math.max(power, 1) - 1075)
  return shift >= 0n ? [whole << shift, 1n] : [whole, 1n << -shift]
}

const ulp = (x: number) => Math.max(2 ** (Math.floor(Math.log2(Math.abs(x) || 5e-324)) - 52), 5e-324)
const size = (x: bigint) => (x < 0n ? -x : x)

describe('arithmetic against fractions of whole numbers', () => {
  const decimal = fc
    .tuple(fc.maxSafeInteger(), fc.integer({ min: -12, max: 6 }))
    .map(([digits, power]) => Number(`${digits}e${power}`))
  it.each(['+', '-', '*'] as const)('%s is off by at most one unit in the last place', async (operator) => {
    const { compileExpression } = await import('./compile.ts')
    const names = [
      { name: 'a', kind: 'number' },
      { name: 'b', kind: 'number' },
    ] as const
    const { expression } = compileExpression(`a ${operator} b`, { names })
    fc.assert(
      fc.property(decimal, decimal, (a, b) => {
        const [[n, d], [m, e]] = [exact(a), exact(b)]
        const other = operator === '-' ? -m : m
        const [wanted, unit] = operator === '*' ? [n * m, d * e] : [n * e + other * d, d * e]
        const given = expression?.evaluate([a, b], { now: 0 }) as number
        const [p, q] = exact(given)
        const [u, v] = exact(ulp(given))
        expect(size(wanted * q - p * unit) * v <= u * unit * q).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  it('round is exact on decimal digits', () =>
    fc.assert(
      fc.property(fc.oneof(decimal, numbers), fc.integer({ min: -25, max: 25 }), (x, decimals) => {
        const given = roundDecimal(x, decimals)
        expect(Number.isFinite(given) ? given + 0 : null).toBe(rounded(x, decimals))
      }),
      { numRuns: 20_000 },
    ))

  it('round is exact halfway between', () =>
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), fc.integer({ min: -10, max: 14 }), (steps, decimals) => {
        const [half, sign] = [BigInt(Math.abs(steps)) * 10n + 5n, steps < 0 ? '-' : '']
        const x = Number(`${sign}${half}e${-decimals - 1}`)
        expect(roundDecimal(x, decimals)).toBe(Number(`${sign}${BigInt(Math.abs(steps)) + 1n}e${-decimals}`))
      }),
      { numRuns: 10_000 },
    ))

  it.each([
    [1.005, 2, 1.01],
    [2.675, 2, 2.68],
    [1.45, 1, 1.5],
    [8.345, 2, 8.35],
    [0.5, 0, 1],
    [0.49999999999999994, 0, 0],
    [4503599627370495.5, 0, 4503599627370496],
    [5e-324, 323, 1e-323],
    [5e-324, 324, 5e-324],
    [1e300, -300, 1e300],
    [9.5, -1, 10],
    [1.7976931348623157e308, -308, Number.POSITIVE_INFINITY],
  ])('round(%d, %d) is %d', (x, decimals, result) => expect(roundDecimal(x, decimals)).toBe(result))
})

describe('texts', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', 'é', '\uff5e', '😀', '\ud83d', '\ude00', 'Z'),
    maxLength: 12,
  })

  it('count and cut by code points', () =>
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: -2, max: 14 }),
        fc.option(fc.integer({ min: -2, max: 14 }), { nil: undefined }),
        (whole, from, count) => {
          const letters = [...whole]
          expect(countCodePoints(whole)).toBe(letters.length)
          const end = count === undefined ? letters.length : from + Math.max(0, count)
          expect(codePoints(whole, from, count)).toBe(from < 0 ? '' : letters.slice(from, end).join(''))
        },
      ),
    ))

  it('count and cut by code points in long texts too', () =>
    fc.assert(
      fc.property(text, fc.nat(150), fc.nat(150), (part, from, count) => {
        for (const whole of ['abc'.repeat(50), part + 'abc'.repeat(50), 'abc'.repeat(50) + part]) {
          const letters = [...whole]
          expect(countCodePoints(whole)).toBe(letters.length)
          expect(codePoints(whole, from, count)).toBe(letters.slice(from, from + count).join(''))
          expect(codePoints(whole, from, undefined)).toBe(letters.slice(from).join(''))
        }
      }),
    ))

  const wholeText = fc.string({
    unit: fc.constantFrom('a', 'b', 'é', '\uff5e', '\ud7ff', '😀', '𐐨', 'Z'),
    maxLength: 12,
  })

  it('compare as lists of code points', () =>
    fc.assert(
      fc.property(wholeText, wholeText, (a, b) => {
        const [left, right] = [[...a].map((c) => c.codePointAt(0)!), [...b].map((c) => c.codePointAt(0)!)]
        const place = left.findIndex((code, i) => code !== right[i])
        const order = place < 0 ? left.length - right.length : left[place]! - (right[place] ?? -1)
        expect(Math.sign(compareTexts(a, b))).toBe(Math.sign(order))
      }),
    ))

  it('long parts are found where the engine finds them', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3000 }),
        fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 }),
        fc.nat(2000),
        (at, unit, change) => {
          const part = unit.repeat(300)
          const changed = `${part.slice(0, change % part.length)}c${part.slice((change % part.length) + 1)}`
          const whole = unit.repeat(at) + (change % 2 ? part : changed) + unit.repeat(200)
          expect(includes(whole, changed, newRun([], 0))).toBe(whole.indexOf(changed) >= 0)
          expect(includes(whole, part, newRun([], 0))).toBe(whole.indexOf(part) >= 0)
        },
      ),
      { numRuns: 300 },
    ))

  it('letters change one to one, and as Unicode says wherever it says one', () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      const letter = String.fromCodePoint(code)
      const [up, down] = [letter.toUpperCase(), letter.toLowerCase()]
      if (up === letter && down === letter) continue
      const [upped, downed] = [upper(letter, newRun([], 0)), lower(letter, newRun([], 0))]
      if ([...upped].length !== 1 || [...downed].length !== 1) expect.fail(`U+${code.toString(16)} becomes many`)
      if ([...up].length === 1 && upped !== up) expect.fail(`U+${code.toString(16)} is not ${up} but ${upped}`)
      if ([...down].length === 1 && downed !== down) expect.fail(`U+${code.toString(16)} is not ${down} but ${downed}`)
    }
  })

  it('letters change as each on its own, whatever stands beside them', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'ß', 'Σ', 'İ', 'ﬁ', '𐐨', 'É', '\0', 'ᾳ'), maxLength: 20 }),
        (whole) => {
          for (const change of [upper, lower]) {
            expect(change(whole, newRun([], 0))).toBe(
              [...whole].map((letter) => change(letter, newRun([], 0))).join(''),
            )
          }
        },
      ),
    ))
})

describe('times', () => {
  it('are read as they are written', () =>
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1, 0, 1), max: Date.UTC(9999, 11, 31) }), (ms) => {
        expect(parseTime(new Date(ms).toISOString())).toBeCloseTo(ms, 2)
        expect(parseTime(formatTime(ms)!)).toBe(Math.floor(ms / 1000) * 1000)
      }),
    ))

  it.each([
    '',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-13-01T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00,5Z',
    `2026-01-01T00:00:00.${'1'.repeat(60)}Z`,
  ])('%j is no time', (text) => expect(parseTime(text)).toBeNaN())

  it.each([
    ['0001-01-01T00:00:00Z', -62135596800000],
    ['1970-01-01T00:00:00.125Z', 125],
    ['1970-01-01T01:00:00+01:00', 0],
    ['1969-12-31T23:30:00-00:30', 0],
    ['2024-02-29T00:00:00Z', 1709164800000],
  ])('%s is %d', (text, ms) => expect(parseTime(text)).toBe(ms))
})
