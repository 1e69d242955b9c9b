import {
  INVENTORY,
  incompleteMessage,
  ROWS_ERRORS_KEPT,
  ROWS_INCOMPLETE,
  type RowFeed,
  type RowsError,
  type RowsRead,
} from '#model'
import type { InventoryInformers } from '../objects.ts'
import type { TargetKey } from '../rows.ts'
import { type RowStore, targetText } from '../store/index.ts'
import { type CountedTarget, InventoryTable } from './inventory-table.ts'

/** Longest sentence about a target, UTF-16 units. */
const MAX_LETTERS = 500

/**
 * Rows of this cluster for its hub, which is told of them as sinks are: the latest, as often as it can take them. While a target is not
 * read to its end the hub takes none of its rows as gone; those of others go, and of targets that are deleted.
 */
export class InventoryFeed implements RowFeed {
  readonly source = INVENTORY
  readonly #store: RowStore
  readonly #targets: Pick<InventoryInformers, 'targets' | 'clusterTargets'>
  readonly #table: InventoryTable
  readonly #listeners = new Set<() => void>()

  constructor(store: RowStore, targets: Pick<InventoryInformers, 'targets' | 'clusterTargets'>) {
    this.#store = store
    this.#targets = targets
    this.#table = new InventoryTable(store)
    // What is said of a target, and that all of them are known now.
    for (const informer of [targets.targets, targets.clusterTargets]) informer.onChange(() => this.changed())
  }

  /** Rows, or whether they are all, are otherwise. */
  changed(): void {
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  read(): RowsRead {
    const { targets, clusterTargets } = this.#targets
    if (!targets.isSynced || !clusterTargets.isSynced) return STARTING
    const declared = [...targets.list(), ...clusterTargets.list()].map((object): Declared => {
      const { namespace = '', name, uid = '' } = object.metadata
      return { key: { namespace, name }, uid, conditions: object.status?.conditions ?? [] }
    })
    const { rows, isTruncated } = this.#table.read(declared)
    const errors = declared.filter(({ key }) => !this.#isComplete(key)).map(errorOf)
    return {
      outcome: 'complete',
      rows,
      truncated: isTruncated,
      errors: errors.slice(0, ROWS_ERRORS_KEPT),
      errorCount: errors.length,
    }
  }

  #isComplete(key: TargetKey): boolean {
    const state = this.#store.state(key)
    return state.kind === 'dropped' || (state.kind === 'rows' && state.isComplete)
  }
}

const STARTING: RowsRead = {
  outcome: 'unreachable',
  code: 'not_collected',
  message: 'The agent has just started: its targets are being read',
}

interface Declared extends CountedTarget {
  readonly conditions: readonly {
    readonly type: string
    readonly status: string
    readonly message?: string | undefined
  }[]
}

function errorOf({ key, conditions }: Declared): RowsError {
  const why = conditions.find(({ type, status }) => type === 'Degraded' && status === 'True')?.message
  const cause = why ?? 'its lists are not read to their end'
  const target = targetText(key).replace(/^\//, '')
  const message = incompleteMessage(target, `${cause}; rows of it that are gone may still be shown`)
  return {
    namespace: key.namespace,
    outcome: 'unreachable',
    code: ROWS_INCOMPLETE,
    message: message.slice(0, MAX_LETTERS),
  }
}
