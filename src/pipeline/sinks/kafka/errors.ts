import { FleetError } from '#model'
import type { AddressRefusedError } from '#outbound'
import { SinkError, type SinkErrorClass } from '../sink.ts'
import type { KafkaPlan } from './plan.ts'

interface KafkaFailure {
  readonly name?: unknown
  readonly type?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
}

/** The error and what it came of, outermost first. */
function* chain(error: unknown): Generator<KafkaFailure> {
  let one = error
  for (let depth = 0; depth < 8 && typeof one === 'object' && one !== null; depth++) {
    const failure = one as KafkaFailure
    yield failure
    one = failure.cause ?? (Array.isArray(failure.errors) ? failure.errors[0] : undefined)
  }
}

/** The protocol's name of what went wrong, such as MESSAGE_TOO_LARGE; undefined where no broker said it. */
export function typeOf(error: unknown): string | undefined {
  for (const { type } of chain(error)) if (typeof type === 'string') return type
  return undefined
}

const nameOf = (error: unknown): readonly unknown[] => [...chain(error)].map(({ name }) => name)

/** What a broker never takes, however often it is tried. */
const TERMINAL = new Set([
  ...['INVALID_TOPIC_EXCEPTION', 'INVALID_PARTITIONS', 'INVALID_REPLICATION_FACTOR', 'INVALID_CONFIG'],
  ...['POLICY_VIOLATION', 'UNSUPPORTED_SASL_MECHANISM', 'INVALID_RECORD'],
])

/** In the words of a sink, and without any part of a credential. */
export function kafkaSinkError(error: unknown, plan: KafkaPlan, refused: AddressRefusedError | undefined): SinkError {
  if (error instanceof SinkError) return error
  if (refused)
    return new SinkError('terminal', `a broker of ${plan.name} is not connected to: ${refused.message}`, {
      cause: error,
    })
  const why = plan.secrets.hidden(FleetError.from(error).message)
  const [errorClass, sentence] = judged(error, plan, why)
  return new SinkError(errorClass, sentence, { cause: error })
}

function judged(error: unknown, { name, topic, tls, sasl }: KafkaPlan, why: string): readonly [SinkErrorClass, string] {
  const type = typeOf(error) ?? ''
  if (nameOf(error).includes('KafkaJSSASLAuthenticationError') || type === 'SASL_AUTHENTICATION_FAILED')
    return [
      'terminal',
      `${name} does not take the credentials (${why}): put a valid username and password into the Secret of the sink, and see options.sasl_mechanism`,
    ]
  if (type.endsWith('AUTHORIZATION_FAILED'))
    return [
      'forbidden',
      `${name} does not let this user write the topic ${topic} (${why}): allow it Describe and Write`,
    ]
  if (TERMINAL.has(type)) return ['terminal', `${name} refuses the topic ${topic}: ${why}`]
  // What the library stumbled over, in words of its own that say nothing to others.
  if (nameOf(error).some((one) => one === 'TypeError' || one === 'RangeError'))
    return ['transient', `${name} answers what is no answer of Kafka: see that the address is that of its brokers`]
  if (/current SASL state/.test(why))
    return [
      'terminal',
      `${name} asks for no credentials there (${why}): name the port that does, or take secretRef away`,
    ]
  if (/closed connection/i.test(why)) {
    const wants = [...(tls ? [] : ['TLS (`tls: {}`)']), ...(sasl ? [] : ['credentials (secretRef)'])]
    const may = wants.length > 0 ? `it may want ${wants.join(' or ')}, or be` : 'it may be'
    return ['transient', `${name} closes the connection without an answer: ${may} no broker of Kafka`]
  }
  return ['transient', `${name} did not take it (${why})`]
}
