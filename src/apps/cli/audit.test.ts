import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AuditEntry, auditFileRecords, openAudit } from '#audit'
import { Metrics, silentLogger } from '#runtime'
import { auditReport, auditTable } from './audit.ts'

describe('audit verify', () => {
  let folder = ''
  let path = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'audit-verify-'))
    path = join(folder, 'audit.jsonl')
    await using trail = await openAudit({
      config: { level: 'all', file: { path, key: Buffer.from('secret') } },
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
    })
    for (const requestId of ['a', 'b'])
      trail.record({
        at: 1,
        kind: 'sign_in',
        requestId,
        username: 'alice',
        groups: [],
        method: 'oidc',
        address: '10.0.0.1',
        route: 'GET /x',
        resource: 'fleet',
        status: 200,
        reason: '',
        policy: '',
        policyHash: '',
      })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('says of a file that is not there just that', async () => {
    const missing = join(folder, 'missing.jsonl')
    expect(await auditReport(missing, { key: 'secret' })).toEqual({
      ok: false,
      text: `clusterpulse: ${missing}: there is no such audit file\n`,
    })
  })

  it('prints the first and the last line, and takes the last as an anchor', async () => {
    const { ok, text } = await auditReport(path, { key: 'secret' })
    expect(ok).toBe(true)
    expect(text).toMatch(/2 entries, the chain is whole\nfirst line {2}1:[0-9a-f]{64}\nlast line {3}2:[0-9a-f]{64}\n/)
    const anchor = /last line {3}(\S+)/.exec(text)?.[1] ?? ''
    expect(await auditReport(path, { key: 'secret', expect: anchor })).toMatchObject({ ok: true })
    expect(await auditReport(path, { key: 'secret', expect: `3${anchor.slice(1)}` })).toMatchObject({ ok: false })
  })

  it('says where a trail begins whose older files were taken away', async () => {
    const kept = join(folder, 'kept.jsonl')
    await using trail = await openAudit({
      config: { level: 'all', file: { path: kept, key: Buffer.from('secret'), maxBytes: 1, keepFiles: 1 } },
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
    })
    const one = {
      kind: 'sign_in',
      username: 'ann',
      groups: [],
      method: 'oidc',
      address: '',
      resource: 'fleet',
    } as const
    const report = async () => (await auditReport(kept, { key: 'secret' })).text
    for (const requestId of ['a', 'b', 'c', 'd']) {
      const before = await report()
      trail.record({ ...one, at: 1, requestId, route: 'GET /x', status: 200, reason: '', policy: '', policyHash: '' })
      await expect.poll(report).not.toBe(before)
    }
    await expect
      .poll(report)
      .toMatch(/the chain is whole from line (\d) on; the \d before it are not here\nfirst line {2}\1:/)
  })

  it('says of a keyed trail that is read without its key that it lacks that', async () => {
    const { ok, text } = await auditReport(path, {})
    expect([ok, text]).toEqual([false, expect.stringMatching(/^AUDIT_KEY is not set/m)])
    expect((await auditReport(path, { key: 'another' })).text).not.toContain('AUDIT_KEY is not set')
  })

  it.each(['', '2', 'x:y', '2:zz'])('refuses %j as an anchor and says what it takes', async (expected) => {
    await expect(auditReport(path, { key: 'secret', expect: expected })).rejects.toThrow(/SEQ:HASH/)
  })
})

describe('audit show', () => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-show-'))
  const path = join(folder, 'audit.jsonl')
  const entry = (at: number, more: Partial<AuditEntry>): AuditEntry => ({
    ...{ at, kind: 'administration', requestId: `r-${at}`, username: 'ann', groups: [], method: 'API', address: '' },
    ...{ route: 'cluster_accepted', resource: 'managedcluster east', status: 200, reason: '', policy: '' },
    ...{ policyHash: '', ...more },
  })
  beforeAll(async () => {
    await using trail = await openAudit({
      // Small files: what is shown may lie in an older one.
      config: { level: 'denials', file: { path, maxBytes: 1_000 } },
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
    })
    for (let at = 0; at < 40; at++) {
      trail.record(entry(at, at % 2 === 0 ? {} : { resource: 'managedcluster west', username: '\u001b[2Jbob' }))
      if (at % 4 === 0) await trail.flush()
    }
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const shown = async (options: { member?: string; user?: string }, last: number) => {
    const { isWanted, print } = auditTable({ ...options, output: 'table' })
    return print((await auditFileRecords(path, { last, isWanted })) ?? []).split('\n')
  }

  it('lists the newest, oldest first, over the parts of a file', async () => {
    const [head, ...lines] = await shown({}, 30)
    expect(head).toMatch(/^TIME +USER +DID +TO +STATUS +REQUEST +REASON$/)
    expect(lines.map((line) => /r-\d+/.exec(line)?.[0])).toEqual(Array.from({ length: 30 }, (_, n) => `r-${n + 10}`))
  })

  it('says what is missing', async () => {
    const { print } = auditTable({ output: 'table' })
    const [, cut, unsigned] = print([
      { at: 1, kind: 'cut', count: 7 },
      { at: 2, kind: 'unsigned', count: 0 },
    ]).split('\n')
    expect(cut).toMatch(/cut .*7 lines before this one are missing$/)
    expect(unsigned).toMatch(/head beside the file was missing or not signed$/)
  })

  it('keeps to one member and to one user, and moves no terminal', async () => {
    const west = await shown({ member: 'west' }, 3)
    expect(west.slice(1).map((line) => /r-\d+/.exec(line)?.[0])).toEqual(['r-35', 'r-37', 'r-39'])
    expect(west.join('')).not.toContain('\u001b')
    expect(await shown({ member: 'west', user: 'ann' }, 3)).toHaveLength(1)
  })

  it('tells a file that is not there from one without such entries', async () => {
    const query = { last: 1, isWanted: () => true }
    expect(await auditFileRecords(join(folder, 'missing'), query)).toBeUndefined()
    expect(await auditFileRecords(path, { last: 1, isWanted: () => false })).toEqual([])
  })
})
