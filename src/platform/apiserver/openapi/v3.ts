import { createHash } from 'node:crypto'
import type { Schema, ServedResource } from '../types.ts'
import { type Operation, operationsOf, type Parameter } from './operations.ts'
import { Components } from './schemas.ts'

const BASE = '#/components/schemas/'

const pathOf = (group: string, version: string): string => (group ? `apis/${group}/${version}` : `api/${version}`)

/**
 * The address of the document of every group and version, with a hash that changes with the document.
 * @param prefix of the path the API is mounted under
 */
export function openapiV3Index(resources: readonly ServedResource[], prefix = ''): object {
  const paths: Record<string, { serverRelativeURL: string }> = {}
  for (const { group, version } of resources) {
    const path = pathOf(group, version)
    if (paths[path]) continue
    const document = JSON.stringify(openapiV3(group, version, resources))
    const hash = createHash('sha256').update(document).digest('hex').toUpperCase()
    paths[path] = { serverRelativeURL: `${prefix}/openapi/v3/${path}?hash=${hash}` }
  }
  return { paths }
}

/** The OpenAPI 3.0 document of one group and version; undefined where nothing of it is served. */
export function openapiV3(group: string, version: string, resources: readonly ServedResource[]): object | undefined {
  const own = resources.filter((each) => each.group === group && each.version === version)
  if (own.length === 0) return undefined
  const components = new Components(BASE, saidInV3)
  for (const resource of own) components.add(resource)
  components.addShared([{ group, version }])
  const operations = own.flatMap(operationsOf)
  if (operations.some(({ gvk }) => gvk.kind === 'Scale')) components.addScale()
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations) {
    const path = paths[operation.path] ?? { parameters: operation.place.map(parameter) }
    path[operation.method] = described(operation)
    paths[operation.path] = path
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: sorted(paths),
    components: { schemas: sorted(components.schemas) },
  }
}

export const sorted = <T>(record: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Version 3 says nearly everything our schemas say; a number or a text needs other words. */
function saidInV3(schema: Schema): Record<string, unknown> {
  if (schema['x-kubernetes-int-or-string'] && schema.format === 'int-or-string') {
    const { 'x-kubernetes-int-or-string': _, ...rest } = schema
    return { ...rest, oneOf: [{ type: 'integer' }, { type: 'string' }] }
  }
  return { ...schema }
}

const parameter = ({ name, in: where, type, description }: Parameter) => ({
  name,
  in: where,
  description,
  ...(where === 'path' ? { required: true } : {}),
  schema: { type, uniqueItems: true },
})

const FORMATS = ['application/json', 'application/vnd.kubernetes.protobuf', 'application/yaml']

function described({ id, tag, description, action, gvk, query, body, patches, result, codes }: Operation): object {
  const contentOf = (types: readonly string[], name: string) =>
    Object.fromEntries(types.map((type) => [type, { schema: { $ref: BASE + name } }]))
  const answer = (words: string) => ({ description: words, content: contentOf(FORMATS, result) })
  return {
    tags: [tag],
    description,
    operationId: id,
    ...(query.length > 0 ? { parameters: query.map(parameter) } : {}),
    ...(body
      ? {
          requestBody: {
            content: contentOf(patches ?? ['*/*'], body),
            ...(action.startsWith('delete') ? {} : { required: true }),
          },
        }
      : {}),
    responses: {
      '200': answer('OK'),
      ...Object.fromEntries(codes.map((code) => [code, answer(code === '201' ? 'Created' : 'Accepted')])),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': gvk,
  }
}
