import { parseMillicores, parseQuantity } from '#model'
import type { NodeDocument } from './documents.ts'

/** Totals of a cluster, or of all that are told of. null: withheld, or not known. */
export interface Summary {
  readonly nodes: number | null
  readonly ready_nodes: number | null
  /** among the nodes: in no percent */
  readonly nodes_without_metrics: number | null
  readonly pods: number
  /** among the pods: those that no list of usage tells of, such as finished ones */
  readonly pods_without_metrics: number | null
  readonly cpu_percent: number | null
  readonly memory_percent: number | null
  readonly disk_percent: number | null
  readonly alerts: number
}

/** Percents are of sums, never means of percents; nodes without metrics count in neither. */
export class Sums {
  readonly #counts = {
    nodes: null as number | null,
    ready: null as number | null,
    nodesWithout: null as number | null,
    podsWithout: null as number | null,
  }
  #pods = 0
  alerts = 0
  readonly #used = { cpu: 0, memory: 0, disk: 0 }
  readonly #capacity = { cpu: 0, memory: 0, disk: 0 }

  /** @param count of all nodes that are seen, and of those that are ready */
  addNodes(count: { readonly all: number; readonly ready: number }): void {
    this.#add('nodes', count.all)
    this.#add('ready', count.ready)
  }

  /** @param nodes as documents, by who sees what they use */
  addUsage(nodes: readonly NodeDocument[]): void {
    this.#add('nodesWithout', nodes.filter(({ metrics_available }) => metrics_available === false).length)
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

  /** @param without usage; null: withheld */
  addPods(all: number, without: number | null): void {
    this.#pods += all
    if (without !== null) this.#add('podsWithout', without)
  }

  #add(what: 'nodes' | 'ready' | 'nodesWithout' | 'podsWithout', count: number): void {
    this.#counts[what] = (this.#counts[what] ?? 0) + count
  }

  summary(): Summary {
    const percent = (of: 'cpu' | 'memory' | 'disk') =>
      this.#capacity[of] === 0 ? null : (this.#used[of] / this.#capacity[of]) * 100
    return {
      nodes: this.#counts.nodes,
      ready_nodes: this.#counts.ready,
      nodes_without_metrics: this.#counts.nodesWithout,
      pods: this.#pods,
      pods_without_metrics: this.#counts.podsWithout,
      cpu_percent: percent('cpu'),
      memory_percent: percent('memory'),
      disk_percent: percent('disk'),
      alerts: this.alerts,
    }
  }
}
