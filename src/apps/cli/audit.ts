import { verifyAudit } from '#audit'
import { FleetError } from '#model'

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
  if (ok) return { ok, text: `${file}: ${entries} entries, the chain is whole\n${lines}` }
  // Of a file that is not there no line is to be named.
  if (fault?.line === 0) return { ok, text: `clusterpulse: ${fault.file}: ${fault.why}\n` }
  const where = fault ? `${fault.file}, line ${fault.line}: ${fault.why}` : file
  return { ok, text: `clusterpulse: ${where} (${entries} entries before it are whole)\n${lines}` }
}

function anchorOf(text: string): { seq: number; hash: string } {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  if (seq === undefined || hash === undefined)
    throw new AnchorError('--expect takes SEQ:HASH, as `audit verify` prints the last line: a number and 64 hex digits')
  return { seq: Number(seq), hash }
}
