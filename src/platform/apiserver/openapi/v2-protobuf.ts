import { encodeMessage, MessageCatalogue } from '../protobuf/index.ts'
import { openapiTables } from './v2-tables.ts'

type Json = Readonly<Record<string, unknown>>

const messages = new MessageCatalogue({ openapi: openapiTables })

/** The binary form of a Swagger 2.0 document: the only one kubectl asks for. */
export function openapiV2Protobuf(document: object): Buffer {
  const { paths, definitions, ...head } = document as Json
  return encodeMessage(messages.get('openapi.Document'), {
    ...head,
    paths: { path: named(paths as Json, pathItem) },
    definitions: schemas(definitions as Json),
  })
}

const named = (record: Json, shape: (value: Json) => Json): Json[] =>
  Object.entries(record).map(([name, value]) => ({ name, value: shape(value as Json) }))

const schemas = (record: Json): Json => ({ additionalProperties: named(record, schema) })

/** Any value is kept as YAML, and JSON is YAML. */
const any = (value: unknown): Json => ({ yaml: JSON.stringify(value) })

/** What begins with `x-` stands apart. */
function apart(value: Json): { own: Record<string, unknown>; extensions: Json } {
  const extensions = Object.entries(value).filter(([name]) => name.startsWith('x-'))
  const own = Object.entries(value).filter(([name]) => !name.startsWith('x-'))
  const vendorExtension = extensions.map(([name, each]) => ({ name, value: any(each) }))
  return { own: Object.fromEntries(own), extensions: vendorExtension.length > 0 ? { vendorExtension } : {} }
}

function pathItem(value: Json): Json {
  const { own, extensions } = apart(value)
  const { parameters, ...operations } = own
  const shaped = Object.entries(operations).map(([method, each]) => [method, operation(each as Json)])
  return { ...Object.fromEntries(shaped), ...parametersOf(parameters), ...extensions }
}

function operation(value: Json): Json {
  const { own, extensions } = apart(value)
  const { responses, parameters, ...rest } = own
  return {
    ...rest,
    ...parametersOf(parameters),
    responses: { responseCode: named((responses ?? {}) as Json, response) },
    ...extensions,
  }
}

const parametersOf = (list: unknown): Json => (Array.isArray(list) ? { parameters: list.map(parameter) } : {})

function parameter(value: Json): Json {
  if (value.$ref !== undefined) return { reference: { ref: value.$ref } }
  const { schema: own, ...rest } = value
  if (value.in === 'body') return { parameter: { body: { ...rest, ...(own ? { schema: schema(own as Json) } : {}) } } }
  return { parameter: { other: value.in === 'path' ? { path: rest } : { query: rest } } }
}

function response(value: Json): Json {
  const { schema: own, ...rest } = value
  return { response: { ...rest, ...(own ? { schema: { schema: schema(own as Json) } } : {}) } }
}

function schema(value: Json): Json {
  const { own, extensions } = apart(value)
  const { $ref, type, items, properties, additionalProperties: more, allOf, enum: values, ...rest } = own
  return {
    ...rest,
    ...extensions,
    ...($ref === undefined ? {} : { ref: $ref }),
    ...('default' in rest ? { default: any(rest.default) } : {}),
    ...(type === undefined ? {} : { type: { value: [type] } }),
    ...(items === undefined ? {} : { items: { schema: [schema(items as Json)] } }),
    ...(properties === undefined ? {} : { properties: schemas(properties as Json) }),
    ...(more === undefined
      ? {}
      : { additionalProperties: typeof more === 'boolean' ? { boolean: more } : { schema: schema(more as Json) } }),
    ...(allOf === undefined ? {} : { allOf: (allOf as Json[]).map(schema) }),
    ...(values === undefined ? {} : { enum: (values as unknown[]).map(any) }),
  }
}
