import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalBytes, canonicalCores, parseBytes, parseMillicores, parseQuantity } from './quantity.ts'

describe('parseMillicores', () => {
  it.each([
    ['1n', 1],
    ['523456789n', 524],
    ['500000000n', 500],
    ['0', 0],
    ['250m', 250],
    ['1.5', 1500],
    ['.0005', 1],
    ['2', 2000],
    ['1e3', 1_000_000],
    ['1k', 1_000_000],
    ['1Ki', 1_024_000],
    ['-1n', -1],
    ['-1500m', -1500],
  ])('reads %s as %d, rounded away from zero', (text, amount) => expect(parseMillicores(text)).toBe(amount))

  it.each(['', 'n', '1 m', '12q', '1e99999999', '0.0.1'])('refuses %j', (text) =>
    expect(parseMillicores(text)).toBeUndefined(),
  )

  it('never differs from what nanocores divided by a million and rounded up are', () =>
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 14n }), (nanocores) => {
        expect(parseMillicores(`${nanocores}n`)).toBe(Number((nanocores + 999_999n) / 1_000_000n))
      }),
    ))
})

describe('parseBytes', () => {
  it.each([
    ['1m', 1],
    ['128974848000m', 128_974_848],
    ['0.1Ki', 103],
    ['1536Ki', 1_572_864],
    ['-1500m', -2],
  ])('reads %s as %d, rounded away from zero', (text, bytes) => expect(parseBytes(text)).toBe(bytes))

  it('is never below the amount, and by less than a byte above it', () =>
    fc.assert(
      fc.property(
        fc.nat(1e9),
        fc.nat(999),
        fc.constantFrom('', 'n', 'u', 'm', 'k', 'Ki', 'Mi', 'e3', 'E-2'),
        (whole, fraction, suffix) => {
          const text = `${whole}.${String(fraction).padStart(3, '0')}${suffix}`
          const [amount, bytes] = [parseQuantity(text) as number, parseBytes(text) as number]
          const error = 1e-6 * Math.max(1, amount)
          expect(bytes - amount).toBeGreaterThan(-error)
          expect(bytes - amount).toBeLessThan(1 + error)
        },
      ),
    ))
})

describe('canonical quantities', () => {
  it.each([
    [4, '4'],
    [3.92, '3920m'],
    [0.1, '100m'],
    [0, '0'],
    [1000, '1k'],
    [0.000_000_5, '500n'],
    [0.29, '290m'],
  ])('writes %d cores as %s', (cores, text) => expect(canonicalCores(cores)).toBe(text))

  it.each([
    [33_719_947_264, '32929636Ki'],
    [17_179_869_184, '16Gi'],
    [0, '0'],
    [1000, '1000'],
    [1023.5, '1Ki'],
  ])('writes %d bytes as %s', (bytes, text) => expect(canonicalBytes(bytes)).toBe(text))

  it('are read back as the amounts they were written of', () =>
    fc.assert(
      fc.property(fc.nat({ max: 10_000_000 }), fc.nat(), (millicores, kibibytes) => {
        expect(parseMillicores(canonicalCores(millicores / 1000))).toBe(millicores)
        expect(parseQuantity(canonicalCores(millicores / 1000))).toBeCloseTo(millicores / 1000, 9)
        expect(parseBytes(canonicalBytes(kibibytes * 1024))).toBe(kibibytes * 1024)
      }),
    ))
})
