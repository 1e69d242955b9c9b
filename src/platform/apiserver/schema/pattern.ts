import vm from 'node:vm'
import { LRUCache } from 'lru-cache'

const POSIX_CLASSES: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t ',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '!-~',
  lower: 'a-z',
  print: ' -~',
  punct: '!-/:-@\\[-`{-~',
  space: '\\t\\n\\v\\f\\r ',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

const BOUND = 1000
const compiled = new Map<string, RegExp | Error>()

/**
 * A pattern as Kubernetes writes them (RE2) as a RegExp.
 * @returns the error where it is no pattern, or uses what cannot be said here
 */
export function compilePattern(pattern: string): RegExp | Error {
  const known = compiled.get(pattern)
  if (known) return known
  if (compiled.size >= BOUND) compiled.clear()
  const result = translate(pattern)
  compiled.set(pattern, result)
  return result
}

function translate(pattern: string): RegExp | Error {
  if (/\(\?<?[=!]|\\[1-9]/.test(pattern)) return new Error('look-around and back references are not supported')
  const flags = /^\(\?([is]+)\)/.exec(pattern)
  const source = (flags ? pattern.slice(flags[0].length) : pattern)
    .replaceAll(/\[:(\^?)(\w+):\]/g, (whole, negated: string, name: string) =>
      negated ? whole : (POSIX_CLASSES[name] ?? whole),
    )
    .replaceAll('(?P<', '(?<')
    .replaceAll('\\A', '^')
    .replaceAll('\\z', '$')
  // Escapes that are needless but allowed in RE2 are faults in unicode mode, so that is tried first and not required.
  for (const mode of ['u', '']) {
    try {
      return new RegExp(source, (flags?.[1] ?? '') + mode)
    } catch (error) {
      if (mode === '') return error instanceof Error ? error : new Error(String(error))
    }
  }
  return new Error('not a pattern')
}

/** A pattern that backtracks may take for ever on a text made for it; RE2 never does, so nobody expects it. */
const PATIENCE_MS = 50
/** The clock runs on while a busy machine gives us no turn: who failed the first time may only have been unlucky. */
const LAST_PATIENCE_MS = 1000
/** So many steps of backtracking take no longer than a first patience. */
const FEW_STEPS = 1e7
/** What is repeated in it is repeated again: the steps grow with a power that depends on the text. */
const REPEATED_GROUP = /\)(?:[*+]|\{)/
const REPEAT = /[*+?]|\{\d*,(\d*)\}/g

const bench = vm.createContext({ expression: /^/, text: '' })
const attempt = new vm.Script('expression.test(text)')

/** @returns whether the text matches; undefined where that cannot be told in reasonable time */
export function matchesPattern(expression: RegExp, text: string): boolean | undefined {
  if (mostSteps(expression.source, text.length) <= FEW_STEPS) return expression.test(text)
  const question = `${expression.flags} ${expression.source} ${text}`
  const known = results.get(question)
  if (known !== undefined) return known
  const matches = testWithin(expression, text, PATIENCE_MS) ?? testWithin(expression, text, LAST_PATIENCE_MS)
  if (matches !== undefined && question.length <= MAX_REMEMBERED_CHARACTERS) results.set(question, matches)
  return matches
}

/** A limit in time costs a thread, and a status is written far more often than what its object says changes. */
const results = new LRUCache<string, boolean>({ max: 10_000 })
const MAX_REMEMBERED_CHARACTERS = 1000

function testWithin(expression: RegExp, text: string, timeout: number): boolean | undefined {
  Object.assign(bench, { expression, text })
  try {
    return attempt.runInContext(bench, { timeout }) as boolean
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  } finally {
    Object.assign(bench, { text: '' })
  }
}

/** A bound of the steps a search may take: each repeat tries each length it may have, in every place of those before it. */
function mostSteps(source: string, length: number): number {
  if (REPEATED_GROUP.test(source)) return Number.POSITIVE_INFINITY
  let steps = length
  for (const [repeat, most] of source.matchAll(REPEAT)) steps *= repeat === '?' ? 2 : Number(most) || length
  return steps
}
