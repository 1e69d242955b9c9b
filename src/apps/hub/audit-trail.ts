import { type AuditQuery, type AuditRecord, auditFileRecords, auditStreamRecords } from '#audit'
import { FleetError } from '#model'
import { configReader } from '#runtime'
import { type Env, redis } from './config.ts'
import { audit } from './config-access.ts'
import { redisConnection } from './redis.ts'

class NoTrailError extends FleetError {
  override readonly name = 'NoTrailError'
  readonly code = 'no_audit_trail'
  readonly retryable = false
}

/**
 * What the trail of a hub says: of the file that is named, else of AUDIT_FILE, else of the stream AUDIT_REDIS_STREAM.
 * @throws NoTrailError, StoreUnavailableError, ConfigError
 */
export async function auditTrail(
  file: string | undefined,
  { environment, ...query }: AuditQuery & { readonly environment: Env },
): Promise<readonly AuditRecord[]> {
  const read = configReader(environment)
  const config = audit(read)
  const connection = redisConnection(redis(read))
  const path = file ?? config.file?.path
  if (path !== undefined) {
    const records = await auditFileRecords(path, query)
    if (records) return records
    throw new NoTrailError(`${path}: there is no such audit file`)
  }
  if (config.stream) {
    read.done()
    return auditStreamRecords({ connection, key: config.stream.key }, query)
  }
  throw new NoTrailError(
    'no audit trail is named: give its file, or set AUDIT_FILE or AUDIT_REDIS_STREAM as the hub has it',
  )
}
