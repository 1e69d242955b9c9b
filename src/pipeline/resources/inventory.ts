import { INVENTORY, type inventoryFields, inventoryName, seconds } from '#model'
import { type ColumnSpec, defineHandedResource, targetOf } from './define.ts'

type Columns = Readonly<Record<(typeof inventoryFields)[number], ColumnSpec<undefined>>>

/**
 * What targets of inventory chose, over all kinds: a row for each object and target. An agent hands it in from what it keeps for sinks;
 * secrets were taken out before.
 */
export const inventory = defineHandedResource({
  name: INVENTORY,
  singular: 'inventoryrow',
  shortNames: ['inv'],
  title: 'Inventory',
  target: targetOf('kollect.dev/v1alpha1', 'any kind', 'kollecttargets', 'Namespaced'),
  access: 'named',
  everyMs: seconds(60),
  maxRows: 200_000,
  rowName: inventoryName,
  columns: {
    kind: { label: 'Kind', kind: 'string', read: undefined },
    apiVersion: { label: 'API version', kind: 'string', isExtra: true, read: undefined },
    target: { label: 'Target', kind: 'string', tells: 'object', isRestricted: true, read: undefined },
    attributes: { label: 'Attributes', kind: 'any', read: undefined },
    note: { label: 'Note', kind: 'string', isExtra: true, read: undefined },
    uid: { label: 'UID', kind: 'string', isExtra: true, read: undefined },
  } satisfies Columns,
  counts: {
    byKind: { function: 'count', field: undefined, groupBy: 'kind' },
    byTarget: { function: 'count', field: undefined, groupBy: 'target' },
  },
})
