import { type Static, Type } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import type { ProbeResult, RegistryFacts } from './types.ts'

/** What is read back from a file or from Redis is checked: somebody else may have written it. */
const Features = Type.Record(Type.String(), Type.Boolean())
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const ResultSchema = Type.Object({
  at: Type.Number({ minimum: 0 }),
  available: Type.Boolean(),
  responseMs: nullable(Type.Number({ minimum: 0 })),
  version: Type.String(),
  features: Features,
  repositoryCount: nullable(Type.Integer({ minimum: 0 })),
  isCatalogTruncated: Type.Boolean(),
  repositories: nullable(Type.Array(Type.String())),
  health: Type.Enum(['healthy', 'degraded', 'unhealthy', 'unknown']),
  message: Type.String(),
  code: Type.String(),
  error: Type.String(),
  warnings: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
})

const FactsSchema = Type.Object({
  name: Type.String({ minLength: 1 }),
  displayName: Type.String(),
  endpoint: Type.String(),
  type: Type.String(),
  labels: Type.Record(Type.String(), Type.String()),
  insecure: Type.Boolean(),
  skipTlsVerify: Type.Boolean(),
  caPem: Type.Optional(Type.String()),
  allowPrivateRedirects: Type.Boolean(),
  credentialsRef: Type.Optional(Type.Object({ name: Type.String(), namespace: Type.String() })),
  intervalMs: Type.Number({ exclusiveMinimum: 0 }),
  timeoutMs: Type.Number({ exclusiveMinimum: 0 }),
  checkCatalog: Type.Boolean(),
  catalogPageSize: Type.Optional(Type.Integer({ minimum: 1 })),
  healthCheckPaths: Type.Array(Type.String()),
})

// Made on first use: nothing works at import time.
let resultCheck: Validator | undefined
let factsCheck: Validator | undefined

/** undefined: it is not what we write. */
export function readResult(value: unknown): ProbeResult | undefined {
  resultCheck ??= Compile(ResultSchema)
  if (!resultCheck.Check(value)) return undefined
  const { at, available, responseMs, version, features, repositoryCount, ...more } = value as Static<
    typeof ResultSchema
  >
  const { isCatalogTruncated, repositories, health, message, code, error, warnings } = more
  return {
    ...{ at, available, responseMs, version, features, repositoryCount, isCatalogTruncated, repositories },
    ...{ health: health as ProbeResult['health'], message, code, error, warnings }, // one of the enum
  }
}

/** undefined: it is not what we write. */
export function readFacts(value: unknown): RegistryFacts | undefined {
  factsCheck ??= Compile(FactsSchema)
  if (!factsCheck.Check(value)) return undefined
  return factsOf(value as Static<typeof FactsSchema>)
}

type Loose<T> = { readonly [K in keyof T]?: T[K] | undefined }

/** Facts and nothing else, with every field there, so that equal ones compare as equal. */
export function factsOf(
  given: Omit<RegistryFacts, 'caPem' | 'credentialsRef' | 'catalogPageSize'> &
    Loose<Pick<RegistryFacts, 'caPem' | 'credentialsRef' | 'catalogPageSize'>>,
): RegistryFacts {
  const { name, displayName, endpoint, type, labels, insecure, skipTlsVerify, allowPrivateRedirects } = given
  const { intervalMs, timeoutMs, checkCatalog, healthCheckPaths } = given
  return {
    ...{ name, displayName, endpoint, type, labels, insecure, skipTlsVerify, allowPrivateRedirects },
    ...{ intervalMs, timeoutMs, checkCatalog, healthCheckPaths },
    caPem: given.caPem,
    credentialsRef: given.credentialsRef && {
      name: given.credentialsRef.name,
      namespace: given.credentialsRef.namespace,
    },
    catalogPageSize: given.catalogPageSize,
  }
}
