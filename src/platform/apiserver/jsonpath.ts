/** One step into a value. */
type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'where'; readonly path: readonly Step[]; readonly operator: string; readonly value: unknown }

const STEP =
  /\.([A-Za-z0-9_$-]+(?:\\.[A-Za-z0-9_$-]+)*|\*)|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]|\[(-?\d+)\]|\[(\*)\]|\[\?\(\s*@((?:\.[\w-]+)+)\s*(?:(==|!=)\s*('[^']*'|"[^"]*"|-?[\d.]+|true|false))?\s*\)\]/y

/**
 * Compiles the paths that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`, dots escaped by `\`.
 * @returns undefined where the text is no such path.
 */
export function compilePath(text: string): ((value: unknown) => unknown[]) | undefined {
  const steps = parsePath(text.replace(/^\{(.*)\}$/s, '$1').replace(/^\$/, ''))
  return steps && ((value) => steps.reduce(walk, [value]))
}

function parsePath(text: string): Step[] | undefined {
  const steps: Step[] = []
  STEP.lastIndex = 0
  while (STEP.lastIndex < text.length) {
    const match = STEP.exec(text)
    if (!match) return undefined
    const [, name, single, double, index, all, path, operator = '', value = ''] = match
    const plain = name ?? single ?? double
    if (plain === '*' || all) steps.push({ kind: 'all' })
    else if (plain !== undefined) steps.push({ kind: 'field', name: plain.replace(/\\(.)/g, '$1') })
    else if (index !== undefined) steps.push({ kind: 'index', index: Number(index) })
    else {
      const end = STEP.lastIndex
      const inner = parsePath(path ?? '')
      STEP.lastIndex = end
      if (!inner) return undefined
      steps.push({ kind: 'where', path: inner, operator, value: literal(value) })
    }
  }
  return steps
}

function literal(text: string): unknown {
  if (/^['"]/.test(text)) return text.slice(1, -1)
  if (text === 'true' || text === 'false') return text === 'true'
  return text === '' ? undefined : Number(text)
}

function walk(values: unknown[], step: Step): unknown[] {
  return values.flatMap((value) => (value === null || typeof value !== 'object' ? [] : into(value, step)))
}

function into(value: object, step: Step): unknown[] {
  switch (step.kind) {
    case 'field': {
      const found =
        !Array.isArray(value) && Object.hasOwn(value, step.name)
          ? (value as Record<string, unknown>)[step.name]
          : undefined
      return found === undefined ? [] : [found]
    }
    case 'index': {
      const found: unknown = Array.isArray(value) ? value.at(step.index) : undefined
      return found === undefined ? [] : [found]
    }
    case 'all':
      return Object.values(value)
    case 'where':
      return Object.values(value).filter((each) => holds(step.path.reduce(walk, [each]), step.operator, step.value))
  }
}

function holds(found: readonly unknown[], operator: string, value: unknown): boolean {
  if (operator === '') return found.length > 0
  return found.some((one) => one === value) === (operator === '==')
}
