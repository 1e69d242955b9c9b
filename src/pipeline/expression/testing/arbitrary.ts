import fc from 'fast-check'
import { type BinaryOperator, LEVELS, type Node } from '../ast.ts'
import type { Kind, Value } from '../types.ts'

/** The names random expressions read, in the order of the slots. */
export const NAMES = [
  { name: 'used', kind: 'number' },
  { name: 'capacity', kind: 'number' },
  { name: 'phase', kind: 'string' },
  { name: 'größe', kind: 'string' },
  { name: 'ready', kind: 'boolean' },
  { name: 'x', kind: 'any' },
  { name: 'y', kind: 'any' },
  { name: 'nothing', kind: 'null' },
] as const satisfies readonly { name: string; kind: Kind }[]

const NOWHERE = { from: 0, to: 0 }
const ONE: Readonly<Record<string, number>> = {
  ...{
    abs: 1,
    ceil: 1,
    floor: 1,
    formatBytes: 1,
    len: 1,
    lower: 1,
    upper: 1,
    toNumber: 1,
    toString: 1,
    age: 1,
    now: 0,
  },
  ...{ min: 2, max: 2, contains: 2, startsWith: 2, endsWith: 2, if: 3 },
}
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  round: [1, 2],
  substr: [2, 3],
  coalesce: [1, 4],
  concat: [1, 4],
}

export const numbers = fc.oneof(
  fc.integer({ min: -3, max: 12 }),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer({ min: -1_000_000, max: 1_000_000 }).map((hundredths) => hundredths / 1000),
  fc.constantFrom(1e21, 1e20, 1e-7, 1e-21, 1e-22, 2 ** 53, 1.7e308, 5e-324, 1.005, 2.5, 0.5, 1152),
)
const texts = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '5',
    '-12.5',
    '1e3',
    '.5',
    '5.',
    ' 5',
    '0x10',
    'abc',
    'ABC',
    'true',
    'false',
    'null',
    'ß',
    'ΑΣ',
    'İ',
  ),
  fc.constantFrom(
    '😀',
    'a😀b',
    '\uff5e',
    '2026-01-01T00:00:00Z',
    '2025-12-31T23:59:59.25+02:00',
    '2026-02-30T00:00:00Z',
    '9'.repeat(400),
  ),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
)
const booleans = fc.boolean()

const valuesOf = (kind: Kind): fc.Arbitrary<Value> => {
  const some = { string: texts, number: numbers, boolean: booleans, null: fc.constant(null) }
  if (kind !== 'any') return fc.oneof({ weight: 5, arbitrary: some[kind] }, { weight: 1, arbitrary: fc.constant(null) })
  return fc.oneof(texts, numbers, booleans, fc.constant(null))
}

/** Values of the kinds the names promise. */
export const slots: fc.Arbitrary<readonly Value[]> = fc.tuple(...NAMES.map(({ kind }) => valuesOf(kind)))

const literal = (value: Value): Node => ({ type: 'literal', value, ...NOWHERE })
const positive = numbers.map((x) => literal(Math.abs(x)))
const names = (...kinds: readonly Kind[]) =>
  fc
    .constantFrom(...NAMES.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind)))
    .map(({ name }): Node => ({ type: 'name', name, ...NOWHERE }))
const call = (name: string, args: readonly Node[]): Node => ({ type: 'call', name, callee: NOWHERE, args, ...NOWHERE })
const unary = (operator: '!' | '-', operand: Node): Node => ({ type: 'unary', operator, operand, ...NOWHERE })

function chains(operators: readonly BinaryOperator[], operand: fc.Arbitrary<Node>): fc.Arbitrary<Node> {
  const levels = [...new Set(operators.map((operator) => LEVELS[operator]))]
  return fc.constantFrom(...levels).chain((level) => {
    const fitting = operators.filter((operator) => LEVELS[operator] === level)
    const step = fc.record({ operator: fc.constantFrom(...fitting), at: fc.constant(NOWHERE), operand })
    const steps = fc.oneof(
      { weight: 8, arbitrary: fc.array(step, { minLength: 1, maxLength: 3 }) },
      { weight: 1, arbitrary: fc.array(step, { minLength: 9, maxLength: 12 }) },
    )
    return fc.record({
      type: fc.constant('chain' as const),
      first: operand,
      steps,
      from: fc.constant(0),
      to: fc.constant(0),
    })
  })
}

/** Anything the grammar allows, whether it makes sense or not. */
export const anyNode: fc.Arbitrary<Node> = fc.letrec<{ node: Node }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'any' },
    names(),
    fc.oneof(positive, texts.map(literal), booleans.map(literal), fc.constant(literal(null))),
    chains(Object.keys(LEVELS) as BinaryOperator[], tie('node')),
    fc.tuple(fc.constantFrom('!' as const, '-' as const), tie('node')).map(([operator, node]) => unary(operator, node)),
    fc.oneof(
      fc
        .constantFrom(...Object.keys(ONE))
        .chain((name) =>
          fc.array(tie('node'), { minLength: ONE[name]!, maxLength: ONE[name]! }).map((args) => call(name, args)),
        ),
      fc
        .constantFrom(...Object.keys(RANGES))
        .chain((name) =>
          fc
            .array(tie('node'), { minLength: RANGES[name]![0], maxLength: RANGES[name]![1] })
            .map((args) => call(name, args)),
        ),
    ),
  ),
})).node

/** What people write: numbers where numbers are wanted, conditions of comparisons. Operators only of what they are for. */
export const typedNode: fc.Arbitrary<Node> = fc.letrec<{ number: Node; text: Node; condition: Node; any: Node }>(
  (tie) => ({
    number: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'typed' },
      names('number', 'any'),
      positive,
      chains(['+', '-', '*', '/', '%'], tie('number')),
      fc.tuple(fc.constantFrom('abs', 'ceil', 'floor', 'round'), tie('number')).map(([name, x]) => call(name, [x])),
      fc
        .tuple(fc.constantFrom('min', 'max', 'round'), tie('number'), tie('number'))
        .map(([name, a, b]) => call(name, [a, b])),
      tie('text').map((text) => call('len', [text])),
      tie('number').map((x) => unary('-', x)),
    ),
    text: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'typed' },
      names('string', 'any'),
      texts.map(literal),
      fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((args) => call('concat', args)),
      fc.tuple(fc.constantFrom('lower', 'upper', 'toString'), tie('text')).map(([name, text]) => call(name, [text])),
      fc.tuple(tie('text'), tie('number'), tie('number')).map((args) => call('substr', args)),
      tie('number').map((x) => call('formatBytes', [x])),
    ),
    condition: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'typed' },
      names('boolean', 'any'),
      chains(['<', '<=', '>', '>='], tie('number')),
      chains(['<', '==', '!=', '>='], tie('text')),
      chains(['&&', '||'], tie('condition')),
      tie('condition').map((condition) => unary('!', condition)),
      fc
        .tuple(fc.constantFrom('contains', 'startsWith', 'endsWith'), tie('text'), tie('text'))
        .map(([name, a, b]) => call(name, [a, b])),
    ),
    any: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'typed' },
      tie('number'),
      tie('text'),
      tie('condition'),
      fc.tuple(tie('condition'), tie('number'), tie('text')).map((args) => call('if', args)),
      chains(['??'], tie('any')),
    ),
  }),
).any
