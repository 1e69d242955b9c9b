import { annotateCommand, type SecretFor } from './annotations.ts'
import { type Destination, destinationText, sameDestination } from './destination.ts'

/** A connection whose destination accepted, or would get, the credentials of a Secret. */
export interface Named {
  /** kind and name, for people */
  readonly by: string
  readonly destination: Destination
}

export interface HoldInputs {
  readonly secret: SecretFor
  /** where they would go now */
  readonly destination: Destination
  /** where the Secret itself leads: a kubeconfig holds server and credentials in one document */
  readonly carried: Destination | undefined
  /** where this connection's endpoint last accepted credentials of this Secret, whatever they were then */
  readonly own: Destination | undefined
  /** what accepted them as they are now, on the word of any connection */
  readonly accepted: readonly Named[]
  /** the connections that were declared before this one and name the same Secret */
  readonly earlier: readonly Named[]
}

/** Why credentials are not sent. */
export interface Held {
  /** in CamelCase, for programs */
  readonly reason: 'EndpointNotAnnotated' | 'EndpointNotAccepted' | 'EarlierConnectionFirst'
  /** where they would go, whose they are, and the next step; never a credential */
  readonly message: string
}

/**
 * Decides whether the credentials of a Secret may be sent to a destination. The Secret's annotation rules; without it the first
 * destination that accepted them keeps them until the Secret changes.
 * @returns undefined: they may
 */
export function holdOf(inputs: HoldInputs): Held | undefined {
  const { secret, destination, carried, own, accepted, earlier } = inputs
  const isHere = (other: Named) => sameDestination(other.destination, destination)
  const { allowed } = secret
  if (allowed) {
    const isAllowed =
      allowed.endpoints.includes(destination.endpoint) &&
      (destination.proxy === undefined || allowed.proxies.includes(destination.proxy))
    if (isAllowed) return undefined
    const through = allowed.proxies.length > 0 ? ` and the proxies ${allowed.proxies.join(', ')}` : ' and no proxy'
    const only = `its annotation allows ${allowed.endpoints.join(', ') || 'no endpoint'}${through}`
    const kept = accepted.filter(({ destination: { endpoint } }) => allowed.endpoints.includes(endpoint))
    return held('EndpointNotAnnotated', inputs, only, kept)
  }
  if ([carried, own].some((known) => known && sameDestination(known, destination))) return undefined
  if (accepted.some(isHere)) return undefined
  const [first] = accepted
  if (first) {
    const only = `${destinationText(first.destination)} was the first to accept them (${first.by})`
    return held('EndpointNotAccepted', inputs, only, accepted)
  }
  // Nobody accepted them yet. A connection that is made beside another one must not be the faster of the two.
  const other = earlier.find((named) => !isHere(named))
  if (!other) return undefined
  const only = `${other.by}, declared before, names the same Secret for ${destinationText(other.destination)}`
  return held('EarlierConnectionFirst', inputs, only, earlier)
}

function held(reason: Held['reason'], inputs: HoldInputs, only: string, kept: readonly Named[]): Held {
  const { secret, destination } = inputs
  const command = annotateCommand(secret, [destination, ...kept.map((named) => named.destination)])
  return {
    reason,
    message: `credentials of Secret ${secret.namespace}/${secret.name} are held back from ${destinationText(destination)}: ${only}; if they are meant for it, run: ${command}`,
  }
}
