import type { CertificateLife } from '#model'

/**
 * Annotation of a ManagedCluster: from when to when its newest certificate counts, `<from>/<until>` in RFC 3339, and `/<id of its CA>` where that is known. Requests are cleaned up
 * within hours of their answer; the member keeps this. The hub writes it, and decides nothing by it.
 */
export const CERTIFICATE_LIFE_ANNOTATION = 'clusterpulse.io/certificate-life'

/** As the annotation has it. */
export const certificateLifeText = ({ from, until, issuer }: CertificateLife): string =>
  [...[from, until].map((at) => new Date(at).toISOString()), ...(issuer === undefined ? [] : [issuer])].join('/')

/** What the annotation says; null where there is none, or where it is no life. */
export function certificateLifeIn(text = ''): CertificateLife | null {
  const [begin = '', end = '', issuer = ''] = text.split('/')
  const [from, until] = [Date.parse(begin), Date.parse(end)]
  return from < until ? { from, until, ...(/^[0-9a-f]{16}$/.test(issuer) && { issuer }) } : null
}
