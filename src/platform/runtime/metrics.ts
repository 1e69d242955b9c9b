import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** What a registry held at one moment, as plain data: it may cross to another process. */
export type MetricsMoment = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** One series of a gauge at one moment. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

type ReadSeries = () => Iterable<Series> | Promise<Iterable<Series>>

/** Series that need not have the same labels: read whenever somebody asks. */
class SeriesGauge extends Gauge {
  readonly #read: ReadSeries

  constructor(name: string, help: string, registry: Registry, read: ReadSeries) {
    super({ name, help, registers: [registry] })
    this.#read = read
  }

  override async get(): Promise<Awaited<ReturnType<Gauge['get']>>> {
    const values = Array.from(await this.#read(), ({ labels, value }) => ({ labels: { ...labels }, value }))
    return { ...(await super.get()), values }
  }
}

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

  /** A gauge whose series are all made anew whenever somebody asks, each with labels of its own. Of two with the same name the later counts. */
  series(name: string, help: string, read: ReadSeries): void {
    this.#registry.removeSingleMetric(name)
    new SeriesGauge(name, help, this.#registry, read)
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

  /** what it holds now, for `metricsText` */
  moment(): Promise<MetricsMoment> {
    return this.#registry.getMetricsAsJSON()
  }

  /** for a server that answers /metrics */
  get registry(): Registry {
    return this.#registry
  }
}

/** `clusterpulse_build_info{version="…"} 1`: which build measures, in the form that Prometheus joins to the rest. */
export function countBuild(metrics: Metrics, version: string): void {
  metrics.gauge('clusterpulse_build_info', 'Always 1; its label names the build', ['version']).set({ version }, 1)
}

/** The text format of what several processes hold together; their default labels tell them apart. */
export async function metricsText(moments: readonly MetricsMoment[]): Promise<string> {
  // Nothing is summed, averaged or left out: no two of them have a series with the same labels.
  const apart = moments.map((moment) => moment.map((metric) => ({ ...metric, aggregator: 'sum' as const })))
  return AggregatorRegistry.aggregate(apart).metrics()
}
