import { X509Certificate } from 'node:crypto'

/** Renewal begins where between a third and a quarter of the life is left: at random, so that a fleet does not come at once. */
const EARLIEST = 0.33
const LATEST = 0.25

/** When the certificate is to be renewed, ms since the Unix epoch. @param random 0 to 1 */
export function renewalTime(certificate: string, random: number): number {
  const { from, to } = lifeOf(certificate)
  return to - (to - from) * (LATEST + (EARLIEST - LATEST) * random)
}

/** From when and until when a certificate in PEM counts, ms since the Unix epoch. */
export function lifeOf(certificate: string): { readonly from: number; readonly to: number } {
  const { validFrom, validTo } = new X509Certificate(certificate)
  return { from: Date.parse(validFrom), to: Date.parse(validTo) }
}
