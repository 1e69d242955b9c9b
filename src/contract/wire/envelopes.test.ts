import { fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COLLECTOR_METHOD, decodeRequest, decodeResponse, encodeRequest, encodeResponse } from './envelopes.ts'
import { CollectorService, RegisterRequestSchema } from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { decodePlan, encodePlan } from './plan.ts'
import { capabilities, negotiate, type Offer, ownOffer, WIRE_VERSION } from './versions.ts'

describe('messages', () => {
  it('go by the name and the numbers of the original', () => {
    const { method } = { method: CollectorService.method.connect }
    expect(COLLECTOR_METHOD).toBe(`/${CollectorService.typeName}/${method.name}`)
    // register = 3 { cluster_name = 1: "west", token = 2: "t", version = 3: "1" }, by hand
    const bytes = Uint8Array.from([0x1a, 12, 0x0a, 4, 0x77, 0x65, 0x73, 0x74, 0x12, 1, 0x74, 0x1a, 1, 0x31])
    const message = { clusterName: 'west', token: 't', version: '1' }
    expect(encodeRequest({ payload: { case: 'register', value: message } })).toEqual(bytes)
    expect(decodeRequest(bytes).payload).toMatchObject({ case: 'register', value: message })
  })

  it('come back as they were', () => {
    const frame = {
      sequence: 2 ** 40,
      base: 7,
      backfill: true,
      collectedAtMs: 1.5,
      ageMs: 0,
      compression: 1,
      bodyBytes: 3,
      body: Uint8Array.of(1, 2, 3),
    }
    expect(decodeRequest(encodeRequest({ payload: { case: 'frame', value: frame } })).payload).toMatchObject({
      case: 'frame',
      value: frame,
    })
    const ack = {
      batchId: 'b',
      success: false,
      error: 'e',
      received: [{ first: 1, last: 4 }],
      retryable: true,
      retryAfterMs: 5,
      code: 'c',
    }
    expect(decodeResponse(encodeResponse({ payload: { case: 'ack', value: ack } })).payload).toMatchObject({
      case: 'ack',
      value: ack,
    })
  })

  it('with a payload we do not know have none, and an empty message is one', () => {
    expect(decodeRequest(Uint8Array.from([0x7a, 2, 8, 1])).payload.case).toBeUndefined()
    expect(decodeRequest(new Uint8Array()).payload.case).toBeUndefined()
    expect(decodeResponse(Uint8Array.from([0x7a, 2, 8, 1])).payload.case).toBeUndefined()
  })

  it('of ours make sense to the original, which passes over what is new', () => {
    const bytes = encodeRequest({
      payload: { case: 'register', value: { clusterName: 'west', hello: { origin: 'o' } } },
    })
    const original = fromBinary(RegisterRequestSchema, bytes.subarray(2), { readUnknownFields: false })
    expect(toBinary(RegisterRequestSchema, { ...original, token: 'x' }).length).toBeGreaterThan(6)
    expect(original.clusterName).toBe('west')
  })
})

describe('versions', () => {
  const offer = (minVersion: number, maxVersion: number, more: Partial<Offer> = {}): Offer => ({
    minVersion,
    maxVersion,
    capabilities,
    ...more,
  })

  it('are the highest that both ends speak, whichever end is a version ahead', () => {
    expect(negotiate(offer(1, 2), offer(1, 1))?.version).toBe(1)
    expect(negotiate(offer(1, 1), offer(1, 2))?.version).toBe(1)
    expect(negotiate(offer(2, 3), offer(1, 2))?.version).toBe(2)
    expect(negotiate(ownOffer)).toEqual({ version: WIRE_VERSION, capabilities })
  })

  it('that are too far apart, or no versions, are no agreement', () => {
    expect(negotiate(offer(3, 4), offer(1, 2))).toBeUndefined()
    expect(negotiate(offer(1, 1), offer(2, 3))).toBeUndefined()
    expect(negotiate(offer(2, 1))).toBeUndefined()
    expect(negotiate(offer(0, 0))).toBeUndefined()
  })

  it('bring the abilities both have; unknown ones are nothing', () => {
    expect(negotiate(offer(1, 1, { capabilities: ['plan', 'telepathy', 'frames'] }))?.capabilities).toEqual([
      'frames',
      'plan',
    ])
  })
})

describe('a plan', () => {
  const plans = fc.record({
    version: fc.string(),
    intervalMs: fc.integer({ min: 1 }),
    timeoutMs: fc.integer({ min: 1 }),
    operatorScanIntervalMs: fc.integer({ min: 1 }),
    // JSON has no -0.
    sources: fc.array(fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)))),
    more: fc.record(
      { resources: fc.array(fc.string()), refreshMs: fc.integer({ min: 1 }), kubelets: fc.string() },
      { requiredKeys: [] },
    ),
  })

  it('comes back as it was, without what we do not know of it', () => {
    fc.assert(
      fc.property(plans, ({ more, ...told }) => {
        const plan = { ...told, ...more }
        expect(decodePlan(encodePlan(plan))).toEqual(plan)
      }),
    )
    const newer = { version: 'v', intervalMs: 1, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [], later: 1 }
    expect(decodePlan(encodePlan(newer))).not.toHaveProperty('later')
  })

  it.each([
    ['no object', 7],
    ['a list', []],
    ['no version', { intervalMs: 1, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [] }],
    ['an interval of 0', { version: 'v', intervalMs: 0, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [] }],
    [
      'a text for an interval',
      { version: 'v', intervalMs: '30s', timeoutMs: 1, operatorScanIntervalMs: 1, sources: [] },
    ],
    [
      'a rate of 0',
      { version: 'v', intervalMs: 1, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [], refreshMs: 0 },
    ],
    ['no sources', { version: 'v', intervalMs: 1, timeoutMs: 1, operatorScanIntervalMs: 1 }],
  ])('is refused when it is or has %s', (_, value) => {
    expect(() => decodePlan(new TextEncoder().encode(JSON.stringify(value)))).toThrow(/plan/)
  })
})
