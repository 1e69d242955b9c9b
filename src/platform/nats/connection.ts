import { isIP } from 'node:net'
import {
  type Authenticator,
  connect,
  jwtAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'
import { seconds } from '#model'
import { type OutboundGuard, withBoundedSockets } from '#outbound'
import type { NatsAccess, NatsCredentials, NatsServer } from './config.ts'

/** A server that answers within this, ms, is there, however slow the way to it: to a ping, a message or JetStream alike. */
export const NATS_ANSWERS_WITHIN_MS = seconds(10)
/** First the server says who it is, then it answers. */
const CONNECT_TIMEOUT_MS = 2 * NATS_ANSWERS_WITHIN_MS
/** A server that does not answer three of them is gone. */
const PING_EVERY_MS = seconds(10)
const NAME = 'clusterpulse'
/** Messages are acknowledgements, and what JetStream says of a stream. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20

/**
 * One connection, which is not kept alive by the library: what it had not sent when a connection broke would be sent late by the
 * next one. Names are looked up here, so that the guard sees the address that is dialed.
 * @throws AddressRefusedError, or what the library says
 */
export async function connectNats(
  server: NatsServer,
  access: NatsAccess,
  guard: OutboundGuard,
  signal: AbortSignal,
): Promise<NatsConnection> {
  const address = await addressOf(server.host, guard)
  signal.throwIfAborted()
  const options = {
    servers: `${isIP(address) === 6 ? `[${address}]` : address}:${server.port}`,
    name: NAME,
    reconnect: false,
    ignoreClusterUpdates: true,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_EVERY_MS,
    tls: server.tls ? { ...access.tls, servername: isIP(server.host) ? '' : server.host, host: server.host } : null,
    ...(access.credentials && { authenticator: authenticatorOf(access.credentials) }),
  } as NodeConnectionOptions // servername and host reach the TLS socket, and are not among the declared options
  const connecting = withBoundedSockets(MAX_ANSWER_BYTES, () => connect(options))
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(signal.reason)
      connecting.then((late) => late.close()).catch(() => undefined) // nobody waits for it any more
    }
    signal.addEventListener('abort', abort, { once: true })
    connecting
      .then(resolve, (error: unknown) => reject(server.tls ? error : plainError(error)))
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

/** The library cannot do TLS without settings, and says so in words of its own. */
function plainError(error: unknown): unknown {
  const isOfTls = error instanceof Error && (error instanceof TypeError || error.cause instanceof TypeError)
  return isOfTls ? new Error('it asks for TLS: write tls:// instead of nats://', { cause: error }) : error
}

async function addressOf(host: string, guard: OutboundGuard): Promise<string> {
  guard.check(host)
  if (isIP(host)) return host
  return new Promise((resolve, reject) => {
    guard.lookup(host, {}, (error, address) => (error ? reject(error) : resolve(String(address))))
  })
}

function authenticatorOf(credentials: NatsCredentials): Authenticator {
  const bytes = (text: string) => new TextEncoder().encode(text)
  switch (credentials.kind) {
    case 'password':
      return usernamePasswordAuthenticator(credentials.user, credentials.password)
    case 'token':
      return tokenAuthenticator(credentials.token)
    case 'nkey':
      return nkeyAuthenticator(bytes(credentials.seed))
    case 'creds':
      return jwtAuthenticator(credentials.jwt, bytes(credentials.seed))
  }
}
