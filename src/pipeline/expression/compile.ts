import type { BinaryOperator, Node, Place, Step } from './ast.ts'
import { warnOfConstant, warnOfNoDivisor, warnOfNoNumber, warnOfUnlike, warnOfUnused } from './checks.ts'
import {
  BOOLEAN,
  type Code,
  constantCode,
  folded,
  isOnly,
  kindOf,
  kindsOf,
  mayBe,
  NULL,
  NUMBER,
  numberCode,
  TEXT,
  textCode,
  truthCode,
  valueCode,
} from './code.ts'
import { type Argument, definitionOf, firstOf } from './functions.ts'
import { parse } from './parse.ts'
import { nearest, Problems } from './problems.ts'
import { joined, newRun, type Run } from './run.ts'
import type { Compilation, CompileOptions, EvaluationContext, Expression, Value } from './types.ts'
import { isEqual, isOrdered, ordered, textOf, toNumber, truthOf } from './values.ts'

const DEFAULT_MAX_LENGTH = 16_384

/**
 * Reads, checks and prepares an expression. Never throws: what is wrong with the text is told by its problems.
 * Takes time in the order of the text's length, whatever the text is.
 */
export function compileExpression(text: string, options: CompileOptions): Compilation {
  const problems = new Problems()
  const maxLength = options.maxLength ?? DEFAULT_MAX_LENGTH
  if (text.length > maxLength) {
    const place = { from: maxLength, to: text.length }
    problems.error('too_long', place, `the expression has ${text.length} characters: at most ${maxLength} are read`)
    return { expression: undefined, problems: problems.list }
  }
  const node = parse(text, problems)
  if (!node) return { expression: undefined, problems: problems.list }
  const compiler = new Compiler(options, problems)
  const code = compiler.code(node)
  const expression = problems.hasErrors ? undefined : new CompiledExpression(text, code, compiler)
  return { expression, problems: problems.list }
}

class CompiledExpression implements Expression {
  readonly text: string
  readonly references: readonly string[]
  readonly kind: Expression['kind']
  readonly isTimeDependent: boolean
  readonly #value: (run: Run) => Value

  constructor(text: string, code: Code, { references, isTimeDependent }: Compiler) {
    this.text = text
    this.references = Object.freeze([...references])
    this.kind = kindOf(code.kinds)
    this.isTimeDependent = isTimeDependent
    this.#value = code.value
  }

  evaluate(slots: readonly Value[], context: EvaluationContext): Value {
    const run = newRun(slots, context.now)
    const value = this.#value(run)
    if (run.left < 0) {
      context.exceeded?.()
      return null
    }
    if (typeof value !== 'number') return value
    // Adding 0 makes the negative zero, which no one means, an ordinary one.
    return value - value === 0 ? value + 0 : null
  }
}

class Compiler {
  readonly references = new Set<string>()
  isTimeDependent = false
  readonly #problems: Problems
  readonly #slots: ReadonlyMap<string, Code>

  constructor({ names }: CompileOptions, problems: Problems) {
    this.#problems = problems
    const slots = new Map<string, Code>()
    for (const [place, { name, kind }] of names.entries()) {
      if (!slots.has(name))
        slots.set(
          name,
          valueCode(kindsOf(kind), (run) => run.slots[place] ?? null),
        )
    }
    this.#slots = slots
  }

  code(node: Node): Code {
    switch (node.type) {
      case 'literal':
        return constantCode(node.value)
      case 'name':
        return this.#name(node.name, node)
      case 'unary':
        return this.#unary(node.operator, this.#part(node.operand))
      case 'call':
        return this.#call(node)
      case 'chain':
        return this.#chain(this.#part(node.first), node.steps)
    }
  }

