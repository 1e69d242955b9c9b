import { X509Certificate } from 'node:crypto'

/** Renewal begins where between a third and a quarter of the life is left: at random, so that a fleet does not come at once. */
const EARLIEST = 0.33
const LATEST = 0.25

/** When the certificate is to be renewed, ms since the Unix epoch. @param random 0 to 1 */
export function renewalTime(certificate: string, random: number): number {
  const { from, to } = lifeOf(certificate)
  return to - (to - from) * (LATEST + (EARLIEST - LATEST) * random)
}

/**
 * When to renew by this machine's clock, which may be wrong: where it is outside of the certificate's life, a new certificate is
 * counted from now on, and one that was kept is renewed at once.
 * @param now ms since the Unix epoch, and what is returned at most five quarters of the life later
 * @param isNew the hub handed it out just now
 */
export function renewalBy(certificate: string, { now, random, isNew }: RenewalBy): number {
  const { from, to } = lifeOf(certificate)
  const at = renewalTime(certificate, random)
  if (from - now <= (to - from) * LATEST && now < at) return at
  return isNew ? now + at - from : now
}

interface RenewalBy {
  readonly now: number
  /** 0 to 1 */
  readonly random: number
  readonly isNew: boolean
}

/** From when and until when a certificate in PEM counts, ms since the Unix epoch. */
export function lifeOf(certificate: string): { readonly from: number; readonly to: number } {
  const { validFrom, validTo } = new X509Certificate(certificate)
  return { from: Date.parse(validFrom), to: Date.parse(validTo) }
}
