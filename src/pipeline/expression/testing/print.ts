import { LEVELS, type Node } from '../ast.ts'
import type { Value } from '../types.ts'

/** An expression as text again, with no more brackets than it needs. parse() of it is the same tree. */
export function print(node: Node): string {
  switch (node.type) {
    case 'literal':
      return literalText(node.value)
    case 'name':
      return node.name
    case 'unary':
      return `${node.operator}${bracketed(node.operand, 8)}`
    case 'call':
      return `${node.name}(${node.args.map(print).join(', ')})`
    case 'chain': {
      const level = levelOf(node)
      // The left side of the same level needs brackets too: without them it would be part of this chain.
      const rest = node.steps.map(({ operator, operand }) => ` ${operator} ${bracketed(operand, level + 1)}`)
      return bracketed(node.first, level + 1) + rest.join('')
    }
  }
}

const levelOf = (node: Node) => (node.type === 'chain' ? LEVELS[node.steps[0]!.operator] : 9)
const bracketed = (node: Node, least: number) => (levelOf(node) < least ? `(${print(node)})` : print(node))

function literalText(value: Value): string {
  if (typeof value === 'number') return digits(value)
  if (typeof value !== 'string') return String(value)
  const escaped = value.replace(/["\\\n\t\p{C}]/gu, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    if (character === '"' || character === '\\') return `\\${character}`
    const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })
  return `"${escaped}"`
}

/** Literals have no exponent, however large or small they are. */
function digits(value: number): string {
  const [mantissa = '', power = '0'] = value.toExponential().split('e')
  const all = mantissa.replace('.', '')
  const point = Number(power) + 1
  if (point <= 0) return `0.${'0'.repeat(-point)}${all}`
  if (point >= all.length) return all + '0'.repeat(point - all.length)
  return `${all.slice(0, point)}.${all.slice(point)}`
}
