import { type AuditEntry, type AuditRecord, verifyAudit } from '#audit'
import { FleetError } from '#model'
import type { ShowAuditOptions } from './commands.ts'
import { type Column, print } from './format.ts'

/** `--expect` is not what it should be. */
class AnchorError extends FleetError {
  override readonly name = 'AnchorError'
  readonly code = 'audit_anchor'
  readonly retryable = false
}

/** What `clusterpulse audit verify` prints: the first and the last line, or what is wrong and where. */
export async function auditReport(
  file: string,
  { key, expect }: { readonly key?: string | undefined; readonly expect?: string | undefined },
): Promise<{ readonly ok: boolean; readonly text: string }> {
  const { ok, entries, first, last, fault } = await verifyAudit(file, {
    ...(key && { key: Buffer.from(key) }),
    ...(expect !== undefined && { expect: anchorOf(expect) }),
  })
  const place = (what: string, line: { seq: number; hash: string } | undefined) =>
    line ? `${what}  ${line.seq}:${line.hash}\n` : ''
  const lines = place('first line', first) + place('last line ', last)
  // Older files may have been taken away; whoever did not must hear of it.
  const before = (first?.seq ?? 1) - 1
  const gone = before > 0 ? ` from line ${first?.seq} on; the ${before} before it are not here` : ''
  if (ok) return { ok, text: `${file}: ${entries} entries, the chain is whole${gone}\n${lines}` }
  // Of a file that is not there no line is to be named.
  if (fault?.line === 0) return { ok, text: `clusterpulse: ${fault.file}: ${fault.why}\n` }
  const where = fault ? `${fault.file}, line ${fault.line}: ${fault.why}` : file
  // Of a trail that is keyed no line verifies without the key.
  const keyless = key ? '' : 'AUDIT_KEY is not set: the trail of a hub that has one verifies with the same alone\n'
  return { ok, text: `clusterpulse: ${where} (${entries} entries before it are whole)\n${keyless}${lines}` }
}

function anchorOf(text: string): { seq: number; hash: string } {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  if (seq === undefined || hash === undefined)
    throw new AnchorError('--expect takes SEQ:HASH, as `audit verify` prints the last line: a number and 64 hex digits')
  return { seq: Number(seq), hash }
}

const isEntry = (record: AuditRecord): record is AuditEntry => 'route' in record
const of =
  (field: (entry: AuditEntry) => string) =>
  (record: AuditRecord): string | null =>
    isEntry(record) ? field(record) || null : null

function noteWords({ kind, count }: Exclude<AuditRecord, AuditEntry>): string {
  if (kind === 'cut') return `${count} lines before this one are missing`
  if (kind === 'unsigned') return 'the head beside the file was missing or not signed'
  return `${count} entries`
}

const columns: readonly Column<AuditRecord>[] = [
  { header: 'TIME', value: ({ at }) => new Date(at).toISOString().slice(0, 19) },
  { header: 'KIND', value: ({ kind }) => kind, isWide: true },
  { header: 'USER', value: of(({ username, actor }) => (actor === undefined ? username : `${actor} as ${username}`)) },
  { header: 'DID', value: (record) => (isEntry(record) ? record.route : record.kind) },
  { header: 'TO', value: of(({ resource }) => resource) },
  { header: 'STATUS', value: of(({ status }) => String(status)) },
  { header: 'REQUEST', value: of(({ requestId }) => requestId) },
  { header: 'FROM', value: of(({ address }) => address), isWide: true },
  { header: 'REASON', value: (record) => (isEntry(record) ? record.reason : noteWords(record)) },
]

/** What `clusterpulse audit show` prints, and of which records. */
export const auditTable = ({ member, user, output }: Omit<ShowAuditOptions, 'last'>) => ({
  isWanted: (record: AuditRecord): boolean =>
    (member === undefined || (isEntry(record) && record.resource === `managedcluster ${member}`)) &&
    (user === undefined || (isEntry(record) && (record.username === user || record.actor === user))),
  print: (records: readonly AuditRecord[]): string =>
    output === 'json' ? print('json', [], records) : print(output, columns, records),
})
