import { type ClusterState, Table } from '#model'
import type { StateReader } from '#state'
import { monitored, rowsState } from '../../monitor/testing/monitored.ts'
import { aNode } from '../../state/test/fleet-words.ts'

export type ContainerWords = readonly [name: string, restarts: number, oomKilled: boolean]

/** Rows of the kind `pods`, as they are collected, by `namespace/name`. */
export const podRows = (pods: Readonly<Record<string, readonly ContainerWords[] | null>>): Table =>
  Table.of(
    ['status', 'containerRestarts'],
    Object.entries(pods).map(([id, containers]) => {
      const [namespace = '', name = ''] = id.split('/')
      return {
        ...{ namespace, name, labels: {} },
        values: { status: 'Running', containerRestarts: containers && JSON.stringify(containers) },
      }
    }),
  )

/** A cluster of one node, read just now. */
export function aCluster(name: string, rows: Table, at = Date.now()): ClusterState {
  const cluster = monitored({ name, nodes: [aNode('n1')], usage: { n1: {} }, at })
  return { ...cluster, tables: new Map(cluster.tables).set('pods', rowsState('pods', rows, at)) }
}

/** State that a test changes as it likes. */
export class TestState implements StateReader {
  readonly #make: (() => ClusterState)[] = []

  /** Read anew whenever it is asked for. */
  with(make: () => ClusterState): this {
    this.#make.push(make)
    return this
  }

  availability() {
    return { state: 'available' } as const
  }

  version(): number {
    return 1
  }

  clusters(): readonly ClusterState[] {
    return this.#make.map((make) => make())
  }

  cluster(name: string): ClusterState | undefined {
    return this.clusters().find((one) => one.name === name)
  }

  alerts(): readonly [] {
    return []
  }
}
