import type { Environment } from '@marcbachmann/cel-js'

/** Adds a function that answers at once: the library then needs no promises around what calls it. */
export function define(cel: Environment, signature: string, handler: (...values: never[]) => unknown): void {
  cel.registerFunction(signature, handler, { async: false })
}
