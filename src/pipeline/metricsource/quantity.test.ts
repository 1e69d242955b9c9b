import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDecimal } from '#path'
import { cpuMs } from '../../../test/cpu.ts'
import { plainDecimal, readBytes, readCompatibleQuantity, readQuantity, readWhole } from './quantity.ts'

/** An exact fraction, to check what the quick ways make of a quantity. */
function exact(digits: string, tens: number, twos: number): { readonly over: bigint; readonly under: bigint } {
  const [whole = '', fraction = ''] = digits.replace(/^[+-]/, '').split('.')
  const power = tens - fraction.length
  const over = BigInt(`${whole}${fraction}` || '0') * 2n ** BigInt(twos) * (digits.startsWith('-') ? -1n : 1n)
  return power >= 0 ? { over: over * 10n ** BigInt(power), under: 1n } : { over, under: 10n ** BigInt(-power) }
}
const roundedAway = ({ over, under }: ReturnType<typeof exact>): bigint =>
  over >= 0n ? (over + under - 1n) / under : -((-over + under - 1n) / under)

const suffixes: readonly (readonly [suffix: string, tens: number, twos: number])[] = [
  ...(['', 'n', 'u', 'm', 'k', 'M', 'G', 'T'] as const).map(
    (suffix, i) => [suffix, [0, -9, -6, -3, 3, 6, 9, 12][i] ?? 0, 0] as const,
  ),
  ...(['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const).map((suffix, i) => [suffix, 0, 10 * (i + 1)] as const),
  ...[-12, -3, 0, 5].map((power) => [`e${power}`, power, 0] as const),
]
const amounts = fc.record({
  sign: fc.constantFrom('', '+', '-'),
  whole: fc.bigInt(0n, 10n ** 20n).map(String),
  fraction: fc.option(fc.bigInt(0n, 10n ** 12n).map(String), { nil: undefined }),
  suffix: fc.constantFrom(...suffixes),
})

describe('quantities', () => {
  it.each([
    ['0', 0],
    ['-0', 0],
    ['12', 12],
    ['+5', 5],
    ['.5', 0.5],
    ['5.', 5],
    ['500m', 0.5],
    ['1001m', 1.001],
    ['100u', 0.0001],
    ['7n', 7e-9],
    ['1k', 1000],
    ['1Ki', 1024],
    ['2M', 2e6],
    ['1.5Gi', 1610612736],
    ['2E', 2e18],
    ['2Ei', 2 * 2 ** 60],
    ['1e3', 1000],
    ['1E3', 1000],
    ['-2e-2', -0.02],
    ['9007199254740993', 9007199254740992],
    ['9007199254740991', 9007199254740991],
  ])('reads %s in its base unit', (text, amount) => expect(readQuantity(text)).toBe(amount))

  it.each([
    '',
    ' 1',
    '1 ',
    'Gi',
    '1gi',
    '1K',
    '1ki',
    '1 Gi',
    '1e',
    '1e1.5',
    '1.2.3',
    'NaN',
    'Infinity',
    '0x10',
    '1_000',
    '１',
  ])('refuses %j', (text) => {
    expect(readQuantity(text)).toBeUndefined()
    expect(readBytes(text)).toBeUndefined()
    if (!/^ ?1 ?K?$/.test(text)) expect(readCompatibleQuantity(text)).toBeUndefined() // what the original reads
  })

  it.each(['1e400', '-1e400', `${'9'.repeat(400)}`, `1${'0'.repeat(300)}`])(
    'refuses %s, which no number can hold',
    (text) => {
      expect(readQuantity(text)).toBeUndefined()
      expect(readDecimal(text)).toBeUndefined()
    },
  )

  it.each([
    ['500m', 500],
    ['1001m', 1001],
    ['0.5m', 0.5],
    ['0.5', 0.5],
    ['2', 2],
    ['5Gi', 5368709120],
    ['128Mi', 134217728],
    ['1e3', 1000],
  ])('takes %s as %d where manifests of the original expect thousandths', (text, amount) =>
    expect(readCompatibleQuantity(text)).toBe(amount),
  )

  it.each([
    ['1', 1],
    ['500m', 1],
    ['-500m', -1],
    ['0m', 0],
    ['1500m', 2],
    ['0.1Gi', 107374183],
    ['5.0000000000000000001Ki', 5121],
    ['1e-300', 1],
    ['0e-999999999', 0],
    ['1e-999999999', 1],
    ['-.5', -1],
    ['1e3', 1000],
    ['100n', 1],
  ])('rounds %s away from zero to %d whole bytes', (text, bytes) => expect(readBytes(text)).toBe(bytes))

  it('gives the number next to what is written, whatever the suffix', () =>
    fc.assert(
      fc.property(amounts, ({ sign, whole, fraction, suffix: [suffix, tens, twos] }) => {
        const digits = `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}`
        const { over, under } = exact(digits, tens, twos)
        const read = readQuantity(digits + suffix) ?? Number.NaN
        // No number lies between the exact amount and what was read: the distance is at most half a unit in the last place.
        const scaled = BigInt(Math.round(Math.abs(read) >= 2 ** 53 ? 1 : 0)) // where doubles are whole, compare exactly
        if (scaled === 1n) {
          const error = BigInt(read) * under - over
          const unit = BigInt(2 ** Math.max(0, Math.floor(Math.log2(Math.abs(read))) - 52)) * under
          expect((error < 0n ? -error : error) * 2n <= unit).toBe(true)
        } else {
          const near = Number(over) / Number(under)
          expect(Math.abs(read - near)).toBeLessThanOrEqual(Math.abs(near) * 2 ** -50)
        }
      }),
    ))

  it('rounds bytes on the exact amount, up to 2^53 and beyond', () =>
    fc.assert(
      fc.property(amounts, ({ sign, whole, fraction, suffix: [suffix, tens, twos] }) => {
        const digits = `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}`
        expect(readBytes(digits + suffix)).toBe(Number(roundedAway(exact(digits, tens, twos))))
      }),
    ))

  it('loses no byte up to 2^53', () =>
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 53n), (bytes) => {
        expect(readBytes(String(bytes))).toBe(Number(bytes))
        expect(readQuantity(`${bytes / 1000n}.${String(bytes % 1000n).padStart(3, '0')}k`)).toBe(Number(bytes))
      }),
    ))

  it('answers at once whatever the text', () => {
    const since = process.cpuUsage()
    for (const text of [
      '9'.repeat(1_000_000),
      `1${'e9'.repeat(500_000)}`,
      '1e999999999999999999',
      `.${'0'.repeat(1_000_000)}1`,
    ]) {
      for (const read of [readQuantity, readBytes, readDecimal, readWhole, readCompatibleQuantity]) {
        expect(read(text)).toBeUndefined()
      }
    }
    expect(cpuMs(since)).toBeLessThan(1000)
  })
})

