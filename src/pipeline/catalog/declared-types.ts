import { resourceNamed } from '#resources'
import type { SourceCatalog } from './types.ts'

/** What a type has: all sources of one type name together, or the kind of that name that is compiled in. */
export interface DeclaredType {
  /** fields and computed names of any of them */
  readonly fields: readonly string[]
  /** undefined: all, as one of them says so */
  readonly filterableFields: readonly string[] | undefined
  readonly aggregations: readonly string[]
}

/** The types of a catalog, for those who check what names them (`AccessReconcilersOptions.types`). */
export interface DeclaredTypes {
  /** undefined: neither a source nor a kind that is compiled in has this type name */
  ofType(typeName: string): DeclaredType | undefined
  /** false until the catalog was read once: types may be missing */
  isComplete(): boolean
  onChange(listener: () => void): () => void
}

/** The names of types that policies may use because a MetricSource declares them. */
export function declaredTypes(catalog: SourceCatalog): DeclaredTypes {
  let wasRead = false
  return {
    ofType(typeName) {
      const declared = catalog.allOfType(typeName)
      const compiledIn = declared.length > 0 ? undefined : resourceNamed(typeName)
      const sources = compiledIn ? [compiledIn] : declared
      if (sources.length === 0) return undefined
      const filterable = compiledIn ? [undefined] : declared.map(({ filterableFields }) => filterableFields)
      return {
        fields: distinct(sources.flatMap(({ columns }) => columns.map(({ name }) => name))),
        filterableFields: filterable.includes(undefined) ? undefined : distinct(filterable.flatMap((one) => one ?? [])),
        aggregations: distinct(sources.flatMap(({ aggregations }) => aggregations.map(({ name }) => name))),
      }
    },
    isComplete() {
      wasRead ||= catalog.unavailable() === undefined
      return wasRead
    },
    onChange: (listener) => catalog.onChange(listener),
  }
}

const distinct = (names: readonly string[]): readonly string[] => [...new Set(names)]
