/**
 * One way to connect to NATS: addresses, credentials, TLS, and every address judged before it is dialed.
 *
 *   text → servers → guard → connection (which ends where it breaks: who uses it decides when there is another)
 */
export {
  isUserSeed,
  type NatsAccess,
  type NatsConfig,
  type NatsCredentials,
  type NatsServer,
  parseNatsCreds,
  parseNatsServers,
} from './config.ts'
export { connectNats, NATS_ANSWERS_WITHIN_MS } from './connection.ts'
export { coversSubject, subjectToken } from './subjects.ts'
export { isUntaken } from './untaken.ts'
