import { DatabaseError } from 'pg'
import { AddressRefusedError, TooMuchReceivedError, UnreadableError } from '#outbound'
import { SinkError, type SinkErrorClass } from '../sink.ts'

/** What the server says by its code, or by the class of its code. @see PostgreSQL, "PostgreSQL Error Codes" */
const SAID: Readonly<Record<string, readonly [SinkErrorClass, string]>> = {
  '28': ['terminal', 'the database refuses the user or its password: correct the connection string in the Secret'],
  '3D': ['terminal', 'there is no database of that name: make it, or correct the connection string in the Secret'],
  '3F': ['terminal', 'there is no schema of that name: make it, or correct spec.postgres.schema'],
  '42501': [
    'forbidden',
    'the database does not allow that: grant its user select, insert, update and delete on the tables, and create on the schema where tables are to be made',
  ],
  '42P01': ['transient', 'a table is not there any more: it is made again where spec.provisioning.mode is ensure'],
  '42': ['terminal', 'a table has other columns than those that are written: correct it, or name another one'],
  '22': ['terminal', 'a table does not take the values: its columns have other types than those that are written'],
  '23': [
    'terminal',
    'a rule of the table refuses rows: take constraints, foreign keys and triggers of your own off it',
  ],
  '54': ['terminal', 'a row is larger than the database takes'],
  '25006': ['transient', 'the database is read-only now: it is a standby, or under maintenance'],
  '55': ['transient', 'somebody else holds a lock on the tables'],
  '57014': ['transient', 'a statement took longer than its limit, spec.options.statement_timeout'],
  '40': ['transient', 'the database gave up this transaction for another one'],
  '53300': ['transient', 'the database takes no more connections'],
  '53100': ['transient', 'the disk of the database is full'],
  '53': ['transient', 'the database is out of resources'],
  '57': ['transient', 'the database is starting or stopping'],
}
const AWAY = /^(ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_)/
const UNTRUSTED = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO)/

/** Any failure in words that hold nothing of the connection string, nor of a row. */
export function sinkErrorOf(error: unknown): SinkError {
  if (error instanceof SinkError) return error
  const [errorClass, sentence] = explained(error)
  return new SinkError(errorClass, sentence, { cause: error })
}

function explained(error: unknown): readonly [SinkErrorClass, string] {
  // A name with several addresses fails once for each.
  if (error instanceof AggregateError && error.errors.length > 0) return explained(error.errors[0])
  if (error instanceof AddressRefusedError)
    return ['terminal', `the address of the database is closed to sinks: it is ${error.reason}`]
  if (error instanceof TooMuchReceivedError || error instanceof UnreadableError)
    return ['transient', `what answers there is no database: ${error.message}`]
  const code = codeOf(error)
  if (error instanceof DatabaseError) {
    const known = SAID[code] ?? SAID[code.slice(0, 2)]
    return known
      ? [known[0], `${known[1]} (SQLSTATE ${code})`]
      : ['transient', `the database failed (SQLSTATE ${code})`]
  }
  if (AWAY.test(code)) return ['transient', `the database cannot be reached (${code})`]
  if (UNTRUSTED.test(code))
    return [
      'terminal',
      `the certificate of the database cannot be verified (${code}): give the CA that signed it in spec.tls.caBundle or spec.tls.caSecretRef, and the name that stands in it as host`,
    ]
  const text = error instanceof Error ? error.message : ''
  if (/SSL/.test(text)) return ['terminal', 'the database offers no TLS, and the connection string asks for it']
  if (/timeout|timed out/i.test(text)) return ['transient', 'the database did not answer in time']
  if (/terminated|closed|ended/i.test(text)) return ['transient', 'the connection to the database broke']
  return ['transient', `the database failed${code === '' ? '' : ` (${code})`}`]
}

/** Whether a statement or a transaction took longer than it may: smaller ones may not. */
export const isOutOfTime = (error: unknown): boolean =>
  error instanceof SinkError &&
  (codeOf(error.cause) === '57014' || (error.cause instanceof Error && error.cause.name === 'TimeoutError'))

export const codeOf = (error: unknown): string => {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : ''
  return typeof code === 'string' ? code : ''
}
