import { JetStreamApiError } from '@nats-io/jetstream'
import { errors } from '@nats-io/transport-node'
import { FleetError } from '#model'
import { isUntaken } from '#nats'
import { AddressRefusedError } from '#outbound'
import { SinkError, type SinkErrorClass } from '../sink.ts'
import type { NatsPlan } from './plan.ts'

/** What the server has no room for: storage of the account or machine, a stream that is full and discards nothing. */
const FULL = new Set([10023, 10028, 10047, 10077])
/** Another message is the last of the subject than was expected. */
const WRONG_LAST = new Set([10071, 10164])
/** More than the stream takes in one message. */
const TOO_LARGE = 10054
const NOT_ENABLED = new Set([10039, 10076])
/** Of anything but a publish: that may lack its stream alone. */
const isNotEnabled = (error: unknown): boolean =>
  error instanceof JetStreamApiError ? NOT_ENABLED.has(error.code) : isUntaken(error)

/** Whether somebody else published on the subject meanwhile. */
export const isWrongLast = (error: unknown): boolean => error instanceof JetStreamApiError && WRONG_LAST.has(error.code)

/** Whether there is no room for it, which may change by itself. */
export const isFull = (error: unknown): boolean => error instanceof JetStreamApiError && FULL.has(error.code)

/** In the words of a sink, and without any part of a credential. */
export function natsSinkError(error: unknown, plan: NatsPlan): SinkError {
  if (error instanceof SinkError) return error
  const why = plan.secrets.hidden(FleetError.from(error).message)
  const [errorClass, sentence] = judged(error, plan, why)
  return new SinkError(errorClass, sentence, { cause: error })
}

function judged(error: unknown, { name, stream }: NatsPlan, why: string): readonly [SinkErrorClass, string] {
  if (error instanceof AddressRefusedError) return ['terminal', `${name} is not connected to: ${why}`]
  // Whoever was asked for credentials took too long to answer: nothing is known of them.
  if (error instanceof errors.AuthorizationError && /authentication timeout/i.test(error.message))
    return [
      'transient',
      `${name} heard no credentials in time (${why}): this process, the network or the server is slow; it is tried again`,
    ]
  if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError)
    return [
      'terminal',
      `${name} does not take the credentials (${why}): put a valid token, or username and password, into the Secret of the sink`,
    ]
  const refused = [error, causeOf(error)].find((one) => one instanceof errors.PermissionViolationError)
  if (refused instanceof errors.PermissionViolationError)
    return [
      'forbidden',
      `${name} does not let this user publish on ${refused.subject}: allow it $JS.API.> and the subjects of the sink`,
    ]
  if (isNotEnabled(error))
    return ['terminal', `${name} has no JetStream for this account: start nats-server with -js, or enable it`]
  if (isFull(error))
    return [
      'forbidden',
      `the stream ${stream} has no room (${why}): nothing was lost, and it is tried again; raise its limits, or purge what nobody reads`,
    ]
  if (error instanceof JetStreamApiError && error.code === TOO_LARGE)
    return ['transient', `the stream ${stream} takes smaller messages than before (${why}): it is looked at again`]
  return ['transient', `${name} did not take it (${why})`]
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined)
