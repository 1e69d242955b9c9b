import type { PeerCertificate as TlsCertificate } from 'node:tls'
import type { Metadata } from '@grpc/grpc-js'
import type { PeerCertificate, Presented } from '../line/presented.ts'
import type { RawCall } from './grpc-line.ts'

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

/** @returns undefined where none was shown */
export function certificateOf(certificate: TlsCertificate): PeerCertificate | undefined {
  if (!certificate.raw) return undefined
  return {
    commonName: valuesOf(certificate.subject?.CN).join(),
    organizations: valuesOf(certificate.subject?.O),
    subjectAltName: certificate.subjectaltname ?? '',
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    notAfter: Date.parse(certificate.valid_to),
  }
}

export const showsCredential = ({ token, certificate }: Presented): boolean =>
  token !== undefined || certificate !== undefined

// Node's types know one value of each kind; a subject may hold several.
const valuesOf = (value: unknown): readonly string[] =>
  [value].flat().filter((one): one is string => typeof one === 'string')

function bearerOf(metadata: Metadata): string | undefined {
  const [header] = metadata.get('authorization')
  if (typeof header !== 'string' || header.length > MAX_TOKEN) return undefined
  const token = /^bearer +(\S+)$/i.exec(header)?.[1]
  return token
}
