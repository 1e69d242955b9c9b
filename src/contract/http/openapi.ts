import type { TSchema } from 'typebox'
import type { RouteContract } from './contract.ts'
import { problemStatus } from './problems.ts'
import { ProblemSchema } from './views.ts'

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
}

function parameters(schema: TSchema | undefined, place: 'path' | 'query'): object[] {
  const { properties = {}, required = [] } = (schema ?? {}) as ObjectSchema
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }))
}

function operation(route: RouteContract): object {
  const { operationId, summary, params, querystring, form, body, response } = route.schema
  return {
    operationId,
    summary,
    parameters: [...parameters(params, 'path'), ...parameters(querystring, 'query')],
    ...(form && { requestBody: { content: { 'application/x-www-form-urlencoded': { schema: form } } } }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    security: route.access === 'public' ? [] : [{ proxy: [] }, { bearer: [] }, { session: [] }],
    responses: {
      200: { description: 'success', content: { [route.contentType ?? 'application/json']: { schema: response } } },
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

/** The OpenAPI 3.1 document of these routes. Pure: equal routes and version give an equal document. */
export function openApiDocument(routes: readonly RouteContract[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = route.url.replace(/:([A-Za-z]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  const codes = Object.entries(problemStatus).map(([code, status]) => `${code} (${status})`)
  const document = {
    openapi: '3.1.0',
    info: { title: 'ClusterPulse', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    paths,
    components: {
      securitySchemes: {
        proxy: { type: 'apiKey', in: 'header', name: 'X-Forwarded-User', description: 'set by a trusted proxy only' },
        bearer: { type: 'http', scheme: 'bearer', description: 'a token of a configured issuer or of Kubernetes' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'session',
          description: 'after signing in; a POST then needs the header X-ClusterPulse-Request: 1 and the same origin',
        },
      },
      responses: {
        Problem: {
          description: `codes: ${codes.join(', ')}`,
          content: { 'application/json': { schema: ProblemSchema } },
        },
      },
    },
  }
  // Schemas carry marks of their own library that are no part of JSON Schema; text does not.
  return JSON.parse(JSON.stringify(document)) as object
}