  #part(node: Node): Argument {
    return { code: this.code(node), from: node.from, to: node.to }
  }

  #name(name: string, place: Place): Code {
    const slot = this.#slots.get(name)
    this.references.add(name)
    if (slot) return slot
    if (!this.#problems.isFull) {
      const isFunction = definitionOf.has(name)
      const suggestion = isFunction ? definitionOf.get(name)?.signature : nearest(name, this.#slots.keys())
      const message = isFunction
        ? `${name} is a function: its arguments are missing`
        : `there is no field or computed value ${name}`
      this.#problems.error('unknown_name', place, message, suggestion)
    }
    return constantCode(null)
  }

  #unary(operator: '!' | '-', operand: Argument): Code {
    if (operator === '!') {
      warnOfConstant(operand, this.#problems)
      const { truth } = operand.code
      return folded(
        truthCode((run) => !truth(run)),
        [operand.code],
      )
    }
    warnOfNoNumber(operand, this.#problems)
    const { number } = operand.code
    const kinds = isOnly(operand.code, NUMBER | BOOLEAN | NULL) ? NUMBER : NUMBER | NULL
    return folded(
      numberCode((run) => -number(run), kinds),
      [operand.code],
    )
  }

  #call({ name, callee, args, from, to }: Node & { readonly type: 'call' }): Code {
    const parts = args.map((argument) => this.#part(argument))
    const definition = definitionOf.get(name)
    if (!definition) {
      if (!this.#problems.isFull) {
        const suggestion = nearest(name, definitionOf.keys())
        this.#problems.error('unknown_function', callee, `there is no function ${name}`, suggestion)
      }
      return constantCode(null)
    }
    const { least, most, signature } = definition
    if (parts.length < least || parts.length > most) {
      const message = `${name} takes ${counted(least, most)}, not ${parts.length}`
      this.#problems.error('wrong_argument_count', { from, to }, message, signature)
      return constantCode(null)
    }
    // Functions without arguments do not look at them.
    const made = definition.make(parts as [Argument, ...Argument[]], this.#problems)
    if (!definition.readsClock)
      return folded(
        made,
        parts.map(({ code }) => code),
      )
    this.isTimeDependent = true
    return made
  }

  #chain(first: Argument, steps: readonly Step[]): Code {
    const parts = steps.map(({ operator, operand }) => ({ operator, ...this.#part(operand) }))
    switch (steps[0]?.operator) {
      case '??':
        return this.#replacements([first, ...parts])
      case '&&':
        return this.#connected([first, ...parts], false)
      case '||':
        return this.#connected([first, ...parts], true)
      default:
        return this.#operations(first, parts)
    }
  }

  #replacements(parts: readonly Argument[]): Code {
    for (const [place, part] of parts.entries()) {
      const next = parts[place + 1]
      if (next) warnOfUnused(part, next, this.#problems)
    }
    const codes = parts.map(({ code }) => code)
    return firstOf(codes)
  }

  /** Joined by `&&` or `||`: the first that is as `decisive` decides. */
  #connected(parts: readonly Argument[], decisive: boolean): Code {
    for (const part of parts) warnOfConstant(part, this.#problems)
    const all = parts.map(({ code }) => code)
    const end = all.findIndex(({ constant }) => constant !== undefined && truthOf(constant) === decisive)
    const codes = end < 0 ? all : all.slice(0, end + 1)
    const truths = codes.map(({ truth }) => truth)
    const code = truthCode((run) => {
      for (const truth of truths) if (truth(run) === decisive) return decisive
      return !decisive
    })
    return folded(code, codes)
  }

  /** From the left; what is known of the left is computed at once, and long chains run in a loop, not within each other. */
  #operations(first: Argument, parts: readonly Operation[]): Code {
    let left = first
    for (const [done, part] of parts.entries()) {
      const code = folded(this.#binary(part.operator, left, part), [left.code, part.code])
      left = { code, from: first.from, to: part.to }
      if (done + 1 === NESTED && parts.length > NESTED) return this.#long(left, parts.slice(NESTED))
    }
    return left.code
  }

  #long(first: Argument, parts: readonly Operation[]): Code {
    let kinds = first.code.kinds
    for (const part of parts) {
      // Only what is known of the kinds passes from step to step; the closures made on the way are dropped.
      kinds = this.#binary(part.operator, { ...first, code: { ...first.code, kinds, constant: undefined } }, part).kinds
    }
    const start = first.code.value
    const steps = parts.map(({ operator, code }) => ({ operator, value: code.value }))
    return valueCode(kinds, (run) => {
      let value = start(run)
      for (const step of steps) value = operate(step.operator, value, step.value(run), run)
      return value
    })
  }

  #binary(operator: BinaryOperator, left: Argument, right: Argument): Code {
    switch (operator) {
      case '==':
      case '!=':
        return this.#equality(operator, left, right)
      case '<':
      case '<=':
      case '>':
      case '>=':
        return this.#order(operator, left, right)
      case '+':
        return sum(left.code, right.code)
      default:
        return this.#arithmetic(operator, left, right)
    }
  }

  #equality(operator: '==' | '!=', left: Argument, right: Argument): Code {
    warnOfUnlike(operator, left, right, this.#problems)
    const [a, b] = [left.code.value, right.code.value]
    return operator === '=='
      ? truthCode((run) => isEqual(a(run), b(run), run))
      : truthCode((run) => !isEqual(a(run), b(run), run))
  }

  #order(operator: '<' | '<=' | '>' | '>=', left: Argument, right: Argument): Code {
    warnOfUnlike(operator, left, right, this.#problems)
    if (mayBe(left.code, TEXT) && mayBe(right.code, TEXT)) {
      const [a, b] = [left.code.value, right.code.value]
      return truthCode((run) => isOrdered(operator, a(run), b(run), run))
    }
    const [a, b] = [left.code.number, right.code.number]
    return truthCode((run) => ordered(operator, a(run), b(run)))
  }

  #arithmetic(operator: BinaryOperator, left: Argument, right: Argument): Code {
    warnOfNoNumber(left, this.#problems)
    warnOfNoNumber(right, this.#problems)
    const [a, b] = [left.code.number, right.code.number]
    if (operator === '-') return numberCode((run) => a(run) - b(run))
    if (operator === '*') return numberCode((run) => a(run) * b(run))
    warnOfNoDivisor(right, this.#problems)
    if (operator === '%') return numberCode((run) => a(run) % b(run))
    return numberCode((run) => a(run) / b(run))
  }
}

interface Operation extends Argument {
  readonly operator: BinaryOperator
}

/** Operators in a row that run within each other, which is faster than the loop. */
const NESTED = 8

/** Texts are joined, numbers added; where that depends, it is decided by the values. */
function sum(left: Code, right: Code): Code {
  if (!mayBe(left, TEXT) && !mayBe(right, TEXT)) {
    const [a, b] = [left.number, right.number]
    return numberCode((run) => a(run) + b(run))
  }
  if (left.kinds === TEXT || right.kinds === TEXT) {
    const [a, b] = [left.text, right.text]
    return textCode((run) => joined(a(run), b(run), run))
  }
  const [a, b] = [left.value, right.value]
  return valueCode(TEXT | NUMBER | NULL, (run) => operate('+', a(run), b(run), run))
}

/** An operator on values of any kind. */
function operate(operator: BinaryOperator, a: Value, b: Value, run: Run): Value {
  switch (operator) {
    case '==':
      return isEqual(a, b, run)
    case '!=':
      return !isEqual(a, b, run)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return isOrdered(operator, a, b, run)
    case '+':
      if (typeof a === 'string' || typeof b === 'string') return joined(textOf(a), textOf(b), run)
      return finite(toNumber(a, run) + toNumber(b, run))
    case '-':
      return finite(toNumber(a, run) - toNumber(b, run))
    case '*':
      return finite(toNumber(a, run) * toNumber(b, run))
    case '/':
      return finite(toNumber(a, run) / toNumber(b, run))
    case '%':
      return finite(toNumber(a, run) % toNumber(b, run))
    case '??':
      return a ?? b
    case '&&':
    case '||':
      throw new TypeError(`${operator} does not run here: its right side may not be computed`)
  }
}

const finite = (number: number): number | null => (number - number === 0 ? number : null)

function counted(least: number, most: number): string {
  if (least === most) return least === 1 ? 'one argument' : least === 0 ? 'no arguments' : `${least} arguments`
  return most === Number.POSITIVE_INFINITY
    ? `at least ${least === 1 ? 'one argument' : `${least} arguments`}`
    : `${least} to ${most} arguments`
}
