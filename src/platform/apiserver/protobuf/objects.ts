import type { ApiObject } from '../types.ts'

/** Whether objects of this kind have a table. */
export const canEncode = (_apiVersion: string, _kind: string): boolean => false

/** @throws UnencodableFieldError for a field no table knows. */
export const encodeObject = (_object: ApiObject): Uint8Array => new Uint8Array()

/** @throws UnencodableFieldError for a field no table knows. */
export const encodeList = (
  _apiVersion: string,
  _kind: string,
  _items: readonly ApiObject[],
  _metadata: object,
): Uint8Array => new Uint8Array()

/** One frame of a watch: its length in 4 bytes, then the event. */
export const encodeWatchEvent = (_type: string, _object: Uint8Array): Uint8Array => new Uint8Array()

/** @throws ProtobufError for bytes that are no message of a known kind. */
export const decodeObject = (_bytes: Uint8Array): ApiObject => {
  throw new Error('not known yet')
}
