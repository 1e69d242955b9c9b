import { createHash, X509Certificate } from 'node:crypto'
import type { PeerCertificate as TlsCertificate } from 'node:tls'
import type { PeerCertificate } from '../line/presented.ts'

/** @returns undefined where none was shown */
export function certificateOf(certificate: TlsCertificate): PeerCertificate | undefined {
  if (!certificate.raw) return undefined
  const key = keyOf(certificate.raw)
  return {
    commonName: valuesOf(certificate.subject?.CN).join(),
    organizations: valuesOf(certificate.subject?.O),
    subjectAltName: certificate.subjectaltname ?? '',
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    ...(key !== undefined && { key }),
    notAfter: Date.parse(certificate.valid_to),
  }
}

function keyOf(raw: Buffer): string | undefined {
  try {
    const { publicKey } = new X509Certificate(raw)
    return createHash('sha256')
      .update(publicKey.export({ type: 'spki', format: 'der' }))
      .digest('hex')
  } catch {
    return undefined // of a sort that OpenSSL does not read: it counts all the same
  }
}

// Node's types know one value of each kind; a subject may hold several.
const valuesOf = (value: unknown): readonly string[] =>
  [value].flat().filter((one): one is string => typeof one === 'string')
