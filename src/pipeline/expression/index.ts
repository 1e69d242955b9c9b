/**
 * The expression language of MetricSources: `round((used / capacity) * 100, 2)`. A text is compiled once, with every mistake
 * named by its place, and runs often: on slots of scalars, without loops, in bounded time, with the same result on the hub, in
 * agents, in the API and on the command line. Rules, conversions and bounds: docs/spec/expressions.md.
 *
 *   text → tokens → tree → kinds, checks, folding → closures → evaluate(slots, { now })
 */
export { compileExpression } from './compile.ts'
export { functions } from './functions.ts'
export { problemText } from './problems.ts'
export type {
  Compilation,
  CompileOptions,
  EvaluationContext,
  Expression,
  FunctionDescription,
  Kind,
  Problem,
  Value,
} from './types.ts'
export { convertTo, numberOf, textOf } from './values.ts'
