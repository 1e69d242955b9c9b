import { X509Certificate } from 'node:crypto'

/** SHA-256 of a certificate, hex. */
export const fingerprintOf = ({ fingerprint256 }: X509Certificate): string =>
  fingerprint256.replaceAll(':', '').toLowerCase()

/** Whether an authority signed it. */
export const isIssuedBy = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  certificate.checkIssued(authority) && certificate.verify(authority.publicKey)

/** @throws where one of them is no certificate */
export const authoritiesIn = (pem: string): X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  )

/** Of roots that somebody else may have written. undefined: they are not known */
export function trustedIn(roots: string | undefined): readonly X509Certificate[] | undefined {
  try {
    const trusted = authoritiesIn(roots ?? '')
    return trusted.length > 0 ? trusted : undefined
  } catch {
    return undefined
  }
}
