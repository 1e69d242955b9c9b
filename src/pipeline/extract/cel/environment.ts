import { Environment } from '@marcbachmann/cel-js'
import { registerFormats } from './formats.ts'
import { registerNetwork } from './network.ts'
import { registerQuantity } from './quantity.ts'
import { registerSemver } from './semver.ts'
import { registerTexts } from './texts.ts'

let made: Environment | undefined

/** CEL as Kubernetes has it, with one variable: `object`. Made when first needed: it takes some milliseconds. */
export function environment(): Environment {
  if (made) return made
  made = new Environment({
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: { maxAstNodes: 5_000, maxDepth: 60, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 },
  })
  made.registerVariable('object', 'map')
  for (const register of [registerTexts, registerQuantity, registerSemver, registerNetwork, registerFormats])
    register(made)
  return made
}
