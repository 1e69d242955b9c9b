import { RE2JS } from 're2js'

const BOUND = 1000
const compiled = new Map<string, Pattern | Error>()

/** A pattern ready for use: time is linear in the text, whatever the pattern says. */
export interface Pattern {
  /** whether it is found anywhere in the text */
  test(text: string): boolean
}

/**
 * A pattern as Kubernetes reads them: in the syntax of RE2, without look-around and back references.
 * @returns the error in the words of Kubernetes where it is no pattern
 */
export function compilePattern(pattern: string): Pattern | Error {
  const known = compiled.get(pattern)
  if (known) return known
  if (compiled.size >= BOUND) compiled.clear()
  const result = compile(pattern)
  compiled.set(pattern, result)
  return result
}

function compile(pattern: string): Pattern | Error {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
