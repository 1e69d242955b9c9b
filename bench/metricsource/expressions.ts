/*
 * `round((used / capacity) * 100, 2)` evaluated over and over, in a process of its own: compiled by us; by a walker over the
 * syntax tree, the plain way to write one; and by cel-js, where it is installed. All give the same numbers.
 */
import { compileExpression } from '#expression'
import { invariant } from '#model'

const [evaluations = 3_000_000] = process.argv.slice(2).map(Number)
const inputs = Array.from({ length: 1000 }, (_, i) => ({ used: (i * 7919) % 1000, capacity: 1000 + (i % 17) }))

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Evaluations per second of CPU; the best of five, after as many to warm up. */
function perSecond(evaluate: (i: number) => unknown, times: number): number {
  let best = 0
  let sum = 0
  for (let round = 0; round < 6; round++) {
    const since = cpuMs()
    // What nobody uses need not be computed, and would not be.
    for (let i = 0; i < times; i++) sum += Number(evaluate(i % inputs.length))
    if (round > 0) best = Math.max(best, (times / (cpuMs() - since)) * 1000)
  }
  invariant(sum > 0, 'something was computed')
  return best
}

type Node =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Node; readonly right: Node }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Node[] }

const tree: Node = {
  kind: 'call',
  name: 'round',
  args: [
    {
      kind: 'binary',
      operator: '*',
      left: {
        kind: 'binary',
        operator: '/',
        left: { kind: 'name', name: 'used' },
        right: { kind: 'name', name: 'capacity' },
      },
      right: { kind: 'number', value: 100 },
    },
    { kind: 'number', value: 2 },
  ],
}

function walk(node: Node, names: Readonly<Record<string, unknown>>): unknown {
  switch (node.kind) {
    case 'number':
      return node.value
    case 'name':
      return names[node.name] ?? null
    case 'binary': {
      const [left, right] = [numberOf(walk(node.left, names)), numberOf(walk(node.right, names))]
      if (node.operator === '/') return right === 0 ? null : left / right
      return node.operator === '*' ? left * right : left + right
    }
    case 'call': {
      const args = node.args.map((argument) => numberOf(walk(argument, names)))
      invariant(node.name === 'round', 'it is the only function here')
      const scale = 10 ** (args[1] ?? 0)
      return Math.round((args[0] ?? 0) * scale) / scale
    }
  }
}
const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0)

const text = 'round((used / capacity) * 100, 2)'
const { expression } = compileExpression(text, {
  names: [
    { name: 'used', kind: 'number' },
    { name: 'capacity', kind: 'number' },
  ],
})
invariant(expression, 'it compiles')
const context = { now: 0 }
const slots = inputs.map(({ used, capacity }) => [used, capacity])
const ours = (i: number) => expression.evaluate(slots[i] ?? [], context)
const walked = (i: number) => walk(tree, inputs[i] ?? {})
for (let i = 0; i < inputs.length; i++) {
  invariant(Math.abs(Number(ours(i)) - Number(walked(i))) < 0.011, 'both compute the same')
}

async function cel(): Promise<number | null> {
  const library = await import('@marcbachmann/cel-js').catch(() => undefined)
  if (!library) return null
  const evaluate = new library.Environment()
    .registerVariable('used', 'double')
    .registerVariable('capacity', 'double')
    .registerFunction('round(double, int): double', (x: number, places: bigint) => {
      const scale = 10 ** Number(places)
      return Math.round(x * scale) / scale
    })
    .parse('round((used / capacity) * 100.0, 2)')
  invariant(Math.abs(Number(evaluate(inputs[7])) - Number(ours(7))) < 0.011, 'cel-js computes the same')
  return perSecond((i) => evaluate(inputs[i]), evaluations / 5)
}

const result = {
  ours: perSecond(ours, evaluations),
  walker: perSecond(walked, evaluations),
  cel: await cel(),
}
process.stdout.write(JSON.stringify(result))
