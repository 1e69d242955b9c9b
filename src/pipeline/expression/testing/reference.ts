import type { Node } from '../ast.ts'
import type { Value } from '../types.ts'

/**
 * The language once more, as plainly as it can be written: a walk over the tree, without kinds, folding, closures or bounds.
 * What the product computes must be the same; what it is measured against is this.
 */
export function walk(node: Node, names: ReadonlyMap<string, Value>, now: number): Value {
  const at = (inner: Node): Value => walk(inner, names, now)
  switch (node.type) {
    case 'literal':
      return node.value
    case 'name':
      return names.get(node.name) ?? null
    case 'unary':
      return node.operator === '!' ? !truth(at(node.operand)) : result(-number(at(node.operand)))
    case 'call':
      if (node.name === 'if') return truth(at(node.args[0]!)) ? at(node.args[1]!) : at(node.args[2]!)
      return call(node.name, node.args.map(at), now)
    case 'chain':
      return node.steps.reduce((left: Value, { operator, operand }) => {
        if (operator === '??') return left === null ? at(operand) : left
        if (operator === '&&') return truth(left) && truth(at(operand))
        if (operator === '||') return truth(left) || truth(at(operand))
        return binary(operator, left, at(operand))
      }, at(node.first))
  }
}

const result = (x: number): Value => (Number.isFinite(x) ? (x === 0 ? 0 : x) : null)

function truth(value: Value): boolean {
  if (value === null) return false
  if (typeof value === 'boolean') return value
  return typeof value === 'number' ? value !== 0 : value.length > 0
}

function number(value: Value): number {
  if (value === null) return 0
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number') return value
  const isDecimal = /^[-+]?(\d+|\d+\.\d*|\.\d+)([eE][-+]?\d+)?$/.test(value)
  return isDecimal && value.length <= 1024 && Number.isFinite(Number(value)) ? Number(value) : Number.NaN
}

function text(value: Value): string {
  if (value === null) return ''
  if (typeof value !== 'number') return `${value}`
  if (!/e-/.test(String(value)) || Math.abs(value) < 1e-21) return String(value)
  const [, sign, whole, fraction = '', power] = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/.exec(String(value))!
  return `${sign}0.${'0'.repeat(Number(power) - 1)}${whole}${fraction}`
}

function binary(operator: string, a: Value, b: Value): Value {
  switch (operator) {
    case '+':
      return typeof a === 'string' || typeof b === 'string' ? text(a) + text(b) : result(number(a) + number(b))
    case '-':
      return result(number(a) - number(b))
    case '*':
      return result(number(a) * number(b))
    case '/':
      return number(b) === 0 ? null : result(number(a) / number(b))
    case '%':
      return number(b) === 0 ? null : result(number(a) % number(b))
    case '==':
      return equal(a, b)
    case '!=':
      return !equal(a, b)
    default:
      return ordered(operator, a, b)
  }
}

function equal(a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b
  if (typeof a === typeof b) return a === b
  const isText = typeof a === 'string' || typeof b === 'string'
  const isBoolean = typeof a === 'boolean' || typeof b === 'boolean'
  if (isText && isBoolean) return text(a) === text(b)
  return number(a) === number(b)
}

function ordered(operator: string, a: Value, b: Value): boolean {
  const areTexts = typeof a === 'string' && typeof b === 'string'
  const order = areTexts ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : number(a) - number(b)
  if (operator === '<') return order < 0
  if (operator === '<=') return order <= 0
  return operator === '>' ? order > 0 : order >= 0
}

