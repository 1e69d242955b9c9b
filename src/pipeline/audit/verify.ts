import { type ChainHead, follow, isLoss } from './chain.ts'
import { readHead } from './head.ts'
import { filesOf, firstIn, readText, rotatedName } from './lines.ts'
import type { AuditVerdict } from './types.ts'

/** What an audit file is checked against. */
export interface VerifyOptions {
  readonly key?: Buffer
  /** a line somebody noted elsewhere: it must be there, unchanged */
  readonly expect?: ChainHead
}

/**
 * Follows the chain through all files of a trail, oldest first. Rotated files that were taken away at the beginning are no
 * fault; anything missing in between or at the end is. That nothing is missing at the end is shown by the signed head beside the
 * file, or by an anchor kept elsewhere: without either the trail does not verify.
 * @param path of the file being written
 */
export async function verifyAudit(path: string, { key, expect }: VerifyOptions = {}): Promise<AuditVerdict> {
  const files = await filesOf(path)
  if (files.length === 0)
    return { ok: false, entries: 0, fault: { file: path, line: 0, why: 'there is no such audit file' } }
  const said = await readHead(path, key)
  // The head of a hub that was killed just after it rotated is of the file before.
  const wasRotated = said !== undefined && files.includes(rotatedName(path, said.first))
  let head: ChainHead | undefined
  let firstLine: ChainHead | undefined
  let entries = 0
  let anchored = false
  const verdict = (file: string, line: number, why: string): AuditVerdict => ({
    ok: false,
    entries,
    ...(firstLine && { first: firstLine }),
    ...(head && { last: head }),
    fault: { file, line, why },
  })
  for (const file of files) {
    const lines = (await readText(file)).split('\n')
    const torn = lines.pop()
    const first = firstIn(lines[0] ?? '')
    const named = file === path ? said?.first : Number(file.slice(-12))
    if (first !== undefined && named !== undefined && first !== named && !(file === path && wasRotated))
      return verdict(file, 1, `the file began with line ${named}, which is missing`)
    for (const [index, text] of lines.entries()) {
      const next = follow(head, text, key)
      if ('why' in next) return verdict(file, index + 1, next.why)
      head = next
      firstLine ??= next
      entries += 1
      const loss = isLoss(text)
      if (loss) return verdict(file, index + 1, loss)
      if (said?.seq === next.seq && said.hash !== next.hash)
        return verdict(file, index + 1, 'the head beside the file names another line here')
      if (expect?.seq === next.seq) {
        if (expect.hash !== next.hash) return verdict(file, index + 1, 'this is not the line that was expected here')
        anchored = true
      }
    }
    if (torn) return verdict(file, lines.length + 1, 'the last line is not whole')
  }
  const end = entries + 1
  if (expect && !anchored) {
    const gone =
      head && expect.seq < (firstLine?.seq ?? 1) ? 'its file was taken away' : 'lines were cut off at the end'
    return verdict(path, end, `line ${expect.seq}, which was expected, is missing: ${gone}`)
  }
  // Where the file being written is empty since it was rotated, the older ones may have been taken away.
  if (said && said.seq > (head?.seq ?? 0) && (head || said.first <= said.seq))
    return verdict(path, end, `the trail went on to line ${said.seq}, which is missing: lines were cut off at the end`)
  if (said?.signed || anchored)
    return { ok: true, entries, ...(firstLine && { first: firstLine }), ...(head && { last: head }) }
  return verdict(path, end, unproven(key !== undefined, said !== undefined))
}

/** Why nobody can say whether lines are missing at the end. */
function unproven(hasKey: boolean, hasHead: boolean): string {
  if (!hasKey)
    return 'every line follows the one before, but only a signed head shows that none is missing at the end: set AUDIT_KEY, or give --expect SEQ:HASH of a line noted elsewhere'
  const what = hasHead ? 'is not signed with this key' : 'is missing'
  return `the head beside the file ${what}: lines may have been cut off at the end; compare with a line noted elsewhere (--expect SEQ:HASH)`
}
