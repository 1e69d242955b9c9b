import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import type { RegistryDetailView, RegistryView } from '../../contract.ts'
import { hasValues, pictureOf } from '../../history/picture.ts'
import {
  availabilityOf,
  availabilityText,
  example,
  featureTexts,
  formatMs,
  historyOf,
  needOf,
  nextStep,
  percent,
  repositoriesText,
  responsePlan,
  severityOf,
  slotsOf,
  sparkPath,
  sparkText,
  summaryOf,
  whyNoCount,
} from './registry-model.ts'

const now = Date.UTC(2026, 0, 2, 12)
const minute = 60_000

const view = (changes: Partial<RegistryView> = {}): RegistryView => ({
  ...{ name: 'harbor', displayName: 'Harbor', endpoint: 'https://harbor.example', type: 'harbor', labels: {} },
  ...{ skipTlsVerify: false, insecure: false, intervalMs: minute, health: 'healthy', message: '', available: true },
  ...{ since: now, checkedAt: now, stale: false, responseMs: 12, recent: [], version: '', features: {} },
  ...{ repositoryCount: null, repositories: null, catalogTruncated: false, code: '', error: '', warnings: [] },
  ...changes,
})

describe('a registry', () => {
  it('needs somebody as its health says, and is stale where that is old', () => {
    expect(needOf(view())).toBe('healthy')
    expect(needOf(view({ stale: true, health: 'unknown' }))).toBe('stale')
    const worstFirst = (['healthy', 'unhealthy', 'degraded', 'unknown'] as const)
      .map((health) => view({ health }))
      .sort((a, b) => severityOf(a) - severityOf(b))
    expect(worstFirst.map(({ health }) => health)).toEqual(['unhealthy', 'degraded', 'unknown', 'healthy'])
  })

  it('tells how many repositories it has, and why that is not known', () => {
    expect(repositoriesText(view({ repositoryCount: 0 }))).toBe('0')
    expect(repositoriesText(view({ repositoryCount: 1000, catalogTruncated: true }))).toMatch(/^1.?000\+$/)
    expect(repositoriesText(view())).toBeNull()
    expect(whyNoCount(view())).toBe('counting is not asked for')
    expect(whyNoCount(view({ available: false }))).toBe('the registry is not available')
    expect(whyNoCount(view({ checkedAt: null }))).toBe('it was not checked yet')
    const warnings = [{ code: 'catalog_forbidden', message: 'repositories: the registry does not let us' }]
    expect(whyNoCount(view({ warnings }))).toBe('the registry does not let us')
  })

  it('is described by what was noticed, known or not', () =>
    expect(featureTexts({ features: { harbor_detected: true, new_thing: true, requires_auth: false } })).toEqual([
      'Harbor',
      'new thing',
    ]))

  it('comes with a next step for what can go wrong', () => {
    for (const code of [
      'unreachable',
      'timeout',
      'tls_untrusted',
      'not_a_registry',
      'redirect_refused',
      'unauthorized',
    ])
      expect(nextStep(code), code).not.toBe('')
    expect(nextStep('something_new')).toBe('')
  })
})

describe('all registries together', () => {
  it.each([
    ['none', [], null],
    ['all available', [view(), view()], { available: 2, total: 2, need: 'healthy' }],
    ['some', [view(), view({ available: false })], { available: 1, total: 2, need: 'degraded' }],
    ['one that is stale', [view(), view({ stale: true })], { available: 1, total: 2, need: 'degraded' }],
    ['none available', [view({ available: false })], { available: 0, total: 1, need: 'unhealthy' }],
    ['none checked yet', [view({ available: null })], { available: 0, total: 1, need: 'unknown' }],
  ])('%s', (_, registries, summary) => expect(summaryOf(registries)).toEqual(summary))
})

const measured = (...states: readonly (number | null)[]): RegistryDetailView['measurements'] =>
  states.map((ms, index) => [now - (states.length - index) * minute, ms, ms !== null])

describe('availability', () => {
  it('is the share of the measured time, in which a silence does not count', () => {
    expect(availabilityOf([], minute, now)).toBeNull()
    expect(availabilityOf(measured(1, 1, 1, null), minute, now)).toBe(0.75)
    // Silent for hours after one failure: that says nothing of those hours.
    const silent: RegistryDetailView['measurements'] = [
      [now - 600 * minute, null, false],
      [now - 6 * minute, 1, true],
    ]
    expect(availabilityOf(silent, minute, now)).toBe(0.5)
  })

  it('is told in words, and never as 100 % where something failed', () => {
    expect(availabilityText([], minute, now)).toBe('It was not measured in the last 24 hours.')
    expect(availabilityText(measured(1, 2), minute, now)).toBe('Available in all 2 measurements of 2 min.')
    expect(availabilityText(measured(1, null), minute, now)).toContain(
      'Available for 50 % of 2 min; 1 measurement of 2',
    )
    expect(percent(0.99999)).toBe('99.99 %')
    expect(percent(0.5)).toBe('50 %')
    expect(percent(0.999)).toBe('99.9 %')
  })

  it('is shown in quarters of an hour that end now', () => {
    const slots = slotsOf(measured(1, null, 1), now)
    expect(slots).toHaveLength(96)
    expect(slots.at(-1)).toEqual({ from: now - 15 * minute, to: now, probes: 3, failed: 1 })
    expect(slots.slice(0, -1).every(({ probes }) => probes === 0)).toBe(true)
  })
})

describe('the chart of response times', () => {
  it('breaks where the registry was not available, and over a silence', () => {
    const measurements: RegistryDetailView['measurements'] = [
      [now - 60 * minute, 100, true],
      [now - 20 * minute, 200, true],
      [now - 19 * minute, null, false],
      [now - 18 * minute, 300, true],
    ]
    const { series, step } = historyOf(measurements, minute, now - 90 * minute, now)
    expect(step).toBe(60)
    expect(series[0]?.points.map(([, value]) => value)).toEqual([100, null, 200, null, 300])
    const picture = pictureOf(historyOf(measurements, minute, now - 90 * minute, now), now)
    expect(hasValues(picture, responsePlan)).toBe(true)
    expect(picture).toMatchObject({ from: now - 90 * minute, to: now, newest: now - 18 * minute })
  })

  it('holds what lies in its range only', () =>
    expect(historyOf(measured(1, 2, 3), minute, now - 2 * minute, now).series[0]?.points).toHaveLength(2))
})

describe('the small line', () => {
  it('has a gap where there was no answer, and words for all of it', () => {
    expect(sparkPath([10, 20, null, 10])).toEqual({ line: 'M0 9L24 2M72 9', gaps: [48] })
    expect(sparkText([10, 20, null, 10])).toBe(
      'between 10 ms and 20 ms in the last 4 measurements, 1 without an answer',
    )
    expect(sparkText([null])).toBe('no answer in the last 1 measurement')
    expect(sparkText([])).toBe('not measured yet')
    expect(sparkPath([])).toEqual({ line: '', gaps: [] })
  })

  it('tells milliseconds until they are many', () => {
    expect(formatMs(0)).toBe('0 ms')
    expect(formatMs(12.4)).toBe('12 ms')
    expect(formatMs(12_000)).toBe('12 s')
  })
})

describe('the example to copy', () => {
  it('is a RegistryConnection', () =>
    expect(parse(example)).toMatchObject({
      kind: 'RegistryConnection',
      spec: { endpoint: 'https://harbor.example.com', credentialsRef: { name: 'harbor-credentials' } },
    }))
})
