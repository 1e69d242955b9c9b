import type { Fault } from '../../kind.ts'
import { serversEndpoint } from './endpoint.ts'
import { faultIf, type Json, listOf, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { endpointFaults, type SinkSubject, type SinkType, secretFaults, sinkFaults } from './sink.ts'

/** How a user proves to Kafka who he is. */
const MECHANISMS = ['SCRAM-SHA-256', 'SCRAM-SHA-512', 'PLAIN']
const TYPES: Readonly<Record<string, SinkType>> = {
  nats: { block: 'nats', needsBlock: true, formats: ['json'] },
  kafka: {
    block: 'kafka',
    needsBlock: true,
    formats: ['json'],
    options: {
      sasl_mechanism: (value) =>
        MECHANISMS.includes(value.toUpperCase())
          ? undefined
          : `is ${shown(value)}: known are ${MECHANISMS.join(', ')}; default: ${MECHANISMS[0]}`,
    },
  },
}
const PLACEHOLDERS = ['cluster', 'namespace', 'name']
const natsServers = (text: string) =>
  serversEndpoint(text, ['nats', 'tls'], 'nats://nats.example.com:4222, or several with commas between')
const brokers = (text: string) =>
  serversEndpoint(
    text,
    ['kafka', 'ssl', 'plaintext', 'sasl_ssl', 'sasl_plaintext'],
    'host:port, such as kafka.example.com:9093',
  )

/** Everything wrong with the spec of a sink of events. */
export function eventSinkFaults(spec: Json, metadata: Json, known: KollectKnown): Fault[] {
  const name = textOf(spec.type)
  const type = name !== undefined && Object.hasOwn(TYPES, name) ? TYPES[name] : undefined
  if (name === undefined || !type) return []
  const subject: SinkSubject = { spec, metadata, known, type: name }
  return [
    ...sinkFaults(subject, type, Object.keys(TYPES)),
    ...(name === 'nats' ? natsFaults(subject) : kafkaFaults(subject)),
  ]
}

function natsFaults(subject: SinkSubject): Fault[] {
  const { spec } = subject
  const { url, subject: name, stream, secretRef } = recordOf(spec.nats)
  const text = textOf(name)
  return [
    ...faultIf(
      'spec.endpoint',
      url === undefined && spec.endpoint === undefined && 'is missing: say where the server is, here or in nats.url',
    ),
    ...endpointFaults(subject, 'spec.nats.url', url, natsServers),
    ...(url === undefined ? endpointFaults(subject, 'spec.endpoint', spec.endpoint, natsServers) : []),
    ...faultIf('spec.nats.subject', text !== undefined && subjectProblem(text)),
    ...faultIf(
      'spec.nats.stream',
      typeof stream === 'string' &&
        /[\s*>/\\]/.test(stream) &&
        `is ${shown(stream)}: a stream has no blanks, "*", ">" or slashes in its name`,
    ),
    ...secretFaults(subject, 'spec.nats.secretRef', secretRef),
  ]
}

/** Why nothing can be published under this subject. */
function subjectProblem(subject: string): string | undefined {
  if (subject.trim() === '') return 'is empty: write a subject such as inventory.{cluster}.{namespace}.{name}'
  const unknown = [...subject.matchAll(/\{([^{}]*)\}/g)].find(([, name = '']) => !PLACEHOLDERS.includes(name))
  if (unknown) return `has ${shown(unknown[0])}: known are ${PLACEHOLDERS.map((one) => `{${one}}`).join(', ')}`
  const rest = subject.replace(/\{[^{}]*\}/g, 'x')
  if (/[{}]/.test(rest)) return `is ${shown(subject)}: a brace has no partner`
  if (/[*>]/.test(rest)) return `is ${shown(subject)}: "*" and ">" are for those who subscribe; write one subject`
  if (/\s/.test(rest) || rest.split('.').includes(''))
    return `is ${shown(subject)}: write words with single dots between`
  // What is published there is an order to the server, not a message.
  if (/^(\$JS|\$SYS|_INBOX)(\.|$)/.test(rest))
    return `is ${shown(subject)}: what begins with $JS, $SYS or _INBOX is the server's own; begin with a word of yours, such as inventory`
  return undefined
}

function kafkaFaults(subject: SinkSubject): Fault[] {
  const { spec } = subject
  const { brokers: addresses, topic, secretRef } = recordOf(spec.kafka)
  const list = listOf(addresses)
  const name = textOf(topic)
  const isTopic = name === undefined || (/^[A-Za-z0-9._-]{1,249}$/.test(name) && name !== '.' && name !== '..')
  return [
    ...faultIf(
      'spec.kafka.brokers',
      Object.hasOwn(spec, 'kafka') && list.length === 0 && 'is empty: give at least one, as host:port',
    ),
    ...list.flatMap((address, at) => endpointFaults(subject, `spec.kafka.brokers[${at}]`, address, brokers)),
    ...faultIf(
      'spec.kafka.topic',
      !isTopic && `is ${shown(name ?? '')}: a topic has letters, digits, ".", "_" and "-" only, at most 249`,
    ),
    ...secretFaults(subject, 'spec.kafka.secretRef', secretRef),
  ]
}
