import { parseMillicores, parseQuantity } from '#model'
import type { NodeDocument } from './documents.ts'

/** Totals of a cluster, or of all that are told of. null: withheld, or not known. */
export interface Summary {
  readonly nodes: number | null
  readonly ready_nodes: number | null
  readonly pods: number
  readonly cpu_percent: number | null
  readonly memory_percent: number | null
  readonly disk_percent: number | null
  readonly alerts: number
}

/** Percents are of sums, never means of percents; nodes without metrics count in neither. */
export class Sums {
  #nodes: number | null = null
  #ready: number | null = null
  pods = 0
  alerts = 0
  readonly #used = { cpu: 0, memory: 0, disk: 0 }
  readonly #capacity = { cpu: 0, memory: 0, disk: 0 }

  addNodes(nodes: readonly NodeDocument[], ready: number): void {
    this.#nodes = (this.#nodes ?? 0) + nodes.length
    this.#ready = (this.#ready ?? 0) + ready
    for (const node of nodes) {
      if (node.metrics_available === false) continue
      this.#used.cpu += parseMillicores(node.cpu_usage) ?? 0
      this.#capacity.cpu += parseMillicores(node.cpu_capacity) ?? 0
      this.#used.memory += parseQuantity(node.memory_usage) ?? 0
      this.#capacity.memory += parseQuantity(node.memory_capacity) ?? 0
      this.#used.disk += node.disk_usage
      this.#capacity.disk += node.disk_capacity
    }
  }

  summary(): Summary {
    const percent = (of: 'cpu' | 'memory' | 'disk') =>
      this.#capacity[of] === 0 ? null : (this.#used[of] / this.#capacity[of]) * 100
    return {
      nodes: this.#nodes,
      ready_nodes: this.#ready,
      pods: this.pods,
      cpu_percent: percent('cpu'),
      memory_percent: percent('memory'),
      disk_percent: percent('disk'),
      alerts: this.alerts,
    }
  }
}
