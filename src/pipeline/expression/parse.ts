import { type BinaryOperator, LEVELS, type Node, type Place, type Step } from './ast.ts'
import type { Problems } from './problems.ts'
import { type Token, tokenize } from './tokens.ts'

/** Brackets, calls and signs within each other. */
export const DEEPEST = 64

/**
 * Reads the whole text as one expression.
 * @returns undefined after an error; errors of characters are all reported, of the grammar only the first
 */
export function parse(text: string, problems: Problems): Node | undefined {
  const tokens = tokenize(text, problems)
  if (problems.hasErrors) return undefined
  return new Parser(text, tokens, problems).whole()
}

class Parser {
  readonly #text: string
  readonly #tokens: readonly Token[]
  readonly #problems: Problems
  #at = 0

  constructor(text: string, tokens: readonly Token[], problems: Problems) {
    this.#text = text
    this.#tokens = tokens
    this.#problems = problems
  }

  whole(): Node | undefined {
    if (this.#tokens.length === 1) return this.#fail('empty_expression', this.#next, 'there is no expression')
    const node = this.#expression(1, 0)
    const after: Token = this.#next
    if (!node || after.type === 'end') return node
    if (after.type === '(') {
      return this.#fail(
        'not_callable',
        { from: node.from, to: after.to },
        'only functions, by their name, can be called',
      )
    }
    if (after.type === ')') return this.#fail('unexpected_token', after, 'this bracket was never opened')
    return this.#trailing()
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? { type: 'end', from: this.#text.length, to: this.#text.length }
  }

  /** Operators of at least this level with their operands. */
  #expression(level: number, depth: number): Node | undefined {
    let left = this.#unary(depth)
    while (left) {
      const operator = this.#binary(level)
      if (operator === undefined) return left
      left = this.#chain(left, LEVELS[operator], depth)
    }
    return undefined
  }

  /** From the first operator of this level on, as long as operators of this level follow. */
  #chain(first: Node, level: number, depth: number): Node | undefined {
    const steps: Step[] = []
    for (;;) {
      const operator = this.#binary(level)
      if (operator === undefined || LEVELS[operator] !== level) break
      const { from, to } = this.#next
      this.#at++
      const operand = this.#expression(level + 1, depth)
      if (!operand) return undefined
      steps.push({ operator, at: { from, to }, operand })
    }
    return { type: 'chain', first, steps, from: first.from, to: steps.at(-1)?.operand.to ?? first.to }
  }

  #binary(level: number): BinaryOperator | undefined {
    const token = this.#next
    if (token.type !== 'operator' || token.operator === '!') return undefined
    return LEVELS[token.operator] >= level ? token.operator : undefined
  }

  #unary(depth: number): Node | undefined {
    const token = this.#next
    if (depth > DEEPEST) {
      return this.#fail(
        'too_deep',
        token,
        `brackets, calls and signs are more than ${DEEPEST} deep within each other here`,
      )
    }
    if (token.type !== 'operator') return this.#primary(depth)
    if (token.operator !== '!' && token.operator !== '-') {
      return this.#fail('unexpected_token', token, `${token.operator} needs something on its left`)
    }
    this.#at++
    const operand = this.#unary(depth + 1)
    return operand && { type: 'unary', operator: token.operator, operand, from: token.from, to: operand.to }
  }

  #primary(depth: number): Node | undefined {
    const token = this.#next
    switch (token.type) {
      case 'literal':
        this.#at++
        return this.#uncalled({ type: 'literal', value: token.value, from: token.from, to: token.to })
      case 'name':
        this.#at++
        if (this.#next.type !== '(') return { type: 'name', name: token.name, from: token.from, to: token.to }
        return this.#call(token.name, { from: token.from, to: token.to }, depth)
      case '(':
        return this.#group(token, depth)
      case 'end':
        return this.#fail('unexpected_end', token, 'the expression ends where a value is missing')
      case ')':
      case ',':
        return this.#fail('unexpected_token', token, `a value is missing before ${token.type}`)
      case 'operator':
        return this.#fail('unexpected_token', token, `${token.operator} needs something on its left`)
    }
  }

  #group(open: Token, depth: number): Node | undefined {
    this.#at++
    const inner = this.#expression(1, depth + 1)
    if (!inner) return undefined
    const close = this.#close(open)
    return close && this.#uncalled({ ...inner, from: open.from, to: close.to })
  }

  #call(name: string, callee: Place, depth: number): Node | undefined {
    const open = this.#next
    this.#at++
    const args: Node[] = []
    if (this.#next.type !== ')') {
      for (;;) {
        const argument = this.#expression(1, depth + 1)
        if (!argument) return undefined
        args.push(argument)
        if (this.#next.type !== ',') break
        this.#at++
      }
    }
    const close = this.#close(open)
    return close && this.#uncalled({ type: 'call', name, callee, args, from: callee.from, to: close.to })
  }

  #close(open: Place): Token | undefined {
    const token = this.#next
    if (token.type === ')') {
      this.#at++
      return token
    }
    if (token.type === 'end')
      return this.#fail('missing_bracket', { from: open.from, to: open.from + 1 }, 'this bracket is never closed', ')')
    if (token.type === '(') return this.#fail('not_callable', token, 'only functions, by their name, can be called')
    return this.#trailing()
  }

  /** A bracket behind anything but a name would be a call of what is no function. */
  #uncalled(node: Node): Node | undefined {
    if (this.#next.type !== '(') return node
    const place = { from: node.from, to: this.#next.to }
    return this.#fail('not_callable', place, 'only functions, by their name, can be called')
  }

  #trailing(): undefined {
    const token = this.#next
    const before = this.#tokens[this.#at - 1]
    const touches = before?.type === 'literal' && typeof before.value === 'number' && before.to === token.from
    if (touches && token.type === 'name' && /^[eE]\d*$/.test(token.name)) {
      return this.#fail('trailing_text', token, 'numbers have no exponent: write the digits')
    }
    if (touches && token.type === 'name')
      return this.#fail('trailing_text', token, 'numbers have no unit, and names do not begin with digits')
    return this.#fail('trailing_text', token, 'an operator is missing before this')
  }

  #fail(code: string, { from, to }: Place, message: string, suggestion?: string): undefined {
    this.#problems.error(code, { from, to }, message, suggestion)
    return undefined
  }
}
