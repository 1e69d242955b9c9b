/** Words that YAML 1.1 or 1.2 readers take for something else than a text. */
const RESERVED = /^(?:~|null|true|false|yes|no|on|off|y|n)$/i
/** Texts that need no quotes for any reader: they begin with a letter, and hold nothing that means something. */
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./@+-]*(?: [A-Za-z0-9_./@+-]+)*$/

/**
 * A value of JSON as YAML, in block style and without anchors or folding: equal values are equal texts. Texts that could be taken for
 * something else are quoted as in JSON, which is YAML too.
 */
export const yamlOf = (value: unknown): string => `${block(value, 0)}\n`

/** @param indent of the lines after the first, in spaces */
function block(value: unknown, indent: number): string {
  const start = ' '.repeat(indent)
  if (Array.isArray(value))
    return value.length === 0 ? '[]' : value.map((one) => `- ${block(one, indent + 2)}`).join(`\n${start}`)
  if (typeof value === 'string') return scalar(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const entries = Object.entries(value)
  if (entries.length === 0) return '{}'
  return entries.map(([key, one]) => `${scalar(key)}:${below(one, indent)}`).join(`\n${start}`)
}

/** What stands after a key: a scalar beside it, anything longer on lines of its own. */
function below(value: unknown, indent: number): string {
  const isLong = typeof value === 'object' && value !== null && Object.keys(value).length > 0
  return isLong ? `\n${' '.repeat(indent + 2)}${block(value, indent + 2)}` : ` ${block(value, indent)}`
}

function scalar(text: string): string {
  if (PLAIN.test(text) && !RESERVED.test(text)) return text
  // Line ends beyond those of JSON, and what YAML does not print.
  return JSON.stringify(text).replace(UNPRINTED, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
const UNPRINTED = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g