function call(name: string, args: readonly Value[], now: number): Value {
  const [a = null, b = null] = args
  switch (name) {
    case 'concat':
      return args.map(text).join('')
    case 'lower':
      return [...text(a)].map((letter) => (letter === 'İ' ? 'i' : letter.toLowerCase())).join('')
    case 'upper':
      return [...text(a)].map(upperCase).join('')
    case 'len':
      return [...text(a)].length
    case 'substr':
      return part(text(a), args)
    case 'contains':
      return text(a).includes(text(b))
    case 'startsWith':
      return text(a).startsWith(text(b))
    case 'endsWith':
      return text(a).endsWith(text(b))
    case 'round':
      return rounded(number(a), number(b))
    case 'floor':
      return result(Math.floor(number(a)))
    case 'ceil':
      return result(Math.ceil(number(a)))
    case 'abs':
      return result(Math.abs(number(a)))
    case 'min':
      return result(Math.min(number(a), number(b)))
    case 'max':
      return result(Math.max(number(a), number(b)))
    case 'coalesce':
      return args.find((value) => value !== null) ?? null
    case 'now':
      return new Date(now).toISOString().replace(/\.\d+/, '')
    case 'age':
      return isTime(text(a)) ? result((now - Date.parse(text(a))) / 1000) : null
    case 'formatBytes':
      return bytes(number(a))
    case 'toString':
      return text(a)
    case 'toNumber':
      return result(number(a))
    default:
      throw new TypeError(`no function ${name}`)
  }
}

/** Where the upper case is several letters, the one title letter whose lower case this is, if there is one: ᾀ becomes ᾈ. */
function upperCase(letter: string): string {
  if ([...letter.toUpperCase()].length === 1) return letter.toUpperCase()
  const near = [8, 9].map((distance) => String.fromCodePoint(letter.codePointAt(0)! + distance))
  return near.find((other) => /\p{Lt}/u.test(other) && other.toLowerCase() === letter) ?? letter
}

/** Date.parse alone knows a 30th of February. */
function isTime(time: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT[^ ]+(Z|[-+]\d\d:\d\d)$/.test(time) || Number.isNaN(Date.parse(time))) return false
  const day = time.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}

function part(whole: string, [, start = null, length]: readonly Value[]): Value {
  const letters = [...whole]
  const from = Math.trunc(number(start))
  const count = length === undefined ? letters.length : Math.trunc(number(length))
  if (Number.isNaN(from) || Number.isNaN(count)) return null
  return from < 0 || count < 0 ? '' : letters.slice(from, from + count).join('')
}

/** The exact decimal text as a whole number of 10^-scale, rounded with whole numbers. */
export function rounded(x: number, decimals: number): Value {
  if (Number.isNaN(x) || Number.isNaN(decimals)) return null
  const places = Math.max(-400, Math.min(400, Math.trunc(decimals)))
  const [mantissa = '', power = '0'] = Math.abs(x).toExponential().split('e')
  const fraction = mantissa.split('.')[1] ?? ''
  const scale = fraction.length - Number(power)
  const whole = BigInt(mantissa.replace('.', '')) * 10n ** BigInt(Math.max(0, -scale))
  const cut = Math.max(0, scale) - places
  if (cut <= 0) return result(x)
  const unit = 10n ** BigInt(cut)
  const steps = whole / unit + (whole % unit >= unit / 2n ? 1n : 0n)
  return result(Math.sign(x) * Number(`${steps}e${-places}`))
}

function bytes(x: number): Value {
  if (Number.isNaN(x)) return null
  const units = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']
  let size = Math.abs(x)
  while (size >= 1024 && units.length > 1) {
    size /= 1024
    units.shift()
  }
  const digits = hundredths(size).toString().padStart(3, '0')
  const sign = x < 0 && hundredths(size) > 0n ? '-' : ''
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}${units[0]}`
}

/** The exact binary value, halves to the even one. */
function hundredths(size: number): bigint {
  let [numerator, shift] = [size, 0]
  while (!Number.isInteger(numerator)) [numerator, shift] = [numerator * 2, shift + 1]
  const [scaled, unit] = [BigInt(numerator) * 100n, 1n << BigInt(shift)]
  const [whole, twice] = [scaled / unit, (scaled % unit) * 2n]
  return twice > unit || (twice === unit && whole % 2n === 1n) ? whole + 1n : whole
}
