import type { ServedResource } from '../types.ts'

/** The Swagger 2.0 document of everything that is served. */
export function openapiV2(_resources: readonly ServedResource[]): object {
  return { swagger: '2.0', info: { title: 'Kubernetes', version: 'unversioned' }, paths: {}, definitions: {} }
}
