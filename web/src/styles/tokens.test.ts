import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8')
const valuesOf = (token: string) =>
  [...css.matchAll(new RegExp(`--${token}: (#[0-9a-f]{6})`, 'g'))].map(([, hex = '']) => hex)

/** Of WCAG 2.2, from 0 to 1. */
function luminance(hex: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
  const [red = 0, green = 0, blue = 0] = parts.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

describe('the palest ink', () => {
  it('is legible on a number that flashes, in light and in dark', () => {
    const [inks, grounds] = [valuesOf('ink-3'), valuesOf('flash')]
    expect(inks.length).toBeGreaterThan(1)
    expect(grounds).toHaveLength(inks.length)
    for (const [place, ink] of inks.entries()) expect(contrast(ink, grounds[place] ?? ink), ink).toBeGreaterThan(4.5)
  })
})
