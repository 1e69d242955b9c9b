import { compileProfile } from '#extract'
import { ALLOW_SECRET_EXTRACTION, type KollectKnown } from '#kinds'
import { sinkHostProblem } from '#outbound'
import type { ConfigReader } from '#runtime'
import { type InventorySettings, inventorySettings } from './inventory-settings.ts'

/** By what objects of inventory are judged, whoever writes them. */
export const inventoryKnown = (read: ConfigReader): KollectKnown => knownOf(inventorySettings(read))

/** The same of settings that were read. */
export function knownOf(settings: InventorySettings & { readonly tenantMode?: boolean }): KollectKnown {
  const { semantics, allowLoopback, allowPrivate, maxExportBytes, tenantMode = false } = settings
  return {
    ...{ semantics, maxExportBytes, tenantMode },
    allowFiles: allowLoopback,
    hostProblem: (host) => sinkHostProblem(host, { allowLoopback, allowPrivate }),
    pathProblem,
    predicateProblem: (expression) => pathProblem(`cel:${expression}`),
  }
}

/** A profile of any kind that may read all: what it may read is judged beside this. */
const ANY = { kind: { version: 'v1', kind: 'Any' }, metadata: { annotations: { [ALLOW_SECRET_EXTRACTION]: 'true' } } }

function pathProblem(path: string): string | undefined {
  const spec = { targetGVK: ANY.kind, attributes: [{ name: 'value', path }] }
  const [fault] = compileProfile({ metadata: ANY.metadata, spec }).faults ?? []
  return fault && `cannot be used: ${fault.message}`
}
