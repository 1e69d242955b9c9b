import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import { WireError } from './errors.ts'
import {
  type ConnectRequest,
  ConnectRequestSchema,
  type ConnectResponse,
  ConnectResponseSchema,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { checkWeight } from './weight.ts'

/** The one method, as gRPC names it. */
export const COLLECTOR_METHOD = '/clusterpulse.collector.v1.CollectorService/Connect'

/** What may be given to encodeRequest: fields left out are empty. */
export type RequestInit = MessageInitShape<typeof ConnectRequestSchema>
/** What may be given to encodeResponse: fields left out are empty. */
export type ResponseInit = MessageInitShape<typeof ConnectResponseSchema>

/** One message of an agent. */
export function encodeRequest(message: RequestInit): Uint8Array {
  return encode(ConnectRequestSchema, message)
}

/** @throws WireError where the bytes are no message. A `payload` without a case is one we do not know: newer, to be ignored. */
export function decodeRequest(bytes: Uint8Array): ConnectRequest {
  return decode(ConnectRequestSchema, bytes)
}

/** One message of the hub. */
export function encodeResponse(message: ResponseInit): Uint8Array {
  return encode(ConnectResponseSchema, message)
}

/** @throws WireError where the bytes are no message. A `payload` without a case is one we do not know: newer, to be ignored. */
export function decodeResponse(bytes: Uint8Array): ConnectResponse {
  return decode(ConnectResponseSchema, bytes)
}

function encode<D extends DescMessage>(schema: D, message: MessageInitShape<D>): Uint8Array {
  return toBinary(schema, create(schema, message), { writeUnknownFields: false })
}

function decode<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  checkWeight(schema, bytes)
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false })
  } catch (cause) {
    throw new WireError('the bytes are no message of this protocol', { cause })
  }
}
