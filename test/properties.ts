/**
 * fast-check as the tests get it (vitest.config.ts): in `npm test` a property goes through an eighth of the cases it names, as others
 * are drawn each time; `npm run soak properties` goes through all.
 */
import { createRequire } from 'node:module'
import type fastCheck from 'fast-check'

const fc = createRequire(import.meta.url)('fast-check') as typeof fastCheck
const SHARE = process.env.WHOLE_PROPERTIES === undefined ? 8 : 1
/** Properties are not made of fewer cases than these. */
const FEW = 15

/** Parameters of properties of which a test counts what they met. */
const counted = new WeakSet<object>()

/** All of these cases are gone through, always. */
export function all<P extends { readonly numRuns?: number }>(parameters: P): P {
  counted.add(parameters)
  return parameters
}

const assert = <Ts>(property: fastCheck.IRawProperty<Ts>, parameters: fastCheck.Parameters<Ts> = {}) => {
  const { numRuns = 100 } = parameters
  const fewer = counted.has(parameters) ? numRuns : Math.max(Math.min(numRuns, FEW), Math.ceil(numRuns / SHARE))
  return fc.assert(property, { ...parameters, numRuns: fewer })
}

export default { ...fc, assert }
