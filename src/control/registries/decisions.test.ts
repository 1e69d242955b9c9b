import { describe, expect, it } from 'vitest'
import { minutes } from '#model'
import type { ProbeResult } from '#registry'
import type { Registry } from './registry-resource.ts'
import { type StatusInputs, statusPatch } from './status.ts'
import { endpointOf, nextProbeMs, settingsOf } from './target.ts'

const aRegistry = (spec: Partial<Registry['spec']> = {}): Registry =>
  ({
    metadata: { name: 'harbor', namespace: 'clusterpulse' },
    spec: { endpoint: 'https://harbor.example', ...spec },
  }) as Registry

describe('an endpoint', () => {
  it.each([
    ['harbor.example', 'https://harbor.example'],
    ['harbor.example:5000/', 'https://harbor.example:5000'],
    ['HTTP://harbor.example', 'http://harbor.example'],
    ['Https://harbor.example/registry//', 'https://harbor.example/registry'],
    ['httpbin.example', 'https://httpbin.example'],
  ])('written as %s is %s', (written, read) => expect(endpointOf(written)).toBe(read))
})

describe('settings', () => {
  it.each([
    [undefined, 60],
    [0, 60],
    [-5, 60],
    [1, 30],
    [29, 30],
    [30, 30],
    [45, 45],
    [2 ** 31 - 1, 86_400],
  ])('with an interval of %s probe every %i s', (interval, s) =>
    expect(
      settingsOf(aRegistry({ monitoring: { ...(interval !== undefined && { interval }) } }), 'x').target.intervalMs,
    ).toBe(s * 1000),
  )

  it.each([
    [undefined, 10],
    [0, 10],
    [-1, 10],
    [1, 1],
    [25, 25],
    [2 ** 31 - 1, 600],
  ])('with a timeout of %s wait %i s', (timeout, s) =>
    expect(
      settingsOf(aRegistry({ monitoring: { ...(timeout !== undefined && { timeout }) } }), 'x').target.timeoutMs,
    ).toBe(s * 1000),
  )

  it.each([
    [undefined, 100],
    [0, 100],
    [7, 7],
    [-1, undefined],
  ])('with %s catalogue entries ask for pages of %s', (maxCatalogEntries, size) =>
    expect(
      settingsOf(aRegistry({ monitoring: { ...(maxCatalogEntries !== undefined && { maxCatalogEntries }) } }), 'x')
        .target.catalogPageSize,
    ).toBe(size),
  )

  it('name what does not count as written', () =>
    expect(settingsOf(aRegistry({ monitoring: { interval: 5, timeout: 900 } }), 'x').adjustments).toEqual([
      'monitoring.interval 5 counts as 30',
      'monitoring.timeout 900 counts as 600',
    ]))

  it('look for the Secret beside the object, unless it says where', () => {
    expect(settingsOf(aRegistry({ credentialsRef: { name: 's' } }), 'x').target.credentialsRef).toEqual({
      name: 's',
      namespace: 'clusterpulse',
    })
    const credentialsRef = { name: 's', namespace: 'there' }
    expect(settingsOf(aRegistry({ credentialsRef }), 'x').target.credentialsRef).toEqual(credentialsRef)
  })
})

describe('the next probe', () => {
  it.each([
    [0, 1],
    [1, 1],
    [2, 2],
    [3, 4],
    [4, 5],
    [1000, 5],
  ])('after %i failures comes %i intervals after this one began', (failures, intervals) =>
    expect(nextProbeMs(60_000, failures, 2_000, 0.5)).toBe(intervals * 60_000 - 2_000),
  )

  it('is spread by a tenth of the interval, and leaves a second at least', () => {
    expect(nextProbeMs(60_000, 0, 0, 0)).toBe(57_000)
    expect(nextProbeMs(60_000, 0, 0, 1)).toBe(63_000)
    expect(nextProbeMs(30_000, 0, 600_000, 0.5)).toBe(1_000)
  })
})

describe('a status', () => {
  const now = Date.UTC(2026, 0, 1)
  const result = (changes: Partial<ProbeResult> = {}): ProbeResult => ({
    at: now,
    available: true,
    responseMs: 12,
    version: 'registry/2.0',
    features: { docker_v2_api: true },
    repositoryCount: 3,
    isCatalogTruncated: false,
    repositories: null,
    health: 'healthy',
    message: 'Registry is healthy (response time: 12ms)',
    code: '',
    error: '',
    warnings: [],
    ...changes,
  })
  const inputs = (changes: Partial<StatusInputs> = {}): StatusInputs => ({
    stored: undefined,
    generation: 1,
    target: settingsOf(aRegistry(), 'x').target,
    credentials: undefined,
    accept: () => expect.fail('there are none to accept'),
    result: result(),
    adjustments: [],
    now,
    ...changes,
  })
  const stored = statusPatch(inputs()) as StatusInputs['stored']

  it('begins with Connecting', () =>
    expect(statusPatch(inputs({ result: undefined }))).toMatchObject({ phase: 'Connecting', health: 'unknown' }))

  it('is not written where nothing differs', () => expect(statusPatch(inputs({ stored }))).toBeUndefined())

  it('is not written for a response time within a minute, and is after it', () => {
    const moved = result({ responseMs: 900, message: 'Registry is healthy (response time: 900ms)', at: now + 30_000 })
    expect(statusPatch(inputs({ stored, result: moved, now: now + 30_000 }))).toBeUndefined()
    const later = { ...moved, at: now + minutes(1) }
    expect(statusPatch(inputs({ stored, result: later, now: now + minutes(1) }))).toEqual({
      lastCheckTime: '2026-01-01T00:01:00Z',
      responseTime: 900,
      message: moved.message,
    })
  })

  it('is written at once where health changes, and takes away what does not hold any more', () => {
    const gone = result({
      ...{ available: false, health: 'unhealthy', responseMs: null, version: '', repositoryCount: null, features: {} },
      ...{ code: 'tls_untrusted', error: 'why', message: 'Registry unavailable: why' },
    })
    expect(statusPatch(inputs({ stored, result: gone, now: now + 1 }))).toMatchObject({
      ...{ available: false, phase: 'Error', health: 'unhealthy', responseTime: null, version: null },
      ...{ repositoryCount: null, features: { docker_v2_api: null } },
      conditions: [
        { type: 'Ready', status: 'False', reason: 'TlsUntrusted' },
        { type: 'Reachable', status: 'False' },
        { type: 'TLSVerified', status: 'False', reason: 'Untrusted' },
      ],
    })
  })

  it('keeps the time of a condition that holds on', () => {
    const changed = statusPatch(inputs({ stored, result: result({ repositoryCount: 4 }), now: now + minutes(9) }))
    expect(changed).not.toHaveProperty('conditions')
    expect(changed).toMatchObject({ repositoryCount: 4 })
  })

  it('says what was adjusted, and stops saying so', () => {
    const adjusted = statusPatch(
      inputs({ adjustments: ['monitoring.interval 5 counts as 30'] }),
    ) as StatusInputs['stored']
    expect(adjusted?.conditions).toContainEqual(expect.objectContaining({ type: 'SpecAdjusted', status: 'True' }))
    const after = statusPatch(inputs({ stored: adjusted })) as StatusInputs['stored']
    expect(after?.conditions).not.toContainEqual(expect.objectContaining({ type: 'SpecAdjusted' }))
  })
})
