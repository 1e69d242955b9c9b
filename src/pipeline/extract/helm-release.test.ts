import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { compileProfile } from './profile.ts'
import { packed } from './testing/planted.ts'

const release = {
  ...{ name: 'web', namespace: 'shop', version: 3, config: { replicas: 2, db: { password: 'hunter2' } } },
  info: { status: 'deployed', last_deployed: '2026-01-01T00:00:00Z' },
  chart: { metadata: { name: 'web-chart', version: '1.2.3', appVersion: '7', keywords: ['a', 'b'] }, values: { a: 1 } },
}
function valueAt(path: string, text: unknown, annotations: Record<string, string> = {}): unknown {
  const attributes = [{ name: 'x', path }]
  const { extractor, faults } = compileProfile({
    metadata: { annotations },
    spec: { targetGVK: { version: 'v1', kind: 'Secret' }, attributes },
  })
  const { row, failure } = extractor?.row({ metadata: { name: 'r', uid: 'u' }, data: { release: text } }) ?? {
    failure: { message: faults?.[0]?.message },
  }
  return failure ? `failed: ${failure.message}` : row?.attributes.x
}

describe('a Helm release', () => {
  it.each([
    ['releaseName', 'web'],
    ['namespace', 'shop'],
    ['revision', 3],
    ['status', 'deployed'],
    ['lastDeployed', '2026-01-01T00:00:00Z'],
    ['chartName', 'web-chart'],
    ['chartVersion', '1.2.3'],
    ['appVersion', '7'],
    ['chart.metadata.keywords[*]', ['a', 'b']],
    ['info.none', null],
    ['chart.values.a', expect.stringContaining('never given')],
  ])('tells its %s', (field, value) => expect(valueAt(`helm:release.${field}`, packed(release))).toEqual(value))

  it('tells what users gave by consent only', () => {
    expect(valueAt('helm:release.config.replicas', packed(release))).toMatch(/allow-secret-extraction/)
    const consent = { 'kollect.dev/allow-secret-extraction': 'true' }
    expect(valueAt('helm:release.config.replicas', packed(release), consent)).toBe(2)
    expect(valueAt('helm:release.config.db.password', packed(release), consent)).toBe('hunter2')
  })

  it('is read from plain JSON as well', () => {
    const plain = Buffer.from(JSON.stringify(release)).toString('base64')
    expect(valueAt('helm:release.chartVersion', plain)).toBe('1.2.3')
  })

  it.each([
    ['nothing', undefined, /no data.release/],
    ['a number', 7, /no data.release/],
    ['an empty text', '', /neither JSON nor packed/],
    ['noise', 'AAAA', /neither JSON nor packed/],
    ['a cut archive', packed(release).slice(0, 40), /./],
    ['JSON that ends early', Buffer.from('{"name": "secret-of-nobody').toString('base64'), /it is no JSON/],
  ])('that is %s fails, and shows nothing of it', (_, text, reason) => {
    const answer = valueAt('helm:release.status', text)
    expect(answer).toMatch(reason)
    expect(answer).not.toContain('secret-of-nobody')
  })

  it('is never unpacked beyond 32 MiB', () => {
    const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20, 0x20)).toString('base64')
    const before = process.memoryUsage().rss
    expect(valueAt('helm:release.status', Buffer.from(bomb).toString('base64'))).toMatch(/larger than 32 MiB/)
    expect(process.memoryUsage().rss - before).toBeLessThan(120 * 2 ** 20)
  })
})
