import type { Row } from '#extract'
import type { BindingView } from '../../bindings/view.ts'
import type { InventoryInformers } from '../../objects.ts'
import { RowStore } from '../../store/index.ts'
import { InventoryView } from '../view.ts'

/** An object of inventory, as far as the API looks at it. */
export interface DeclaredObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly generation?: number }
  readonly status?: object
}

/** Rows and objects that a test writes itself. */
export class World {
  readonly inventories: DeclaredObject[] = []
  readonly targets: DeclaredObject[] = []
  readonly clusterTargets: DeclaredObject[] = []
  readonly clusterInventories: (DeclaredObject & { readonly spec: object })[] = []
  readonly namespaces: DeclaredObject[] = []
  readonly bindings = new Map<string, readonly BindingView[]>()
  now = Date.UTC(2026, 0, 1)
  readonly store: RowStore
  readonly view: InventoryView

  /** @param maxDepartures rows that went and are remembered */
  constructor(maxDepartures = 1000) {
    const now = () => this.now
    this.store = new RowStore(() => this.view.changes.tell(), { now, maxDepartures })
    this.view = new InventoryView({
      store: this.store,
      informers: {
        inventories: { list: () => this.inventories },
        targets: { list: () => this.targets },
        clusterTargets: { list: () => this.clusterTargets },
        clusterInventories: { list: () => this.clusterInventories },
        namespaces: { list: () => this.namespaces },
      } as unknown as InventoryInformers, // all that is read of them
      bindings: (namespace, name) => this.bindings.get(`${namespace}/${name}`),
      now,
    })
  }

  /** Declares a target; '' for one of the cluster. */
  declare(namespace: string, name: string, status?: object): void {
    const object = { metadata: { name, ...(namespace && { namespace }) }, ...(status && { status }) }
    if (namespace) this.targets.push(object)
    else this.clusterTargets.push(object)
  }

  /** A target that is declared, with rows that are all there is. */
  collect(namespace: string, name: string, rows: readonly Partial<Row>[]): void {
    this.declare(namespace, name)
    const target = this.store.target({ namespace, name })
    target.replace(rows.map((row) => aRow({ targetNamespace: namespace, targetName: name, ...row })))
    target.setComplete(true)
  }
}

/** A Deployment `web` that the target team-a/apps chose. */
export const aRow = (more: Partial<Row> = {}): Row => ({
  targetNamespace: 'team-a',
  targetName: 'apps',
  namespace: 'team-a',
  name: 'web',
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${more.namespace ?? 'team-a'}-${more.name ?? 'web'}`,
  attributes: {},
  ...more,
})
