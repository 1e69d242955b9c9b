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
    predicateProblem: (expression) => pathProblem(`cel:${expression}`, true),
  }
}

/** A path of a profile of any kind. @param showsSecrets as the profile is annotated */
function pathProblem(path: string, showsSecrets: boolean): string | undefined {
  const spec = { targetGVK: { version: 'v1', kind: 'Any' }, attributes: [{ name: 'value', path }] }
  const metadata = { annotations: { [ALLOW_SECRET_EXTRACTION]: String(showsSecrets) } }
  const [fault] = compileProfile({ metadata, spec }).faults ?? []
  return fault && `cannot be used: ${fault.message}`
}
