import type { CompiledSource, SourceDefinition } from '#metricsource'
import type { SourceId } from '#model'

/** Which MetricSources are in force: read from memory, no call waits. */
export interface SourceCatalog {
  /** sorted by id */
  sources(): readonly CompiledSource[]
  source(id: SourceId): CompiledSource | undefined
  /** the one whose rows a type name means: of several the first by id */
  ofType(typeName: string): CompiledSource | undefined
  /** all of that type name, sorted by id; [] where none */
  allOfType(typeName: string): readonly CompiledSource[]
  /** equal versions mean equal answers */
  version(): number
  /** undefined while the answers are those of the store; else since when they may be old, and why */
  unavailable(): { readonly since: number; readonly reason: string } | undefined
  onChange(listener: () => void): () => void
}

/** Writes them, as documented (specification: state 5). */
export interface CatalogWriter {
  put(definition: SourceDefinition): Promise<void>
  /** unknown: nothing happens. Collected data goes by the state (`source-removed`), not here. */
  remove(id: SourceId): Promise<void>
  /** Makes the store hold exactly these. */
  resync(definitions: readonly SourceDefinition[]): Promise<void>
  /** what the store holds of this id, asked for there and now; undefined: nothing that can be read */
  stored?(id: SourceId): Promise<SourceDefinition | undefined>
  /** called where the store came back empty or was changed by others: only a resync helps */
  onLost?(listener: () => void): () => void
  /** tells other programs on channel `metricsource-events`: `reconciled` {resources, clusters, errors}, `deleted` null */
  announce(type: 'reconciled' | 'deleted', id: SourceId, data: Readonly<Record<string, unknown>> | null): Promise<void>
}