describe('numbers', () => {
  it.each([
    ['5', 5],
    ['-5', -5],
    ['+007', 7],
    ['9223372036854775807', 2 ** 63],
  ])('reads the whole number %s', (text, number) => expect(readWhole(text)).toBe(number))
  it.each(['', ' 5', '5.0', '1e3', '0x1', '٣', '--1'])('refuses %j as a whole number', (text) =>
    expect(readWhole(text)).toBeUndefined(),
  )
  it.each(['NaN', 'Inf', '-Inf', 'Infinity', '1e999', '0x1p3', '1_0', '1,5', '.', 'e5'])(
    'refuses %j as a decimal',
    (text) => expect(readDecimal(text)).toBeUndefined(),
  )

  it.each([
    [1e21, '1000000000000000000000'],
    [1.5e300, `15${'0'.repeat(299)}`],
    [1e-7, '0.0000001'],
    [-1.25e-9, '-0.00000000125'],
    [123456.789, '123456.789'],
    [1234567.5, '1234567.5'],
    [0, '0'],
  ])('writes %d without an exponent', (number, text) => expect(plainDecimal(number)).toBe(text))

  it('writes numbers so that they read back equal', () =>
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e200, max: 1e200 }), (number) => {
        const text = plainDecimal(number)
        expect(Number(text)).toBe(number + 0 === 0 ? Number(text) : number)
        expect(text).toMatch(/^-?\d+(\.\d+)?$/)
      }),
    ))
})
