import type { Metrics } from '#runtime'
import type { Counts } from './messages.ts'

/** What the counters of a registry rose by since they were last asked. */
export class Counting {
  readonly #metrics: Metrics
  readonly #told = new Map<string, number>()

  constructor(metrics: Metrics) {
    this.#metrics = metrics
  }

  async more(): Promise<Counts['rows']> {
    const rows: Counts['rows'][number][] = []
    for (const { name, help, type, values } of await this.#metrics.registry.getMetricsAsJSON()) {
      // The library names the type by a string here, and by a number in its declarations.
      if (String(type) !== 'counter') continue
      for (const { labels, value } of values) {
        const key = JSON.stringify([name, labels])
        const more = value - (this.#told.get(key) ?? 0)
        if (more <= 0) continue
        this.#told.set(key, value)
        const texts = Object.entries(labels).map(([label, text]) => [label, String(text)] as const)
        rows.push({ name, help, labels: Object.fromEntries(texts), more })
      }
    }
    return rows
  }
}
