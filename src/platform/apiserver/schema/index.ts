/**
 * What an object of a kind may say: the schemas of the built-in kinds, and what a schema does with a value.
 *
 *   prune → applyDefaults → validate     of an object that is written
 *   checkStructural                      of a schema in a CustomResourceDefinition
 *
 * Pure; values are never changed, what stays the same is shared. Faults are worded as the Kubernetes API words them, so
 * that people and programs find the sentences they know. Rules in CEL (x-kubernetes-validations) are kept, not run.
 */
import type { Schema } from '../types.ts'
import { builtInSchemas } from './built-in/index.ts'

/**
 * The schema of a built-in kind.
 * @returns undefined for kinds that are not built in
 */
export const builtInSchema = (group: string, version: string, kind: string): Schema | undefined =>
  builtInSchemas[`${group}/${version}/${kind}`]

export { componentOf, listMeta, objectMeta } from './components.ts'
export { applyDefaults } from './defaults.ts'
export { stableText } from './json.ts'
export { prune } from './prune.ts'
export { checkStructural } from './structural.ts'
export { validate } from './validate.ts'
export { builtInSchemas }
