import type { Metadata } from '@grpc/grpc-js'
import type { Presented } from '../line/presented.ts'
import type { RawCall } from './grpc-line.ts'
import { certificateOf } from './peer-certificate.ts'

const MAX_TOKEN = 8_192

/** What a call showed by itself: its token, and the client certificate if it verified. */
export function presentedBy(call: RawCall, address: string): Presented {
  const token = bearerOf(call.metadata)
  const shown = call.getAuthContext().sslPeerCertificate
  const certificate = shown && certificateOf(shown)
  return {
    address,
    ...(token !== undefined && { token }),
    ...(certificate && { certificate }),
  }
}

export const showsCredential = ({ token, certificate }: Presented): boolean =>
  token !== undefined || certificate !== undefined

function bearerOf(metadata: Metadata): string | undefined {
  const [header] = metadata.get('authorization')
  if (typeof header !== 'string' || header.length > MAX_TOKEN) return undefined
  const token = /^bearer +(\S+)$/i.exec(header)?.[1]
  return token
}
