import { createHash } from 'node:crypto'
import type { RowKey } from '#sinks'
import type { PackedRow } from '../store/index.ts'

/** Which rows are asked for; what is absent does not matter. */
export interface Filter {
  /** of the target or of the object; with `inventory`: of the inventory */
  readonly namespace?: string
  /** with `namespace`: of targets of other namespaces nothing is told to who asks */
  readonly isOwn?: boolean
  readonly inventory?: string
  /** a roll-up of the cluster, which says by itself whose rows it takes */
  readonly clusterInventory?: string
  readonly target?: string
  readonly group?: string
  readonly version?: string
  readonly kind?: string
  /** of the object */
  readonly name?: string
}

/** A filter that knows where the inventories are. */
export interface RowFilter {
  /** by its key alone: what left is known by no more */
  hasKey(key: RowKey): boolean
  hasContent(row: PackedRow): boolean
  /** equal for filters that take the same rows */
  readonly mark: string
}

/** @param inventoryNamespaces where there are inventories of the name asked for; absent: none is asked for */
export function rowFilter(filter: Filter, inventoryNamespaces?: ReadonlySet<string>): RowFilter {
  const { namespace, isOwn, target, group, version, kind, name } = filter
  const isIn = (key: RowKey) =>
    inventoryNamespaces
      ? inventoryNamespaces.has(key.targetNamespace)
      : namespace === undefined ||
        key.targetNamespace === namespace ||
        (key.namespace === namespace && !(isOwn && isOfOther(key.targetNamespace, namespace)))
  return {
    hasKey: (key) =>
      isIn(key) && (target === undefined || key.targetName === target) && (name === undefined || key.name === name),
    hasContent: (row) =>
      (group === undefined || row.group === group) &&
      (version === undefined || row.version === version) &&
      (kind === undefined || row.kind === kind),
    mark: markOf([filterMark(filter), inventoryNamespaces && [...inventoryNamespaces].sort()]),
  }
}

/** A target of the cluster is no other namespace's. */
export const isOfOther = (targetNamespace: string, namespace: string | undefined): boolean =>
  targetNamespace !== '' && targetNamespace !== namespace

/** A short name of what is asked for: what was handed out for one question is no answer to another. */
export function filterMark(filter: Filter): string {
  const { namespace, isOwn, inventory, clusterInventory, target, group, version, kind, name } = filter
  return markOf([namespace, inventory, clusterInventory, target, group, version, kind, name, isOwn])
}

const markOf = (what: unknown): string =>
  createHash('sha256').update(JSON.stringify(what)).digest('base64url').slice(0, 12)
