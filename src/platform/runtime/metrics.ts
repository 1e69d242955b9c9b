import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** Our own metrics, one registry per process, in the Prometheus text format. No module-level registry. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #collects = new Map<string, (gauge: Gauge) => void>()

  constructor(labels: Readonly<Record<string, string>> = {}, { processMetrics = true } = {}) {
    this.#registry.setDefaultLabels({ ...labels })
    if (processMetrics) collectDefaultMetrics({ register: this.#registry })
  }

  counter<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return (
      (this.#registry.getSingleMetric(name) as Counter<L> | undefined) ??
      new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] })
    )
  }

  /** Of two with the same name the later `collect` counts: what it measured was made anew. */
  gauge<L extends string = string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L> {
    if (collect) this.#collects.set(name, collect as (gauge: Gauge) => void)
    const known = this.#registry.getSingleMetric(name) as Gauge<L> | undefined
    if (known) return known
    const collects = this.#collects
    return new Gauge<L>({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      ...(collect && {
        collect() {
          collects.get(name)?.(this as Gauge)
        },
      }),
    })
  }

  histogram<L extends string = string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: readonly number[],
  ): Histogram<L> {
    return (
      (this.#registry.getSingleMetric(name) as Histogram<L> | undefined) ??
      new Histogram({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers: [this.#registry] })
    )
  }

  /** for a server that answers /metrics */
  get registry(): Registry {
    return this.#registry
  }
}
