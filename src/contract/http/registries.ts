import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Name } from './parameters.ts'
import { HealthSchema } from './views.ts'

/** Container registries, as far as policies show them (type `registries`). */
const nullable = <T extends import('typebox').TSchema>(schema: T) => Type.Union([schema, Type.Null()])
const Instant = Type.Integer({ description: 'ms since the Unix epoch' })
const Document = (description: string) =>
  Type.Object({}, { additionalProperties: true, description: `${description}; readers ignore unknown fields` })

export const RegistryViewSchema = Type.Object({
  name: Type.String(),
  displayName: Type.String(),
  endpoint: Type.String(),
  type: Type.String(),
  labels: Type.Record(Type.String(), Type.String()),
  skipTlsVerify: Type.Boolean(),
  insecure: Type.Boolean(),
  intervalMs: Type.Integer(),
  health: HealthSchema,
  message: Type.String(),
  available: nullable(Type.Boolean({ description: 'null before the first probe' })),
  since: nullable(Instant),
  checkedAt: nullable(Instant),
  stale: Type.Boolean({ description: 'no probe for three intervals' }),
  responseMs: nullable(Type.Number()),
  recent: Type.Array(nullable(Type.Number()), {
    description: 'response times of the last measurements in ms, at most 30, oldest first; null: it was not available',
  }),
  version: Type.String(),
  features: Type.Record(Type.String(), Type.Boolean()),
  repositoryCount: nullable(Type.Integer()),
  repositories: nullable(Type.Array(Type.String(), { description: 'names, where there are at most 20' })),
  catalogTruncated: Type.Boolean(),
  code: Type.String({ description: 'empty where available' }),
  error: Type.String(),
  warnings: Type.Array(Type.Object({ code: Type.String(), message: Type.String() })),
})
/** One container registry with its last probe. */
export type RegistryView = Static<typeof RegistryViewSchema>

export const RegistryDetailSchema = Type.Intersect([
  RegistryViewSchema,
  Type.Object({
    measurements: Type.Array(Type.Tuple([Type.Integer(), nullable(Type.Number()), Type.Boolean()]), {
      description: '[ms since the Unix epoch, response time in ms or null, available], oldest first, of the last 24 h',
    }),
  }),
])
/** One registry with its probes of the last 24 hours. */
export type RegistryDetailView = Static<typeof RegistryDetailSchema>

export const listRegistries = {
  method: 'GET',
  url: '/api/v2/registries',
  access: 'filtered',
  schema: {
    operationId: 'listRegistries',
    summary: 'Registries the caller may see, by name',
    response: Type.Object({ items: Type.Array(RegistryViewSchema) }),
  },
} as const satisfies RouteContract

export const getRegistry = {
  method: 'GET',
  url: '/api/v2/registries/:name',
  access: 'filtered',
  schema: {
    operationId: 'getRegistry',
    summary: 'One registry with its probes of the last 24 hours',
    params: Type.Object({ name: Name('registry') }),
    response: RegistryDetailSchema,
  },
} as const satisfies RouteContract

export const v1RegistriesStatus = {
  method: 'GET',
  url: '/api/v1/registries/status',
  access: 'filtered',
  schema: {
    operationId: 'v1RegistriesStatus',
    summary: 'Registries the caller may see, by name, as documented',
    response: Type.Array(Document('name, spec, status')),
  },
} as const satisfies RouteContract
