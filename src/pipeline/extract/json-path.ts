import { findAll, findOne, MAX_MATCHES, MISSING, parsePath, type Segment, type View } from '#path'
import { ExtractionFault } from './fault.ts'

/** A compiled path of an attribute; undefined: nothing is there. */
export type Read = (object: unknown, view: View) => unknown

export type CompiledRead =
  | { readonly read: Read; readonly keys: readonly string[]; readonly warning?: string; readonly fault?: never }
  /** a sentence: cause and next step */
  | { readonly fault: string; readonly read?: never }

/**
 * Kubernetes' JSONPath: one expression in braces, `{.spec.replicas}`, or `$.spec.replicas`. One match gives itself, several a list,
 * none undefined; an index without a place is a fault, as in kubectl.
 */
export function compileJsonPath(text: string): CompiledRead {
  const { expression, warning, fault } = expressionOf(text.trim())
  if (expression === undefined) return { fault: fault ?? 'is no path' }
  const { path, fault: broken } = parsePath(expression, { descends: true })
  if (!path) {
    const hint = broken.suggestion === undefined ? '' : `; write ${broken.suggestion}`
    return { fault: `${broken.message} (at letter ${broken.from + 1})${hint}` }
  }
  const { segments } = path
  const keys = leadingKeys(segments)
  const isPlain = keys.length === segments.length
  const [first, rest] = [segments.slice(0, keys.length), segments.slice(keys.length)]
  return {
    read: isPlain
      ? (object, view) => plain(object, segments, view)
      : (object, view) => several(plain(object, first, view), rest, view),
    keys,
    ...(warning === undefined ? {} : { warning }),
  }
}

/** What stands inside the braces; `$…` needs none. */
function expressionOf(text: string): {
  readonly expression?: string
  readonly warning?: string
  readonly fault?: string
} {
  if (/^\$(?:[.[]|$)/.test(text)) return { expression: text }
  if (/^object\s*[.[]/.test(text)) return { fault: `is an expression: write cel:${text}` }
  if (!text.startsWith('{')) {
    const written = text.includes('{') ? 'text before the braces is the same for every object: leave it out' : undefined
    return {
      fault:
        written ??
        `without braces it is the same text for every object: write {${text.startsWith('.') ? '' : '.'}${text}}`,
    }
  }
  const end = endOfBraces(text)
  if (end === undefined) return { fault: '"{" is not closed' }
  const expression = text.slice(1, end).trim()
  if (expression === '') return { fault: 'there is nothing between the braces' }
  if (/^(?:range\b|end$|["'])/.test(expression))
    return { fault: 'range, end and texts have no meaning here: write one path, such as {.items[*].name}' }
  return {
    expression,
    ...(end < text.length - 1 ? { warning: 'only the first expression counts: what follows it is ignored' } : {}),
  }
}

/** Braces inside quotes close nothing. */
function endOfBraces(text: string): number | undefined {
  let quote = ''
  for (let i = 1; i < text.length; i++) {
    const letter = text[i] ?? ''
    if (letter === '\\') i++
    else if (quote !== '') quote = letter === quote ? '' : quote
    else if (letter === '"' || letter === "'") quote = letter
    else if (letter === '}') return i
  }
  return undefined
}

function leadingKeys(segments: readonly Segment[]): readonly string[] {
  const end = segments.findIndex(({ kind }) => kind !== 'key')
  return segments
    .slice(0, end < 0 ? segments.length : end)
    .flatMap((segment) => (segment.kind === 'key' ? [segment.key] : []))
}

function plain(object: unknown, segments: readonly Segment[], view: View): unknown {
  const found = findOne(object, segments, view)
  return found === MISSING ? undefined : found
}

function several(object: unknown, segments: readonly Segment[], view: View): unknown {
  if (object === undefined) return undefined
  const { values, isTooMany, isOutside } = findAll(object, segments, view)
  if (isTooMany) throw new ExtractionFault(`more than ${MAX_MATCHES} values match`)
  if (isOutside) throw new ExtractionFault('an index is beyond the end of a list, or meets what is no list')
  return values.length > 1 ? values : values[0]
}
