import { describe, expect, it } from 'vitest'
import { compileExpression } from './compile.ts'
import { functions } from './functions.ts'
import { problemText } from './problems.ts'
import { NAMES } from './testing/arbitrary.ts'
import { leastMs } from './testing/stopwatch.ts'
import type { Value } from './types.ts'

/** The longest that reading, checking or computing one text may take. */
const LIMIT_MS = 10
/** What takes no longer is not measured again. */
const SHORT_MS = 2
const INPUTS = Number(process.env.EXPRESSION_FUZZ ?? 50_000)
const SEED = Number(process.env.EXPRESSION_SEED ?? 20_260_101)

/** A small generator with a seed: mulberry32. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const WORDS = [
  ...[
    '??',
    '||',
    '&&',
    '==',
    '!=',
    '<',
    '<=',
    '>',
    '>=',
    '+',
    '-',
    '*',
    '/',
    '%',
    '!',
    '(',
    ')',
    '(',
    ')',
    ',',
    ' ',
    '"',
    "'",
    '\\',
  ],
  ...[
    '0',
    '1',
    '12.5',
    '9'.repeat(30),
    '0.000001',
    '1.',
    '1.2.3',
    '1e9',
    'true',
    'null',
    '"5"',
    '"abc"',
    "'\\u00e9'",
    '"\\ud83d',
    '\n',
    '\0',
  ],
  ...['"2026-01-01T00:00:00Z"', '=', '&', '?', ':', '.', '[', '😀', 'ß', '\u00a0', '_', 'nosuch'],
  ...NAMES.map(({ name }) => name),
  ...functions.map(({ name }) => `${name}(`),
]
const SLOTS: readonly (readonly Value[])[] = [
  [30, 90, 'Running', 'ß', true, 'a', null, null],
  [0, -1.5, '', '12.5', false, 1e21, '😀', null],
  [1.7e308, 5e-324, '9'.repeat(500), '2026-01-01T00:00:00Z', null, 0, '"', null],
  [null, null, null, null, null, null, null, null],
]
const LARGE: readonly Value[] = [
  1e6,
  3,
  'aß'.repeat(2 ** 19),
  'a'.repeat(2 ** 20),
  true,
  'b'.repeat(2 ** 20),
  '😀'.repeat(2 ** 18),
  null,
]

function randomText(below: (limit: number) => number): string {
  const length = below(10) === 0 ? below(400) : below(24)
  switch (below(4)) {
    case 0:
      return String.fromCharCode(...Array.from({ length }, () => below(256)))
    case 1:
      return String.fromCharCode(...Array.from({ length }, () => below(0x10000)))
    default:
      return Array.from({ length }, () => WORDS[below(WORDS.length)]).join(below(2) ? ' ' : '')
  }
}

/** Mostly right: operands and operators in turn, all brackets closed. */
function likelyText(below: (limit: number) => number, depth = 0): string {
  const inner = () => likelyText(below, depth + 1)
  const choice = below(depth > 5 ? 3 : 9)
  if (choice < 2) return NAMES[below(NAMES.length)]!.name
  if (choice === 2) return WORDS[24 + below(14)]!
  if (choice < 6) return `${inner()} ${WORDS[below(14)]} ${inner()}`
  if (choice === 6) return `(${inner()})`
  const { name, signature } = functions[below(functions.length)]!
  const most = signature.includes('()') ? 0 : signature.split(',').length
  return `${name}(${Array.from({ length: most }, inner).join(', ')})`
}

describe('random texts', () => {
  it(`of ${INPUTS} none crashes or takes longer than ${LIMIT_MS} ms to compile or to evaluate`, {
    timeout: 3_600_000,
  }, () => {
    const below = random(SEED)
    const worst = { compile: { ms: 0, text: '' }, evaluate: { ms: 0, text: '' } }
    let compiled = 0
    let exceeded = 0
    for (let i = 0; i < INPUTS; i++) {
      const text = i % 2 ? randomText(below) : likelyText(below)
      let result = compileExpression('', { names: NAMES })
      const compileMs = leastMs(() => {
        result = compileExpression(text, { names: NAMES })
      }, SHORT_MS)
      if (compileMs > worst.compile.ms) worst.compile = { ms: compileMs, text }
      for (const problem of result.problems) {
        if (!(problem.from >= 0 && problem.from <= problem.to && problem.to <= text.length))
          expect.fail(`${text}: a place outside`)
        problemText(text, problem)
      }
      const { expression } = result
      if ((expression === undefined) !== result.problems.some(({ severity }) => severity === 'error')) expect.fail(text)
      if (!expression) continue
      compiled++
      for (const slots of i % 100 === 0 ? [...SLOTS, LARGE] : SLOTS) {
        let value: Value = null
        const context = { now: 1.8e12, exceeded: () => exceeded++ }
        const ms = leastMs(() => {
          value = expression.evaluate(slots, context)
        }, SHORT_MS)
        if (ms > worst.evaluate.ms) worst.evaluate = { ms, text }
        if (typeof value === 'number' && !Number.isFinite(value)) expect.fail(`${text}: ${value}`)
        if (typeof value === 'string' && (value as string).length > 2 ** 20) expect.fail(`${text}: too long`)
      }
    }
    if (process.env.EXPRESSION_FUZZ) {
      console.info(`seed ${SEED}: ${INPUTS} texts, ${compiled} compiled, ${exceeded} evaluations beyond their bounds`)
      for (const [what, { ms, text }] of Object.entries(worst))
        console.info(`slowest ${what}: ${ms.toFixed(3)} ms, ${JSON.stringify(text)}`)
    }
    expect(compiled).toBeGreaterThan(INPUTS / 20)
    expect(worst.compile.ms).toBeLessThan(LIMIT_MS)
    expect(worst.evaluate.ms).toBeLessThan(LIMIT_MS)
  })
})
