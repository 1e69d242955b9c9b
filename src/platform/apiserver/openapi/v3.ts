import type { ServedResource } from '../types.ts'

/** The address of the document of every group and version, with a hash that changes with the document. */
export function openapiV3Index(_resources: readonly ServedResource[], _prefix = ''): object {
  return { paths: {} }
}

/** The OpenAPI 3.0 document of one group and version; undefined where nothing of it is served. */
export function openapiV3(
  _group: string,
  _version: string,
  _resources: readonly ServedResource[],
): object | undefined {
  return undefined
}
