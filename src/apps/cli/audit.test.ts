import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openAudit } from '#audit'
import { Metrics, silentLogger } from '#runtime'
import { auditReport } from './audit.ts'

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

  it.each(['', '2', 'x:y', '2:zz'])('refuses %j as an anchor and says what it takes', async (expected) => {
    await expect(auditReport(path, { key: 'secret', expect: expected })).rejects.toThrow(/SEQ:HASH/)
  })
})
