import { createHash, verify, type X509Certificate } from 'node:crypto'
import { COMMON_NAME, type NameWord, ORGANIZATION } from './certificate-request.ts'
import { BACKDATE_MS } from './certificates.ts'
import { type MemberName, subjectOf } from './member.ts'

/** What a certificate says of who holds it. */
export type MemberCertificate =
  /** it counts */
  | ({ readonly kind: 'valid' } & Holder)
  /** it ended not long ago: good for asking for the next one, by proof of its key, and for nothing else */
  | ({ readonly kind: 'ended' } & Holder)
  | { readonly kind: 'refused'; readonly message: string }

interface Holder {
  readonly member: MemberName
  /** hex */
  readonly serial: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** of its key, hex */
  readonly keySha256: string
}

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'

/** Reads a member's certificate by the CAs that signed members, whether they sign still or not. */
export function readMemberCertificate(
  certificate: X509Certificate,
  by: {
    readonly roots: readonly X509Certificate[]
    readonly nowMs: number
    /** after its end, ms */
    readonly graceMs: number
    readonly isRevoked: (member: MemberName, issuedAtMs: number) => boolean
  },
): MemberCertificate {
  const refused = (message: string): MemberCertificate => ({ kind: 'refused', message })
  if (!by.roots.some((root) => certificate.checkIssued(root) && certificate.verify(root.publicKey)))
    return refused('the certificate was signed by no CA of this hub')
  if (certificate.ca || certificate.subjectAltName || !isForClients(certificate))
    return refused("the certificate is not a member's")
  const subject = subjectOf(wordsOf(certificate))
  if (typeof subject === 'string') return refused(subject)
  const { member } = subject
  const [notBeforeMs, notAfterMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  const who = `the certificate of cluster ${member.cluster}`
  if (by.isRevoked(member, notBeforeMs + BACKDATE_MS)) return refused(`${who} was revoked`)
  if (by.nowMs < notBeforeMs) return refused(`${who} counts from ${certificate.validFrom} on`)
  if (by.nowMs > notAfterMs + by.graceMs) return refused(`${who} ended at ${certificate.validTo}: join again`)
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' })
  const keySha256 = createHash('sha256').update(spki).digest('hex')
  const serial = certificate.serialNumber.toLowerCase()
  return { kind: by.nowMs <= notAfterMs ? 'valid' : 'ended', member, serial, notBeforeMs, notAfterMs, keySha256 }
}

// Node's types call the purposes `keyUsage`, and do not know that there may be none.
const isForClients = ({ keyUsage }: X509Certificate): boolean =>
  (keyUsage as string[] | undefined)?.includes(CLIENT_AUTH) ?? false

function wordsOf(certificate: X509Certificate): NameWord[] {
  const { subject } = certificate.toLegacyObject() as unknown as {
    subject: Readonly<Record<string, string | string[]>>
  }
  const oids: Readonly<Record<string, string>> = { CN: COMMON_NAME, O: ORGANIZATION }
  return Object.entries(subject).flatMap(([name, values]) =>
    [values].flat().map((value) => ({ oid: oids[name] ?? name, value })),
  )
}

/** Whether the holder of a certificate signed this message: ECDSA or RSA with SHA-256, or Ed25519. */
export function isSignedByHolder(
  certificate: Pick<X509Certificate, 'publicKey'>,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const digest = certificate.publicKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  try {
    return verify(digest, message, certificate.publicKey, signature)
  } catch {
    return false // OpenSSL throws on signatures of impossible sizes
  }
}
