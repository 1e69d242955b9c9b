import type { ConnectionOptions } from 'node:tls'
import type { SASLOptions } from 'kafkajs'
import { SecretTexts } from '../events/credentials.ts'
import { type EventDeclaration, SinkError } from '../sink.ts'

/** A broker that is asked first: it names all others. */
export interface KafkaBroker {
  /** an IPv6 address without brackets */
  readonly host: string
  readonly port: number
}

/** What a declaration of a sink in Kafka comes to. */
export interface KafkaPlan {
  readonly brokers: readonly KafkaBroker[]
  readonly topic: string
  /** whether the topic is made */
  readonly ensures: boolean
  readonly secrets: SecretTexts
  /** absent: in the clear */
  readonly tls?: ConnectionOptions
  readonly sasl?: SASLOptions
  /** the brokers as a sentence names them */
  readonly name: string
}

/** How a user proves who he is, by the names that brokers have for it. */
const MECHANISMS = { 'SCRAM-SHA-256': 'scram-sha-256', 'SCRAM-SHA-512': 'scram-sha-512', PLAIN: 'plain' } as const
const DEFAULT_PORT = 9092
const BROKER = /^(?:([a-z_]+):\/\/)?(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?\/?$/i

/** @throws SinkError terminal, for what can never work */
export function kafkaPlan(declaration: EventDeclaration, semantics: 'strict' | 'original'): KafkaPlan {
  const { spec, caBundle } = declaration
  const given = (spec.kafka?.brokers ?? []).flatMap((text) => text.split(',')).map(brokerOf)
  if (given.length === 0) throw new SinkError('terminal', 'kafka.brokers is empty: give at least one, as host:port')
  const secrets = new SecretTexts(declaration)
  const schemes = given.map(({ scheme }) => scheme)
  const isTls = spec.tls !== undefined || schemes.some((scheme) => scheme === 'ssl' || scheme === 'sasl_ssl')
  const sasl = saslOf(declaration, secrets)
  if (!sasl && schemes.some((scheme) => scheme.startsWith('sasl_')))
    throw new SinkError(
      'terminal',
      'the brokers are given with sasl, and there are no credentials: name a Secret with username and password in secretRef',
    )
  if (sasl?.mechanism === 'plain' && !isTls && semantics === 'strict')
    throw new SinkError(
      'terminal',
      'PLAIN without TLS shows the password to everybody in between: set spec.tls, or options.sasl_mechanism to SCRAM-SHA-256',
    )
  return {
    brokers: given.map(({ host, port }) => ({ host, port })),
    topic: spec.kafka?.topic ?? '',
    ensures: spec.provisioning?.mode !== 'existing',
    secrets,
    ...(isTls && {
      tls: {
        ...(caBundle !== undefined && { ca: caBundle }),
        ...(spec.tls?.insecureSkipVerify && { rejectUnauthorized: false }),
      },
    }),
    ...(sasl && { sasl }),
    name: `Kafka at ${given.map(({ host, port }) => `${host}:${port}`).join(', ')}`,
  }
}

function brokerOf(text: string): KafkaBroker & { readonly scheme: string } {
  const [, scheme = '', six, name, digits] = BROKER.exec(text.trim()) ?? []
  const host = six ?? name
  const port = digits === undefined ? DEFAULT_PORT : Number(digits)
  if (host === undefined || port < 1 || port > 65535)
    throw new SinkError('terminal', 'an address in kafka.brokers is none: write host:port, without user and password')
  return { host, port, scheme: scheme.toLowerCase() }
}

/** SCRAM-SHA-256 where nothing is said; a token goes before a password. */
function saslOf({ spec }: EventDeclaration, secrets: SecretTexts): SASLOptions | undefined {
  const pair = secrets.pair(['token', 'password'])
  if (!pair) return undefined
  const wanted = (spec.options?.sasl_mechanism ?? 'SCRAM-SHA-256').toUpperCase()
  if (!Object.hasOwn(MECHANISMS, wanted))
    throw new SinkError(
      'terminal',
      `options.sasl_mechanism is ${JSON.stringify(wanted.slice(0, 40))}; known are ${Object.keys(MECHANISMS).join(', ')}`,
    )
  return { mechanism: MECHANISMS[wanted as keyof typeof MECHANISMS], ...pair }
}
