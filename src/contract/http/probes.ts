import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'

export const healthz = {
  method: 'GET',
  url: '/healthz',
  access: 'public',
  schema: {
    operationId: 'healthz',
    summary: 'The process lives',
    response: Type.Object({ status: Type.String(), version: Type.String() }),
  },
} as const satisfies RouteContract

export const readyz = {
  method: 'GET',
  url: '/readyz',
  access: 'public',
  schema: {
    operationId: 'readyz',
    summary: 'The process can answer; with `verbose`, why not',
    querystring: Type.Object({ verbose: Type.Optional(Type.String({ maxLength: 10 })) }),
    response: Type.Object({
      status: Type.String(),
      version: Type.String({ description: 'of the program, with its commit' }),
      checks: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    }),
  },
} as const satisfies RouteContract

export const metrics = {
  method: 'GET',
  url: '/metrics',
  access: 'public',
  contentType: 'text/plain',
  schema: { operationId: 'metrics', summary: 'Measurements of the process itself', response: Type.String() },
} as const satisfies RouteContract

export const openApi = {
  method: 'GET',
  url: '/api/v1/openapi.json',
  access: 'public',
  schema: { operationId: 'openApi', summary: 'This description', response: Type.Object({}) },
} as const satisfies RouteContract
