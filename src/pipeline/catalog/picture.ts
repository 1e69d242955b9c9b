import type { CompiledSource } from '#metricsource'
import type { SourceId } from '#model'

/** The sources in force at one moment, arranged for every question. Immutable. */
export class Picture {
  readonly sources: readonly CompiledSource[]
  readonly #byId: ReadonlyMap<SourceId, CompiledSource>
  readonly #byType = new Map<string, CompiledSource[]>()

  constructor(sources: Iterable<CompiledSource>) {
    this.sources = [...sources].sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#byId = new Map(this.sources.map((source) => [source.id, source]))
    for (const source of this.sources) {
      const known = this.#byType.get(source.typeName)
      if (known) known.push(source)
      else this.#byType.set(source.typeName, [source])
    }
  }

  static readonly empty = new Picture([])

  source(id: SourceId): CompiledSource | undefined {
    return this.#byId.get(id)
  }

  allOfType(typeName: string): readonly CompiledSource[] {
    return this.#byType.get(typeName) ?? []
  }

  /** Holds the very same objects. */
  equals(other: Picture): boolean {
    return (
      this.sources.length === other.sources.length &&
      this.sources.every((source, place) => source === other.sources[place])
    )
  }
}
