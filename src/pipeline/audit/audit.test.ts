import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Metrics, silentLogger } from '#runtime'
import { redisMissing, startRedis } from '../state/test/redis-server.ts'
import { type AuditEntry, AuditFileError, openAudit, verifyAudit } from './index.ts'

const entry = (n: number, changes: Partial<AuditEntry> = {}): AuditEntry => ({
  at: 1_700_000_000_000 + n,
  kind: 'denial',
  requestId: `r${n}`,
  username: 'alice',
  groups: ['dev'],
  method: 'trusted-proxy',
  address: '10.0.0.1',
  route: 'GET /api/v2/clusters/:name',
  resource: `cluster c${n}`,
  status: 404,
  reason: 'No matching policies found',
  policy: '',
  policyHash: '',
  ...changes,
})

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-test-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let count = 0
const newPath = (): string => join(folder, `audit-${count++}.jsonl`)

interface Settings {
  readonly maxBytes?: number
  readonly key?: Buffer
  readonly level?: 'denials' | 'all'
}

async function write(path: string, entries: readonly AuditEntry[], settings: Settings = {}): Promise<void> {
  const { level = 'all', ...file } = settings
  await using trail = await openAudit({
    config: { level, file: { path, ...file } },
    logger: silentLogger,
    metrics: new Metrics({}, { processMetrics: false }),
  })
  for (const one of entries) {
    trail.record(one)
    if (file.maxBytes !== undefined) await trail.flush()
  }
}

const some = (n: number): AuditEntry[] => Array.from({ length: n }, (_, index) => entry(index))

describe('the audit file', () => {
  it('keeps every entry in order, over restarts and rotation, and verifies', async () => {
    const path = newPath()
    await write(path, some(20), { maxBytes: 2000 })
    await write(path, some(5), { maxBytes: 2000 })
    expect(await verifyAudit(path)).toEqual({ ok: true, entries: 25 })
    expect(readdirSync(folder).filter((name) => name.startsWith('audit-0.jsonl.0')).length).toBeGreaterThan(2)
  })

  it('finds any byte that was changed, any line taken out, put in or moved', async () => {
    const path = newPath()
    await write(path, some(12))
    const text = readFileSync(path, 'utf8')
    const lines = text.trimEnd().split('\n')
    const verdictOf = async (changed: string) => {
      writeFileSync(path, changed)
      return verifyAudit(path)
    }
    const joined = (all: readonly string[]) => `${all.join('\n')}\n`
    for (const [n, line] of lines.entries()) {
      expect(await verdictOf(joined(lines.toSpliced(n, 1))), `without line ${n + 1}`).toMatchObject({ ok: false })
      expect(await verdictOf(joined(lines.toSpliced(n, 0, line)))).toMatchObject({ ok: false })
    }
    await fc.assert(
      fc.asyncProperty(fc.nat(text.length - 2), fc.integer({ min: 1, max: 127 }), async (at, by) => {
        const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ by) + text.slice(at + 1)
        expect((await verdictOf(changed)).ok).toBe(false)
      }),
      { numRuns: 300 },
    )
  })

  it('misses lines that were cut off at the end', async () => {
    const path = newPath()
    await write(path, some(5))
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    writeFileSync(path, `${lines.slice(0, 3).join('\n')}\n`)
    expect(await verifyAudit(path)).toMatchObject({ ok: false, fault: { why: expect.stringMatching(/cut off/) } })
  })

  it('with a key, a chain written again without the key does not verify', async () => {
    const path = newPath()
    const key = Buffer.from('a key that only the hub knows')
    await write(path, some(3), { key })
    expect(await verifyAudit(path, { key })).toEqual({ ok: true, entries: 3 })
    expect(await verifyAudit(path)).toMatchObject({ ok: false })
    const forged = newPath()
    await write(forged, [entry(0, { username: 'bob' })])
    expect(await verifyAudit(forged, { key })).toMatchObject({ ok: false })
  })

  it('counts nothing as missing whose lines are kept, where only the head beside them cannot be written', async () => {
    const path = newPath()
    mkdirSync(`${path}.head.new`)
    const metrics = new Metrics({}, { processMetrics: false })
    await using trail = await openAudit({ config: { level: 'all', file: { path } }, logger: silentLogger, metrics })
    trail.record(entry(0))
    await trail.flush()
    trail.record(entry(1))
    await trail.flush()
    expect(await verifyAudit(path)).toEqual({ ok: true, entries: 2 })
    expect(await metrics.registry.getSingleMetricAsString('clusterpulse_audit_missed_total')).not.toMatch(/file/)
  })

  it('cuts off a line that a crash left half, says so in the next, and goes on', async () => {
    const path = newPath()
    await write(path, some(3))
    appendFileSync(path, '{"seq":4,"prev":"')
    expect(await verifyAudit(path)).toMatchObject({ ok: false, entries: 3 })
    await write(path, some(1))
    expect(await verifyAudit(path)).toEqual({ ok: true, entries: 5 })
    expect(readFileSync(path, 'utf8')).toMatch(/"kind":"recovered"/)
  })

  it('keeps line feeds and quotes of hostile names inside their entry', async () => {
    const path = newPath()
    await write(path, [entry(0, { username: 'eve\n{"seq":2,"prev":"' }), entry(1)])
    expect(await verifyAudit(path)).toEqual({ ok: true, entries: 2 })
  })

  it('keeps denials and every request through other eyes, but plain access only where all is asked for', async () => {
    const path = newPath()
    const access = entry(1, { kind: 'access', status: 200 })
    await write(path, [entry(0), access, { ...access, actor: 'root' }], { level: 'denials' })
    expect((await verifyAudit(path)).entries).toBe(2)
  })

  it('that cannot be written is an error at the start, with the path', async () => {
    const path = join(folder, 'missing', 'audit.jsonl')
    await expect(write(path, [])).rejects.toThrow(AuditFileError)
  })

  it('that is not there is a fault, not a clean trail', async () => {
    expect(await verifyAudit(newPath())).toMatchObject({ ok: false, entries: 0 })
  })
})

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`

describe.skipIf(noRedis !== '')(`the audit stream${noRedis}`, () => {
  it('gets every entry; while Redis is away recording goes on, and the trail says how many are missing', async () => {
    await using redis = await startRedis()
    const eyes = new Redis({ host: '127.0.0.1', port: redis.port })
    eyes.on('error', () => undefined)
    const metrics = new Metrics({}, { processMetrics: false })
    await using trail = await openAudit({
      config: { level: 'all', stream: { key: 'audit:clusterpulse' } },
      redis: { host: '127.0.0.1', port: redis.port },
      logger: silentLogger,
      metrics,
    })
    const kept = async () => {
      const messages = await eyes.xrange('audit:clusterpulse', '-', '+')
      return messages.map(
        ([, [, text = '']]) => JSON.parse(text) as { kind: string; requestId?: string; count?: number },
      )
    }
    for (const one of some(3)) trail.record(one)
    await trail.flush()
    expect((await kept()).map(({ requestId }) => requestId)).toEqual(['r0', 'r1', 'r2'])
    await redis.kill()
    trail.record(entry(3))
    trail.record(entry(4))
    await trail.flush()
    expect(await metrics.registry.getSingleMetricAsString('clusterpulse_audit_missed_total')).toMatch(/stream.*2/)
    await redis.start()
    await expect
      .poll(
        async () => {
          trail.record(entry(5))
          await trail.flush()
          return (await kept()).some(({ kind, count = 0 }) => kind === 'dropped' && count >= 2)
        },
        { timeout: 20_000 },
      )
      .toBe(true)
    eyes.disconnect()
  })
})
