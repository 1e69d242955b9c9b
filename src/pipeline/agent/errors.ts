import { FleetError } from '#model'

export type LinkFault =
  | 'refused'
  | 'unreachable'
  | 'name_mismatch'
  | 'unknown_ca'
  | 'not_tls'
  | 'certificate_expired'
  | 'unauthenticated'
  | 'not_served'
  | 'configuration'
  | 'ended'

/** There is no stream to the hub, or it broke: why, and what to do about it. Trying again later is always right. */
export class LinkError extends FleetError {
  override readonly name = 'LinkError'
  readonly code: `link_${LinkFault}`
  readonly retryable = true
  readonly fault: LinkFault

  constructor(fault: LinkFault, sentence: string, options?: ErrorOptions) {
    super(sentence, options)
    this.fault = fault
    this.code = `link_${fault}`
  }

  /** Nothing answers at the address of the hub. */
  get isNowhere(): boolean {
    return this.fault === 'refused' || this.fault === 'unreachable'
  }
}
