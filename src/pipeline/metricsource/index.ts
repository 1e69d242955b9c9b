/**
 * MetricSources: what else to read from clusters, by declaration. A declaration is checked and compiled once, with every mistake
 * named by its place; then objects go in one by one and leave nothing but the columns that were asked for, and sums over them.
 * The same code runs on the hub, in agents, in the API (for people who see only a part) and on the command line.
 *
 *   MetricSource → compile → { paths · expressions · filters } → collector (#collect): object → row → columns → aggregate
 *                     └→ definition (Redis, plans of agents) → readDefinition → the same again
 */
export {
  type AggregationPlan,
  aggregate,
  hasZero,
  MAX_GROUPS,
  OTHER_GROUP,
  sumsOfNothing,
  UNKNOWN_GROUP,
  withoutSumsOfNothing,
} from './aggregate.ts'
export { compileMetricSource, STANDARD_TYPES } from './compile.ts'
export { printFinding } from './findings.ts'
export { GrowingRows } from './growing-rows.ts'
export { readBytes, readCompatibleQuantity, readQuantity } from './quantity.ts'
export { readDefinition } from './read-definition.ts'
export { guessPlural } from './resource-name.ts'
export { collectSource } from './run/collect-source.ts'
export { ownCollector, rowCollector } from './run/row-collector.ts'
export { definitionOf } from './stored.ts'
export type * from './types.ts'
