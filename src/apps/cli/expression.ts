import { parse } from 'yaml'
import { compileExpression, functions, type Kind, problemText, type Value } from '#expression'
import type { Answer } from './access.ts'
import { table } from './format.ts'
import { isRecord, ManifestError, textOf } from './manifest-files.ts'

export interface ExpressionOptions {
  readonly text?: string
  /** names and values as JSON or YAML, or @file */
  readonly context: string
  /** ms, for now() and age() */
  readonly now: number
  readonly functions: boolean
}

/** Evaluates one expression. @throws ManifestError where the context cannot be used */
export function evaluateExpression({ text, context, now, functions: listed }: ExpressionOptions): Answer {
  if (listed) return { text: functionList(), notes: [], failed: false }
  if (text === undefined)
    return {
      text: '',
      notes: ["no expression given, such as 'round(used / capacity, 2)'; --functions lists the functions"],
      failed: true,
    }
  const values = contextOf(context)
  const names = Object.entries(values).map(([name, value]) => ({ name, kind: kindOf(value) }))
  const { expression, problems } = compileExpression(text, { names })
  const notes = problems.map((problem) => problemText(text, problem))
  if (!expression) return { text: '', notes, failed: true }
  let isExceeded = false
  const exceeded = () => {
    isExceeded = true
  }
  const value = expression.evaluate(Object.values(values), { now, exceeded })
  if (isExceeded) notes.push('the evaluation cost more than it may: the result is null')
  return { text: JSON.stringify(value), notes, failed: false }
}

function contextOf(context: string): Readonly<Record<string, Value>> {
  const text = context.startsWith('@') ? textOf(context.slice(1)) : context
  let value: unknown
  try {
    value = parse(text, { maxAliasCount: 100 })
  } catch (cause) {
    throw new ManifestError('--context is neither JSON nor YAML, such as {"used": 3, "capacity": 8}', { cause })
  }
  if (!isRecord(value ?? {})) throw new ManifestError('--context must be an object, such as {"used": 3, "capacity": 8}')
  for (const [name, one] of Object.entries(value ?? {})) {
    if (!isValue(one))
      throw new ManifestError(`--context: ${name} must be a text, a finite number, true, false or null`)
  }
  return (value ?? {}) as Readonly<Record<string, Value>> // checked above
}

const isValue = (value: unknown): value is Value =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))

const kindOf = (value: Value): Kind =>
  value === null ? 'any' : typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : 'boolean'

const functionList = (): string =>
  table(
    [
      { header: 'FUNCTION', value: ({ signature }) => signature },
      { header: 'WHAT IT GIVES', value: ({ description }) => description },
      { header: 'EXAMPLE', value: ({ example }) => `${example.text} → ${JSON.stringify(example.result)}` },
    ],
    functions,
  )
