import type { PeerCertificate as TlsCertificate } from 'node:tls'
import type { PeerCertificate } from '../line/presented.ts'

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

// Node's types know one value of each kind; a subject may hold several.
const valuesOf = (value: unknown): readonly string[] =>
  [value].flat().filter((one): one is string => typeof one === 'string')
