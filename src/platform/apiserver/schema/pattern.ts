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
