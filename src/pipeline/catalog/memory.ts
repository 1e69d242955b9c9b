import type { CompiledSource, SourceDefinition } from '#metricsource'
import { type Clock, invariant, type SourceId, systemClock } from '#model'
import { Listeners } from '#runtime'
import { idOf, type ReadDefinition, readByDefault, sameDefinition } from './definition.ts'
import { Picture } from './picture.ts'
import type { CatalogWriter, SourceCatalog } from './types.ts'

/**
 * The sources of a hub that is one process: written by its reconciler, read by its collectors and its API, gone with it.
 *
 *   loading ──first write──▶ ready
 */
export class MemoryCatalog implements SourceCatalog, CatalogWriter {
  readonly #read: ReadDefinition
  readonly #listeners = new Listeners()
  #picture = Picture.empty
  #version = 0

  #loading: { readonly since: number; readonly reason: string } | undefined

  /** @param options.read how definitions are read; default: as everywhere */
  constructor({
    read = readByDefault,
    clock = systemClock,
  }: { readonly read?: ReadDefinition; readonly clock?: Clock } = {}) {
    this.#read = read
    this.#loading = { since: clock.now(), reason: 'they are still being loaded' }
  }

  sources(): readonly CompiledSource[] {
    return this.#picture.sources
  }

  source(id: SourceId): CompiledSource | undefined {
    return this.#picture.source(id)
  }

  ofType(typeName: string): CompiledSource | undefined {
    return this.#picture.allOfType(typeName)[0]
  }

  allOfType(typeName: string): readonly CompiledSource[] {
    return this.#picture.allOfType(typeName)
  }

  version(): number {
    return this.#version
  }

  /** Once written, memory is always there. */
  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#loading
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  put(definition: SourceDefinition): Promise<void> {
    return new Promise((resolve) => {
      const source = this.#sourceOf(definition)
      this.#hold([...this.sources().filter(({ id }) => id !== source.id), source])
      resolve()
    })
  }

  remove(id: SourceId): Promise<void> {
    this.#hold(this.sources().filter((source) => source.id !== id))
    return Promise.resolve()
  }

  resync(definitions: readonly SourceDefinition[]): Promise<void> {
    return new Promise((resolve) => {
      const byId = new Map(definitions.map((definition) => [idOf(definition), definition]))
      this.#hold([...byId.values()].map((definition) => this.#sourceOf(definition)))
      resolve()
    })
  }

  stored(id: SourceId): Promise<SourceDefinition | undefined> {
    return Promise.resolve(this.source(id)?.definition)
  }

  /** There are no other programs to tell. */
  announce(): Promise<void> {
    return Promise.resolve()
  }

  #sourceOf(definition: SourceDefinition): CompiledSource {
    const known = this.source(idOf(definition))
    if (known && sameDefinition(known.definition, definition)) return known
    const source = this.#read(definition)
    invariant(source, 'a definition that was compiled can be read')
    return source
  }

  #hold(sources: readonly CompiledSource[]): void {
    const picture = new Picture(sources)
    const begins = this.#loading !== undefined
    this.#loading = undefined
    if (!begins && picture.equals(this.#picture)) return
    this.#picture = picture
    this.#version++
    this.#listeners.tell()
  }
}
