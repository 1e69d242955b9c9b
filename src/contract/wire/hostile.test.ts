import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, type BatchView, parseClusterName } from '#model'
import { decodeBody, encodeBody } from './body.ts'
import { Writer } from './bytes.ts'
import { decodeRequest, decodeResponse, encodeRequest, encodeResponse } from './envelopes.ts'
import { WireError } from './errors.ts'
import { originalFromBatch } from './original.ts'
import { decodePlan, encodePlan } from './plan.ts'
import { batches, headOf } from './testing/arbitrary.ts'

/** Same numbers on every run: a finding can be found again. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function damaged(bytes: Uint8Array, random: (below: number) => number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  switch (random(4)) {
    case 0:
      return copy.subarray(0, random(copy.length + 1))
    case 1: {
      const [at, put, cut] = [random(copy.length + 1), random(12), random(4)]
      const other = new Uint8Array(copy.length + put)
      other.set(copy.subarray(0, at))
      for (let i = 0; i < put; i++) other[at + i] = random(256)
      other.set(copy.subarray(at), at + put)
      return other.subarray(0, other.length - cut)
    }
    case 2:
      return Uint8Array.from({ length: random(200) }, () => random(256))
    default:
      for (let i = 0; i <= random(4); i++) if (copy.length > 0) copy[random(copy.length)] = random(256)
      return copy
  }
}

/** The number of inputs that were refused; anything but a WireError ends the test. */
function refusals(seeds: readonly Uint8Array[], rounds: number, decode: (bytes: Uint8Array) => unknown): number {
  const random = randomOf(20_261_121)
  let refused = 0
  // A stack for each of so many errors is most of the work.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  for (let i = 0; i < rounds; i++) {
    const bytes = damaged(seeds[i % seeds.length]!, random)
    try {
      decode(bytes)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      refused++
    }
  }
  Error.stackTraceLimit = stackTraceLimit
  return refused
}

const samples: readonly Batch[] = fc.sample(batches, { numRuns: 40, seed: 11 })
const base: BatchView = decodeBody(encodeBody(samples[0]!), headOf(samples[0]!)).view
const head = headOf(samples[0]!)
const plan = { version: 'v', intervalMs: 1, timeoutMs: 1, operatorScanIntervalMs: 1, sources: [{}] }

describe('whatever the bytes', () => {
  it('a body is read or refused, 20 000 times', () => readsBodies(20_000))
  it('a body is read or refused, 100 000 times', { tags: ['long'] }, () => readsBodies(100_000))
  const readsBodies = (times: number) => {
    const bodies = [...samples.map((batch) => encodeBody(batch)), ...samples.map((batch) => encodeBody(batch, base))]
    const refused = refusals(bodies, times, (bytes) => decodeBody(bytes, head, base))
    expect(refused).toBeGreaterThan(times / 2)
  }

  it('a message is read or refused, 20 000 times', () => readsMessages(20_000))
  it('a message is read or refused, 100 000 times', { tags: ['long'] }, () => readsMessages(100_000))
  const readsMessages = (times: number) => {
    const messages = [
      ...samples.slice(0, 10).map((batch) =>
        encodeRequest({
          payload: { case: 'metrics', value: originalFromBatch({ ...batch, parts: [], collectedAt: 1 }) },
        }),
      ),
      encodeRequest({ payload: { case: 'frame', value: { sequence: 3, body: encodeBody(samples[1]!) } } }),
      encodeRequest({ payload: { case: 'loss', value: { sequence: 3, lost: [{ first: 1, last: 2 }] } } }),
    ]
    const answers = [
      encodeResponse({ payload: { case: 'welcome', value: { version: 1, received: [{ first: 1, last: 9 }] } } }),
      encodeResponse({ payload: { case: 'ack', value: { received: [{ first: 1, last: 9 }], code: 'x' } } }),
    ]
    expect(refusals(messages, 0.7 * times, decodeRequest)).toBeGreaterThan(times / 10)
    expect(refusals(answers, 0.3 * times, decodeResponse)).toBeGreaterThan(times / 20)
  }

  it('a plan is read or refused', () => {
    expect(refusals([encodePlan(plan)], 5_000, decodePlan)).toBeGreaterThan(1_000)
  })
})

