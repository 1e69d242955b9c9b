import type { NatsAccess, NatsCredentials, NatsServer } from '#nats'
import { parseNatsCreds, parseNatsServers } from '#nats'
import { SecretTexts } from '../events/credentials.ts'
import { type EventDeclaration, SinkError, type Writing } from '../sink.ts'
import { twoCredentials } from '../two-credentials.ts'
import { isOwnSubject, subjectFilter, subjectFor } from './subject.ts'

/** What a declaration of a sink in NATS comes to. */
export interface NatsPlan {
  /** tried in turn */
  readonly servers: readonly NatsServer[]
  readonly access: NatsAccess
  readonly secrets: SecretTexts
  readonly stream: string
  /** whether the stream is made, and takes the subjects that it lacks */
  readonly ensures: boolean
  /** covers every subject of this sink, and of the same sink in other clusters */
  readonly filter: string
  /** whether every inventory has a subject of its own */
  readonly isOwnSubject: boolean
  subjectOf(writing: Writing): string
  /** the Secret holds more than one sort of credentials */
  readonly warnings: readonly string[]
  /** the servers as a sentence names them */
  readonly name: string
}

/** @throws SinkError terminal, for what can never work */
export function natsPlan(declaration: EventDeclaration): NatsPlan {
  const { spec } = declaration
  const template = spec.nats?.subject ?? ''
  const secrets = new SecretTexts(declaration)
  const servers = serversOf(declaration)
  const credentials = credentialsOf(secrets)
  const isTls = servers.some((server) => server.tls)
  return {
    servers,
    secrets,
    access: {
      ...(isTls && {
        tls: {
          ...(declaration.caBundle !== undefined && { ca: declaration.caBundle }),
          ...(spec.tls?.insecureSkipVerify && { rejectUnauthorized: false }),
        },
      }),
      ...(credentials && { credentials }),
    },
    // Dots divide names of JetStream's own subjects, in which the stream stands as one token.
    stream: (spec.nats?.stream ?? 'kollect_events').replaceAll('.', '_'),
    ensures: spec.provisioning?.mode !== 'existing',
    filter: subjectFilter(template),
    isOwnSubject: isOwnSubject(template),
    subjectOf: (writing) => subjectFor(template, writing),
    warnings: twoCredentials(declaration.credentials, ['token', 'password', 'creds']),
    name: `NATS at ${servers.map(({ host, port }) => `${host}:${port}`).join(', ')}`,
  }
}

function serversOf({ spec }: EventDeclaration): readonly NatsServer[] {
  const text = spec.nats?.url ?? spec.endpoint ?? ''
  if (text.includes('@'))
    throw new SinkError(
      'terminal',
      'the address of the sink holds credentials, which anybody who reads sinks sees: put them into the Secret of secretRef, as token, or as username and password',
    )
  const servers = parseNatsServers(text)
  if ('fault' in servers) throw new SinkError('terminal', `the address of the sink ${servers.fault}`)
  return spec.tls === undefined ? servers : servers.map((server) => ({ ...server, tls: true }))
}

/** A token goes before user and password, and both before a file. @throws SinkError terminal, for what is none */
function credentialsOf(secrets: SecretTexts): NatsCredentials | undefined {
  const token = secrets.get('token')
  if (token !== undefined) return { kind: 'token', token }
  const pair = secrets.pair(['password'])
  if (pair) return { kind: 'password', user: pair.username, password: pair.password }
  const text = secrets.get('creds')
  if (text === undefined) {
    if (secrets.isEmpty) return undefined
    throw new SinkError(
      'terminal',
      'the Secret of the sink has nothing to show: give token, or username and password, or creds',
    )
  }
  const creds = parseNatsCreds(text)
  if ('fault' in creds) throw new SinkError('terminal', `creds of the Secret of the sink ${creds.fault}`)
  return creds
}
