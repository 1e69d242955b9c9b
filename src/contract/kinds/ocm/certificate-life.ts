import type { CertificateLife } from '#model'

/**
 * Annotation of a ManagedCluster: from when to when its newest certificate counts, `<from>/<until>` in RFC 3339. Requests are cleaned up
 * within hours of their answer; the member keeps this. The hub writes it, and decides nothing by it.
 */
export const CERTIFICATE_LIFE_ANNOTATION = 'clusterpulse.io/certificate-life'

/** As the annotation has it. */
export const certificateLifeText = ({ from, until }: CertificateLife): string =>
  [from, until].map((at) => new Date(at).toISOString()).join('/')

/** What the annotation says; null where there is none, or where it is no life. */
export function certificateLifeIn(text = ''): CertificateLife | null {
  const [from, until] = text.split('/').map((part) => Date.parse(part))
  return from !== undefined && until !== undefined && from < until ? { from, until } : null
}
