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

interface LinkErrorOptions extends ErrorOptions {
  readonly isCut?: boolean
}

/** There is no stream to the hub, or it broke: why, and what to do about it. Trying again later is always right. */
export class LinkError extends FleetError {
  override readonly name = 'LinkError'
  readonly code: `link_${LinkFault}`
  readonly retryable = true
  readonly fault: LinkFault
  /** the connection was accepted and ended before a hub showed itself, as by what stands before a hub that is away */
  readonly isCut: boolean

  constructor(fault: LinkFault, sentence: string, { isCut = false, ...options }: LinkErrorOptions = {}) {
    super(sentence, options)
    this.fault = fault
    this.isCut = isCut
    this.code = `link_${fault}`
  }

  /** Nothing answers at the address of the hub. */
  get isNowhere(): boolean {
    return this.fault === 'refused' || this.fault === 'unreachable'
  }
}
