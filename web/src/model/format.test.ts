import { describe, expect, it } from 'vitest'
import { formatAmount, formatBytes, formatMoment, formatPercent, formatSpan } from './format.ts'

describe('format', () => {
  it.each([
    [0, '0 B'],
    [512, '512 B'],
    [0.2, '<1 B'],
    [1024, '1 Ki'],
    [1536, '1.5 Ki'],
    [2 ** 20, '1 Mi'],
    [62 * 2 ** 30, '62 Gi'],
    [2 ** 40 * 1.756, '1.76 Ti'],
    [2 ** 20 - 1, '1 Mi'],
  ])('writes %d bytes as %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))
  it.each([
    [0, '0 s'],
    [999, '0 s'],
    [-5000, '0 s'],
    [59_999, '59 s'],
    [119_000, '119 s'],
    [120_000, '2 min'],
    [7_199_000, '119 min'],
    [7_200_000, '2 h'],
    [172_800_000, '2 d'],
  ])('writes a span of %d ms as %s', (ms, text) => expect(formatSpan(ms)).toBe(text))
  it.each([
    [0, '0 %'],
    [0.004, '<1 %'],
    [0.42, '42 %'],
    [0.999, '>99 %'],
    [1, '100 %'],
    [1.08, '108 %'],
  ])('writes a ratio of %d as %s', (ratio, text) => expect(formatPercent(ratio)).toBe(text))
  it.each([
    [0.25, '0.25'],
    [0, '0'],
    [0.0025, '<0.01'],
    [-0.0025, '>-0.01'],
    [0.005, '0.01'],
    [13.94, '13.9'],
    [130.2, '130'],
  ])('writes %d with the digits that matter', (value, text) => expect(formatAmount(value)).toBe(text))
  it('says the moment in UTC as well, and does not fail on what is no date', () => {
    expect(formatMoment(Date.UTC(2026, 2, 1, 12, 30, 5))).toContain('2026-03-01 12:30:05 UTC')
    expect(formatMoment(Number.NaN)).toBe('no date')
  })
})
