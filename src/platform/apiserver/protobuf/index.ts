/**
 * Kubernetes' binary form of objects: what kubectl sends of built-in kinds, and what clients read large lists in.
 *
 *   object → message table → bytes in the envelope `k8s\0` + runtime.Unknown, and back
 *
 * One table per message says for each field its number and kind; encoder and decoder walk the same table. A decoded
 * object is the JSON the API would give. What no table knows is not encoded: the caller answers JSON instead.
 */
export { ProtobufError, UnencodableFieldError } from './errors.ts'
export {
  canEncode,
  decodeMessage,
  decodeObject,
  encodeList,
  encodeMessage,
  encodeObject,
  encodeWatchEvent,
} from './objects.ts'
export { MessageCatalogue, type Tables } from './table.ts'
