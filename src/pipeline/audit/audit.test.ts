import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Logger, Metrics, silentLogger } from '#runtime'
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
const KEY = Buffer.from('a key that only the hub knows')
const newPath = (): string => join(folder, `audit-${count++}.jsonl`)

interface Settings {
  readonly maxBytes?: number
  /** null: none */
  readonly key?: Buffer | null
  readonly keepFiles?: number
  readonly level?: 'denials' | 'all'
  readonly logger?: Logger
}

/** @returns facts of the lines about something that is wrong */
function heard(): { readonly logger: Logger; readonly said: readonly object[] } {
  const said: object[] = []
  return { logger: { ...silentLogger, error: (facts) => void said.push(facts) }, said }
}

async function write(path: string, entries: readonly AuditEntry[], settings: Settings = {}): Promise<void> {
  const { level = 'all', key = KEY, logger = silentLogger, ...rest } = settings
  const file = { ...rest, ...(key !== null && { key }) }
  await using trail = await openAudit({
    config: { level, file: { path, ...file } },
    logger,
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
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: true,
      entries: 25,
      first: { seq: 1 },
      last: { seq: 25 },
    })
    expect(readdirSync(folder).filter((name) => name.startsWith('audit-0.jsonl.0')).length).toBeGreaterThan(2)
  })

  it('finds any byte that was changed, any line taken out, put in or moved', async () => {
    const path = newPath()
    await write(path, some(12))
    const text = readFileSync(path, 'utf8')
    const lines = text.trimEnd().split('\n')
    const verdictOf = async (changed: string) => {
      writeFileSync(path, changed)
      return verifyAudit(path, { key: KEY })
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

  it('has what was recorded before a flush when that resolves, also where more and more comes', async ({ signal }) => {
    const path = newPath()
    await using trail = await openAudit({
      config: { level: 'all', file: { path } },
      logger: silentLogger,
      metrics: new Metrics({}, { processMetrics: false }),
    })
    trail.record(entry(0))
    let seen: string | undefined
    const flushed = trail.flush().then(() => {
      seen = readFileSync(path, 'utf8')
    })
    for (let n = 1; seen === undefined && !signal.aborted; n++) {
      trail.record(entry(n))
      await new Promise(setImmediate)
    }
    expect(seen).toContain('"requestId":"r0"')
    await flushed
  })

  it('misses lines that were cut off at the end', async () => {
    const path = newPath()
    await write(path, some(5))
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    writeFileSync(path, `${lines.slice(0, 3).join('\n')}\n`)
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: false,
      fault: { why: expect.stringMatching(/cut off/) },
    })
  })

  it('with a key, a chain written again without the key does not verify', async () => {
    const path = newPath()
    await write(path, some(3))
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, entries: 3 })
    expect(await verifyAudit(path)).toMatchObject({ ok: false })
    const forged = newPath()
    await write(forged, [entry(0, { username: 'bob' })], { key: null })
    expect(await verifyAudit(forged, { key: KEY })).toMatchObject({ ok: false })
  })

  const linesOf = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n')
  const replaceBy = (path: string, lines: readonly string[]): void => {
    writeFileSync(`${path}.put`, lines.map((line) => `${line}\n`).join(''))
    renameSync(`${path}.put`, path)
  }
  const cutTo = (path: string, lines: number): void =>
    writeFileSync(
      path,
      linesOf(path)
        .slice(0, lines)
        .map((line) => `${line}\n`)
        .join(''),
    )

  it.each([
    ['without its head', (path: string) => rmSync(`${path}.head`), /is missing/],
    [
      'with a head written by somebody without the key',
      (path: string) => {
        const { seq, hash } = JSON.parse(linesOf(path).at(-1) ?? '') as { seq: number; hash: string }
        writeFileSync(`${path}.head`, JSON.stringify({ seq, hash, first: 1, mac: '0'.repeat(64) }))
      },
      /not signed/,
    ],
  ])('does not verify when lines were cut off and it is left %s', async (_, leave, why) => {
    const path = newPath()
    await write(path, some(5))
    cutTo(path, 3)
    leave(path)
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: false,
      fault: { why: expect.stringMatching(why) },
    })
    // A restart signs what it finds, and says in the trail how it found it.
    await write(path, some(2))
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: false,
      fault: { line: 4, why: expect.stringMatching(/before this one (were|may be) missing/) },
    })
  })

  it.each([0, 3])('says at the next start that all but %d lines of five are gone', async (left) => {
    const path = newPath()
    await write(path, some(5))
    cutTo(path, left)
    await write(path, some(1))
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: false,
      fault: { line: left + 1, why: expect.stringMatching(/lines before this one were missing/) },
    })
  })

  it.each<[what: string, take: (path: string) => void, lines: number]>([
    ['the file is gone and its head is there', (path) => rmSync(path), 5],
    ['the file was renamed', (path) => renameSync(path, `${path}.1`), 5],
    ['the file was put elsewhere and an older one in its place', (path) => copyFileSync(`${path}.older`, path), 3],
    ['lines are gone at its beginning', (path) => replaceBy(path, linesOf(path).slice(2)), 2],
    ['another file of as many lines with the same key stands there', (path) => copyFileSync(`${path}.other`, path), 1],
  ])('says at the next start, in the log and in the trail, that %s', async (_, take, lines) => {
    const path = newPath()
    await write(path, some(2))
    copyFileSync(path, `${path}.older`)
    await write(path, some(3))
    await write(`${path}.other`, some(5).reverse())
    take(path)
    const { logger, said } = heard()
    await write(path, some(1), { logger })
    expect(said).toEqual([{ path, lines }])
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: false })
    expect(readFileSync(path, 'utf8')).toMatch(new RegExp(`"kind":"cut","count":${lines}}`))
    // What is said stays said at a later start.
    await write(path, some(1))
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: false })
  })

  it('takes nothing for missing that it rotated and removed itself, or whose older files were put away', async () => {
    const path = newPath()
    await write(path, some(12), { maxBytes: 2000, keepFiles: 1 })
    for (const name of readdirSync(folder))
      if (/\.\d{12}$/.test(name) && join(folder, name).startsWith(path)) rmSync(join(folder, name))
    const { logger, said } = heard()
    await write(path, some(1), { logger })
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, last: { seq: 13 } })
    // The one being written is empty after such a name was given to it, and the trail then has no line at all.
    const { seq: first } = JSON.parse(linesOf(path)[0] ?? '') as { seq: number }
    const full = `${path}.${String(first).padStart(12, '0')}`
    renameSync(path, full)
    await write(path, [], { logger })
    rmSync(full)
    await write(path, [], { logger })
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, entries: 0 })
    await write(path, some(1), { logger })
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, first: { seq: 14 } })
    expect(said).toEqual([])
  })

  it.each<[what: string, take: (path: string) => void, lines: number, left: number]>([
    ['removed', (path) => rmSync(path), 2, 0],
    ['removed with its head', (path) => [path, `${path}.head`].map((one) => rmSync(one)), 2, 0],
    ['renamed', (path) => renameSync(path, `${path}.1`), 2, 0],
    ['emptied', (path) => writeFileSync(path, ''), 2, 0],
    ['cut in place', (path) => cutTo(path, 1), 1, 1],
    ['replaced by an older one', (path) => replaceBy(path, linesOf(path).slice(0, 1)), 1, 1],
  ])('goes on at its path where the file is %s while it is written, and says so', async (_, take, lines, left) => {
    const path = newPath()
    const { logger, said } = heard()
    const config = { level: 'all', file: { path, key: KEY } } as const
    await using trail = await openAudit({ config, logger, metrics: new Metrics({}, { processMetrics: false }) })
    for (const one of some(2)) trail.record(one)
    await trail.flush()
    take(path)
    trail.record(entry(2))
    await trail.flush()
    expect(linesOf(path).slice(left)).toEqual([
      expect.stringContaining(`"kind":"cut","count":${lines}}`),
      expect.stringContaining('"requestId":"r2"'),
    ])
    expect(said).toEqual([{ path, lines }])
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({
      ok: false,
      fault: { line: left + 1, why: expect.stringMatching(/lines before this one were missing/) },
    })
    trail.record(entry(3))
    await trail.flush()
    expect(linesOf(path)).toHaveLength(left + 3)
  })

  it('says when it stops that the file is gone, where nothing was written since', async () => {
    const path = newPath()
    const metrics = new Metrics({}, { processMetrics: false })
    const config = { level: 'all', file: { path, key: KEY } } as const
    {
      await using trail = await openAudit({ config, logger: silentLogger, metrics })
      trail.record(entry(0))
      await trail.flush()
      for (const one of [path, `${path}.head`]) rmSync(one)
    }
    expect(linesOf(path)).toEqual([expect.stringContaining('"kind":"cut","count":1}')])
  })

  it('says what is gone also where the folder is gone for a while, and what could not be kept meanwhile', async () => {
    const path = join(folder, 'gone', 'audit.jsonl')
    mkdirSync(join(folder, 'gone'))
    const config = { level: 'all', file: { path, key: KEY } } as const
    const metrics = new Metrics({}, { processMetrics: false })
    await using trail = await openAudit({ config, logger: silentLogger, metrics })
    trail.record(entry(0))
    await trail.flush()
    rmSync(join(folder, 'gone'), { recursive: true })
    trail.record(entry(1))
    await trail.flush()
    expect(await metrics.registry.getSingleMetricAsString('clusterpulse_audit_missed_total')).toMatch(/file.* 1$/m)
    mkdirSync(join(folder, 'gone'))
    trail.record(entry(2))
    await trail.flush()
    expect(linesOf(path)).toEqual([
      expect.stringContaining('"kind":"cut","count":1}'),
      expect.stringContaining('"requestId":"r2"'),
      expect.stringContaining('"kind":"dropped","count":1}'),
    ])
  })

  it('verifies without a key only by a line noted elsewhere, and misses that line when it is cut off or another', async () => {
    const path = newPath()
    await write(path, some(5), { key: null })
    const whole = await verifyAudit(path)
    expect(whole).toMatchObject({ ok: false, fault: { why: expect.stringMatching(/AUDIT_KEY.*--expect/) } })
    const { last } = whole
    if (!last) throw new Error('a last line is known')
    expect(await verifyAudit(path, { expect: last })).toMatchObject({ ok: true, entries: 5, last })
    expect(await verifyAudit(path, { expect: { ...last, hash: '0'.repeat(64) } })).toMatchObject({ ok: false })
    cutTo(path, 3)
    rmSync(`${path}.head`)
    expect(await verifyAudit(path, { expect: last })).toMatchObject({
      ok: false,
      fault: { why: expect.stringMatching(/line 5, which was expected, is missing/) },
    })
  })

  it('keeps as many full files as set', async () => {
    const path = newPath()
    await write(path, some(60), { maxBytes: 2000, keepFiles: 2 })
    const name = path.slice(folder.length + 1)
    expect(readdirSync(folder).filter((one) => /\.\d{12}$/.test(one) && one.startsWith(name))).toHaveLength(2)
    const verdict = await verifyAudit(path, { key: KEY })
    expect(verdict).toMatchObject({ ok: true, last: { seq: 60 } })
    expect(verdict.first?.seq).toBeGreaterThan(1)
  })

  it('bounds what strangers can write, and says how much more it was', async () => {
    const path = newPath()
    const stranger = (n: number) =>
      entry(n, { username: '', groups: [], method: '', status: 401, address: `10.0.${n % 50}.1` })
    await write(path, [...Array.from({ length: 5_000 }, (_, n) => stranger(n)), entry(0)])
    const lines = linesOf(path)
    expect(lines.length).toBe(602)
    expect(lines.at(-1)).toMatch(/"kind":"strangers","count":4400/)
    expect(lines.at(-2)).toMatch(/"username":"alice"/)
  })

  it('bounds what a member can write, and not what others do', async () => {
    const path = newPath()
    const by = (name: string, n: number) =>
      entry(n, { kind: 'member', method: 'API', username: `system:open-cluster-management:${name}:a` })
    await write(path, [...Array.from({ length: 500 }, (_, n) => by('east', n)), by('west', 0), entry(0)])
    const lines = linesOf(path)
    expect(lines.length).toBe(63)
    expect(lines.at(-1)).toMatch(/"kind":"members","count":440/)
    expect(lines.at(-2)).toMatch(/"username":"alice"/)
    expect(lines.at(-3)).toMatch(/:west:a/)
  })

  it('counts nothing as missing whose lines are kept, where only the head beside them cannot be written', async () => {
    const path = newPath()
    const metrics = new Metrics({}, { processMetrics: false })
    const config = { level: 'all', file: { path, key: KEY } } as const
    await using trail = await openAudit({ config, logger: silentLogger, metrics })
    mkdirSync(`${path}.head.new`)
    trail.record(entry(0))
    await trail.flush()
    trail.record(entry(1))
    await trail.flush()
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, entries: 2 })
    expect(await metrics.registry.getSingleMetricAsString('clusterpulse_audit_missed_total')).not.toMatch(/file/)
  })

  it('cuts off a line that a crash left half, says so in the next, and goes on', async () => {
    const path = newPath()
    await write(path, some(3))
    appendFileSync(path, '{"seq":4,"prev":"')
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: false, entries: 3 })
    await write(path, some(1))
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, entries: 5 })
    expect(readFileSync(path, 'utf8')).toMatch(/"kind":"recovered"/)
  })

  it('keeps line feeds and quotes of hostile names inside their entry', async () => {
    const path = newPath()
    await write(path, [entry(0, { username: 'eve\n{"seq":2,"prev":"' }), entry(1)])
    expect(await verifyAudit(path, { key: KEY })).toMatchObject({ ok: true, entries: 2 })
  })

  it('keeps denials and every request through other eyes, but plain access only where all is asked for', async () => {
    const path = newPath()
    const access = entry(1, { kind: 'access', status: 200 })
    await write(path, [entry(0), access, { ...access, actor: 'root' }], { level: 'denials' })
    expect((await verifyAudit(path, { key: KEY })).entries).toBe(2)
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
      .poll(async () => {
        trail.record(entry(5))
        await trail.flush()
        return (await kept()).some(({ kind, count = 0 }) => kind === 'dropped' && count >= 2)
      })
      .toBe(true)
    eyes.disconnect()
  })
})
