import type { Schema, ServedResource } from '../types.ts'
import { type Operation, operationsOf, type Parameter } from './operations.ts'
import { Components } from './schemas.ts'
import { sorted } from './v3.ts'

const BASE = '#/definitions/'

/** The Swagger 2.0 document of everything that is served. */
export function openapiV2(resources: readonly ServedResource[]): object {
  const components = new Components(BASE, saidInV2)
  for (const resource of resources) components.add(resource)
  components.addShared(uniqueVersions(resources))
  components.addScale()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of resources.flatMap(operationsOf)) {
    const path = paths[operation.path] ?? { parameters: operation.place.map(parameter) }
    path[operation.method] = described(operation)
    paths[operation.path] = path
  }
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: sorted(paths),
    definitions: sorted(components.schemas),
  }
}

function uniqueVersions(resources: readonly ServedResource[]): ServedResource[] {
  const seen = new Set<string>()
  return resources.filter(({ group, version }) => {
    const id = `${group}/${version}`
    return seen.has(id) ? false : seen.add(id)
  })
}

/**
 * Version 2 has no alternatives and no null, and clients refuse what is not exactly of the type that is said. Where we
 * cannot say the type it says none, which is anything.
 */
function saidInV2(schema: Schema): Record<string, unknown> {
  const { anyOf, oneOf, allOf: _, not: __, nullable, ...said } = schema
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') {
    const { 'x-kubernetes-int-or-string': ___, ...rest } = said
    return schema.format === 'int-or-string' ? { ...rest, type: 'string' } : rest
  }
  if ((anyOf ?? oneOf) && !schema.type) return { ...said, type: 'string' }
  const open = nullable || schema['x-kubernetes-preserve-unknown-fields']
  if (!open) return said
  const { type, properties, items, ...free } = said
  // What is open keeps its documented fields only where other ones may stand beside them.
  return nullable ? free : { ...free, ...(type === 'object' ? { type } : {}) }
}

const parameter = ({ name, in: where, type, description }: Parameter) => ({
  name,
  in: where,
  type,
  uniqueItems: true,
  description,
  ...(where === 'path' ? { required: true } : {}),
})

const FORMATS = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

function described({ id, tag, description, action, gvk, query, body, patches, result, codes }: Operation): object {
  const schema = (name: string) => ({ $ref: BASE + name })
  const answer = (words: string) => ({ description: words, schema: schema(result) })
  return {
    description,
    consumes: patches ?? ['*/*'],
    produces: FORMATS,
    schemes: ['https'],
    tags: [tag],
    operationId: id,
    parameters: [
      ...(body ? [{ name: 'body', in: 'body', required: !action.startsWith('delete'), schema: schema(body) }] : []),
      ...query.map(parameter),
    ],
    responses: {
      '200': answer('OK'),
      ...Object.fromEntries(codes.map((code) => [code, answer(code === '201' ? 'Created' : 'Accepted')])),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  }
}
