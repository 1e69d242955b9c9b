import type { Tables } from '../protobuf/index.ts'

/** The binary form of Swagger 2.0, as gnostic's openapiv2 numbers its fields: of those we use. */
export const openapiTables: Tables = {
  Document: `
    1 swagger: string, 2 info: Info, 3 host: string, 4 basePath: string, 5 schemes: string[], 6 consumes: string[],
    7 produces: string[], 8 paths: Paths, 9 definitions: Schemas, 16 vendorExtension: NamedAny[]`,
  Info: '1 title: string, 2 version: string, 3 description: string',
  Paths: '1 vendorExtension: NamedAny[], 2 path: NamedPathItem[]',
  NamedPathItem: '1 name: string, 2 value: PathItem',
  PathItem: `
    1 ref: string, 2 get: Operation, 3 put: Operation, 4 post: Operation, 5 delete: Operation, 6 options: Operation,
    7 head: Operation, 8 patch: Operation, 9 parameters: ParametersItem[], 10 vendorExtension: NamedAny[]`,
  Operation: `
    1 tags: string[], 2 summary: string, 3 description: string, 5 operationId: string, 6 produces: string[],
    7 consumes: string[], 8 parameters: ParametersItem[], 9 responses: Responses, 10 schemes: string[],
    11 deprecated: bool, 13 vendorExtension: NamedAny[]`,
  ParametersItem: '1 parameter: Parameter, 2 reference: Reference',
  Reference: '1 ref: string',
  Parameter: '1 body: BodyParameter, 2 other: NonBodyParameter',
  BodyParameter: '1 description: string, 2 name: string, 3 in: string, 4 required: bool, 5 schema: Schema',
  NonBodyParameter: '3 query: QueryParameter, 4 path: PathParameter',
  QueryParameter:
    '1 required: bool, 2 in: string, 3 description: string, 4 name: string, 6 type: string, 20 uniqueItems: bool',
  PathParameter:
    '1 required: bool, 2 in: string, 3 description: string, 4 name: string, 5 type: string, 19 uniqueItems: bool',
  Responses: '1 responseCode: NamedResponse[]',
  NamedResponse: '1 name: string, 2 value: ResponseValue',
  ResponseValue: '1 response: Response, 2 reference: Reference',
  Response: '1 description: string, 2 schema: SchemaItem',
  SchemaItem: '1 schema: Schema',
  Schemas: '1 additionalProperties: NamedSchema[]',
  NamedSchema: '1 name: string, 2 value: Schema',
  Schema: `
    1 ref: string, 2 format: string, 3 title: string, 4 description: string, 5 default: Any, 6 multipleOf: double,
    7 maximum: double, 8 exclusiveMaximum: bool, 9 minimum: double, 10 exclusiveMinimum: bool, 11 maxLength: int64,
    12 minLength: int64, 13 pattern: string, 14 maxItems: int64, 15 minItems: int64, 16 uniqueItems: bool,
    17 maxProperties: int64, 18 minProperties: int64, 19 required: string[], 20 enum: Any[],
    21 additionalProperties: SchemaOrBoolean, 22 type: Types, 23 items: Items, 24 allOf: Schema[],
    25 properties: Schemas, 31 vendorExtension: NamedAny[]`,
  SchemaOrBoolean: '1 schema: Schema, 2 boolean: bool',
  Types: '1 value: string[]',
  Items: '1 schema: Schema[]',
  Any: '2 yaml: string',
  NamedAny: '1 name: string, 2 value: Any',
}
