import type { ConfigReader } from '#runtime'

/** By what objects of inventory are judged, as it is set. Loads nothing: the rules themselves are large. */
export interface InventorySettings {
  readonly semantics: 'strict' | 'original'
  readonly allowLoopback: boolean
  readonly allowPrivate: boolean
  /** of one part of an export, bytes */
  readonly maxExportBytes: number
}

/** What an agent collects, besides what objects say. */
export interface CollectionSettings extends InventorySettings {
  /** only these namespaces are ever read; []: all */
  readonly watchNamespaces: readonly string[]
  readonly includedNamespaces: readonly string[]
  readonly excludedNamespaces: readonly string[]
  readonly scrubKeys: readonly string[]
  /** that rows of the targets of one namespace may take of memory, about */
  readonly maxRowBytes: number
  /** rights are of `watchNamespaces` alone, and so is everything that is read and written */
  readonly tenantMode: boolean
  /** a target that no scope bounds collects nothing */
  readonly scopeRequired: boolean
}

/** Settings of every process that judges objects of inventory. */
export function inventorySettings(read: ConfigReader): InventorySettings {
  return {
    semantics: read.text('KOLLECT_SEMANTICS', {
      default: 'strict',
      oneOf: ['strict', 'original'],
      meaning:
        'original takes objects of inventory (kollect.dev) as Kollect took them: Secrets of other namespaces, forced pushes, fields without effect; for the time of a migration',
    }) as InventorySettings['semantics'], // one of these two
    allowLoopback: read.flag('SINK_ALLOW_LOOPBACK', {
      default: false,
      meaning: 'sinks of inventory may be on the machine itself, and in files of it (file://)',
    }),
    allowPrivate: read.flag('SINK_ALLOW_PRIVATE', {
      default: false,
      meaning: 'sinks of inventory may be at addresses of private networks, as those in the same cluster are',
    }),
    maxExportBytes: read.integer('MAX_EXPORT_BYTES', {
      default: 1_572_864,
      min: 1024,
      max: 67_108_864,
      meaning: 'ceiling of one part of an export of inventory, in bytes; no inventory may have a higher one',
    }),
  }
}

/** Whether an agent has rights in namespaces only. */
export const isTenantMode = (read: ConfigReader): boolean =>
  read.flag('TENANT_MODE', {
    default: false,
    meaning:
      'the agent has rights in WATCH_NAMESPACES alone (`clusterpulse inventory-role --tenant`): it reads and writes nothing elsewhere, and kinds of the cluster are refused',
  })

/** Settings of an agent. */
export function collectionSettings(read: ConfigReader): CollectionSettings {
  const watchNamespaces = read.list('WATCH_NAMESPACES', {
    meaning: 'only these namespaces are ever read for inventory, whatever targets say; without it all of them',
  })
  const strange = watchNamespaces.filter((name) => !/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
  if (strange.length > 0)
    read.fault(
      `WATCH_NAMESPACES takes whole names of namespaces, which ${strange.map((one) => `"${one}"`).join(', ')} cannot be`,
    )
  const tenantMode = isTenantMode(read)
  if (tenantMode && watchNamespaces.length === 0)
    read.fault('TENANT_MODE is true and WATCH_NAMESPACES is not set: name the namespaces that the agent has rights in')
  return {
    ...inventorySettings(read),
    ...{ watchNamespaces, tenantMode },
    scopeRequired: read.flag('SCOPE_REQUIRED', {
      default: false,
      meaning:
        'targets that no KollectScope (or KollectClusterScope) bounds collect nothing; without it they have no ceiling',
    }),
    includedNamespaces: read.list('DEFAULT_INCLUDED_NAMESPACES', {
      meaning: 'namespaces of targets that name none; without it a target reads its own',
    }),
    excludedNamespaces: read.list('DEFAULT_EXCLUDED_NAMESPACES', {
      meaning: 'namespaces that are never read for inventory, whatever targets say',
    }),
    maxRowBytes: read.integer('MAX_ROW_BYTES', {
      default: 134_217_728,
      min: 65_536,
      max: 17_179_869_184,
      meaning:
        'rows that the KollectTargets of one namespace may keep in the memory of the agent, in bytes, about; those of KollectClusterTargets have no ceiling',
    }),
    scrubKeys: read.list('SCRUB_KEYS', {
      meaning: 'names whose values are taken out of every row, besides those that are known to be secret',
    }),
  }
}
