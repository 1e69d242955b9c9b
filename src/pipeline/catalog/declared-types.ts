import type { SourceCatalog } from './types.ts'

/** What sources declare of a type, all of one type name together. */
export interface DeclaredType {
  /** fields and computed names of any of them */
  readonly fields: readonly string[]
  /** undefined: all, as one of them says so */
  readonly filterableFields: readonly string[] | undefined
  readonly aggregations: readonly string[]
}

/** The types of a catalog, for those who check what names them (`AccessReconcilersOptions.types`). */
export interface DeclaredTypes {
  /** undefined: no source has this type name */
  ofType(typeName: string): DeclaredType | undefined
  /** false until the catalog was read once: types may be missing */
  isComplete(): boolean
  onChange(listener: () => void): () => void
}

export function declaredTypes(catalog: SourceCatalog): DeclaredTypes {
  let wasRead = false
  return {
    ofType(typeName) {
      const sources = catalog.allOfType(typeName)
      if (sources.length === 0) return undefined
      const filterable = sources.map(({ filterableFields }) => filterableFields)
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
