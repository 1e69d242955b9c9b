/**
 * What the API tells of itself in OpenAPI, for kubectl explain, apply, diff and every client that reads schemas.
 *
 *   openapiV3Index → one address per group and version, with the hash of what is behind it
 *   openapiV3      → the document of one group and version
 *   openapiV2      → everything in one Swagger document, also in its binary form
 *
 * Pure functions over the served resources; who serves them keeps the answers per set of resources. Components have the
 * names of the original API, since clients look for them by name.
 */
export { openapiV2 } from './v2.ts'
export { openapiV2Protobuf } from './v2-protobuf.ts'
export { openapiV3, openapiV3Index } from './v3.ts'
