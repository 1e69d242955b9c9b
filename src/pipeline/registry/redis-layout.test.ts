import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  announced,
  eventDocument,
  measurementDocument,
  readMeasurement,
  readSpec,
  readStatus,
  specDocument,
  statusDocument,
  statusTtlS,
} from './redis-layout.ts'
import { factsOf, readFacts, readResult } from './stored.ts'
import type { ProbeResult, RegistryFacts } from './types.ts'

const texts = fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }).filter((map) => !('__proto__' in map))
const seconds = fc.integer({ min: 1, max: 86_400 }).map((s) => s * 1000)

const someFacts: fc.Arbitrary<RegistryFacts> = fc
  .record({
    name: fc.stringMatching(/^[a-z0-9.-]{1,30}$/),
    displayName: fc.string({ minLength: 1 }),
    endpoint: fc.webUrl(),
    type: fc.string(),
    labels: texts,
    insecure: fc.boolean(),
    skipTlsVerify: fc.boolean(),
    caPem: fc.option(fc.string(), { nil: undefined }),
    allowPrivateRedirects: fc.boolean(),
    credentialsRef: fc.option(fc.record({ name: fc.string(), namespace: fc.string() }), { nil: undefined }),
    intervalMs: seconds,
    timeoutMs: seconds,
    checkCatalog: fc.boolean(),
    catalogPageSize: fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }),
    healthCheckPaths: fc.array(fc.string(), { maxLength: 3 }),
  })
  .map((facts) => factsOf(facts))

const someResult: fc.Arbitrary<ProbeResult> = fc.record({
  at: fc.integer({ min: 0, max: 4e12 }),
  available: fc.boolean(),
  responseMs: fc.option(fc.nat()),
  version: fc.string(),
  features: fc.dictionary(fc.string(), fc.boolean(), { maxKeys: 3 }).filter((map) => !('__proto__' in map)),
  repositoryCount: fc.option(fc.nat()),
  isCatalogTruncated: fc.boolean(),
  repositories: fc.option(fc.array(fc.string(), { maxLength: 20 })),
  health: fc.constantFrom('healthy', 'degraded', 'unhealthy', 'unknown'),
  message: fc.string(),
  code: fc.string(),
  error: fc.string(),
  warnings: fc.array(fc.record({ code: fc.string(), message: fc.string() }), { maxLength: 2 }),
})

const through = (document: unknown): string => JSON.stringify(document)
const anything = fc.oneof(fc.jsonValue().map(through), fc.string(), fc.object().map(through))

describe('documents of registries', () => {
  it('give back what was declared', () =>
    fc.assert(
      fc.property(someFacts, (facts) => {
        expect(readSpec(facts.name, through(specDocument(facts)))).toEqual(facts)
        expect(readFacts(JSON.parse(through(facts)))).toEqual(facts)
      }),
    ))

  it('give back what was found', () =>
    fc.assert(
      fc.property(someResult, fc.option(fc.nat()), (result, since) => {
        const text = through(statusDocument({ since }, result))
        expect(readStatus(text)).toEqual({ last: JSON.parse(through(result)), since })
        expect(readResult(JSON.parse(through(result)))).toEqual(JSON.parse(through(result)))
      }),
    ))

  it('give back what was measured, to the second and the millisecond', () =>
    fc.assert(
      fc.property(
        fc.nat().map((s) => s * 1000),
        fc.integer({ min: 1, max: 1e6 }),
        (at, responseMs) => {
          for (const available of [true, false])
            expect(readMeasurement(measurementDocument({ at, available, responseMs }))).toEqual({
              at,
              available,
              responseMs,
            })
          const none = { at, available: false, responseMs: null }
          expect(readMeasurement(measurementDocument(none))).toEqual(none)
        },
      ),
    ))

  it('by whoever are read without a throw, and what comes of them is whole', () =>
    fc.assert(
      fc.property(anything, (text) => {
        const spec = readSpec('a', text)
        if (spec) expect(readFacts(JSON.parse(through(spec)))).toEqual(spec)
        const status = readStatus(text)
        if (status?.last) expect(readResult(JSON.parse(through(status.last)))).toBeDefined()
        readMeasurement(text)
        announced(text)
      }),
    ))

  it('of the original with odd parts are read as far as they make sense', () => {
    const spec = {
      endpoint: 'https://x',
      labels: { a: 1, b: 'c' },
      monitoring: { interval: -4, max_catalog_entries: -1 },
    }
    expect(readSpec('x', through(spec))).toMatchObject({
      ...{ displayName: 'x', labels: { b: 'c' }, intervalMs: 60_000, timeoutMs: 10_000, catalogPageSize: undefined },
    })
    const status = {
      available: false,
      response_time: 0,
      last_check: '2026-01-01T00:00:00Z',
      error: 'why',
      features: null,
    }
    expect(readStatus(through(status))?.last).toMatchObject({
      ...{ available: false, responseMs: null, health: 'unhealthy', error: 'why', repositoryCount: null, features: {} },
    })
    expect(readStatus(through({ available: true }))).toBeUndefined()
    expect(readSpec('x', through({ display_name: 'no endpoint' }))).toBeUndefined()
  })

  it('name the registry they announce', () => {
    expect(announced(eventDocument('registry.deleted', 'quay', 0, null))).toBe('quay')
    expect(announced('{}')).toBeUndefined()
  })

  it('stand longer than any planned pause between two probes', () =>
    fc.assert(
      fc.property(someFacts, (facts) => {
        expect(statusTtlS(facts, 600_000) * 1000).toBeGreaterThanOrEqual(Math.max(600_000, facts.intervalMs * 7))
      }),
    ))
})