describe('a small body that claims much', () => {
  const withRows = (rows: number) => {
    const body = new Writer()
    for (const byte of [1, 0, 0]) body.u8(byte)
    const texts = ['namespace', 'c']
    body.varint(texts.length)
    for (const text of texts) body.varint(text.length)
    body.raw(new TextEncoder().encode(texts.join('')))
    for (const byte of [2, 0, 0]) body.u8(byte) // the duration 0
    body.varint(1)
    body.varint(0)
    body.sized(() => {
      body.u8(0)
      body.varint(1)
      for (const byte of [2, 0, 0]) body.u8(byte)
      body.varint(rows)
      body.varint(0)
    })
    return body.done()
  }

  it('is served as long as it is cheap', () => {
    const { batch } = decodeBody(withRows(1000), head)
    expect(batch.parts).toMatchObject([{ type: 'namespace', outcome: 'complete' }])
    expect(batch.parts[0]?.outcome === 'complete' && batch.parts[0].items.length).toBe(1000)
  })

  it.each([2200, 1e6, 2 ** 40, Number.MAX_SAFE_INTEGER])('is refused before anything is made for %d rows', (rows) => {
    const before = process.memoryUsage().heapUsed
    expect(() => decodeBody(withRows(rows), head)).toThrow(WireError)
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(8 * 1024 * 1024)
  })

  it('is refused however large it is: a bomb of zeros that inflates well', () => {
    const bomb = new Uint8Array(16 * 1024 * 1024)
    bomb.set(withRows(380_000))
    expect(() => decodeBody(bomb, head)).toThrow(/more than its size allows/)
  })

  it('is refused when it has more texts than anybody has to say', () => {
    const body = new Writer()
    for (const byte of [1, 0, 0]) body.u8(byte)
    body.varint(3_000_000)
    body.zeros(4_000_000)
    expect(() => decodeBody(body.done(), head)).toThrow(/too many texts/)
  })

  it('is not what a body of many equal rows is: its writer pays for them', () => {
    const items = Array.from({ length: 20_000 }, (_, i) => ({
      name: `${i}${i % 1000 === 0 ? 'ü' : ''}`,
      phase: '',
      createdAt: null,
      labels: {},
    }))
    const batch: Batch = {
      cluster: parseClusterName('west'),
      sequence: 1,
      source: 'push',
      collectedAt: 1,
      durationMs: 1,
      parts: [{ type: 'namespace', collector: 'n', durationMs: 1, outcome: 'complete', items }],
    }
    expect(decodeBody(encodeBody(batch), { cluster: batch.cluster, sequence: 1, collectedAt: 1 }).batch).toEqual(batch)
  })
})

describe('a message that claims much', () => {
  it('is refused when its parts are nothing but their beginnings', () => {
    // MetricsBatch with 200 000 empty nodes
    const nodes = new Uint8Array(400_000)
    for (let i = 0; i < nodes.length; i += 2) nodes[i] = (5 << 3) | 2
    const message = new Writer()
    message.u8((1 << 3) | 2)
    message.varint(nodes.length)
    message.raw(nodes)
    expect(() => decodeRequest(message.done())).toThrow(/more than its size allows/)
  })

  it('is refused when it nests groups without end', () => {
    expect(() => decodeRequest(new Uint8Array(1_000_000).fill((9 << 3) | 3))).toThrow(WireError)
    expect(() => decodeRequest(new Uint8Array(60_000).fill((9 << 3) | 3))).toThrow(WireError)
  })

  it('is read when it is merely large', () => {
    const resource = (i: number) => ({
      id: `${i}`,
      namespace: 'team',
      name: `thing-${i}`,
      labels: { app: 'x' },
      valuesJson: new Uint8Array(40),
    })
    const resources = Array.from({ length: 5_000 }, (_, i) => resource(i))
    const bytes = encodeRequest({ payload: { case: 'metrics', value: { customResources: [{ resources }] } } })
    const { payload } = decodeRequest(bytes)
    expect(payload.case === 'metrics' && payload.value.customResources[0]?.resources.length).toBe(5_000)
  })
})
