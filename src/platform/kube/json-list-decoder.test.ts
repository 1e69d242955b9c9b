import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeList, listSink } from './decode.ts'
import { isKubeError } from './errors.ts'
import { secrets } from './resources.ts'

const call = { method: 'GET', path: '/api/v1/secrets' }
const headers = { 'content-type': 'application/json' }
const NOTHING = Buffer.alloc(0)

/** What an answer gives, or how it fails. */
function outcome(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return isKubeError(error) ? error.reason : error
  }
}

const atOnce = (body: Buffer) => outcome(() => decodeList(secrets, call, { status: 200, headers, body }))

function asItComes(body: Buffer, sizes: readonly number[]): unknown {
  const sink = listSink(secrets, call)({ status: 200, headers })
  if (!sink) throw new Error('a list of JSON is read as it comes')
  const used = Buffer.alloc(body.length)
  let at = 0
  for (const size of [...sizes, body.length]) {
    const chunk = used.subarray(0, body.copy(used, 0, at, at + size))
    sink.push(chunk)
    chunk.fill(0x7b) // the connection's memory is used again
    at += chunk.length
  }
  return outcome(() => decodeList(secrets, call, { status: 200, headers, body: NOTHING, sink }))
}

const sizes = fc.array(fc.nat({ max: 40 }), { maxLength: 30 })
const item = fc.record({
  metadata: fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
  x: fc.jsonValue({ maxDepth: 4 }),
})
const list = fc.record(
  {
    kind: fc.constantFrom('SecretList', 'Secret', 'items'),
    metadata: fc.record({ resourceVersion: fc.string(), continue: fc.string(), other: fc.jsonValue({ maxDepth: 2 }) }),
    items: fc.oneof(
      { weight: 5, arbitrary: fc.array(item, { maxLength: 5 }) },
      { arbitrary: fc.jsonValue(), weight: 1 },
    ),
    more: fc.jsonValue({ maxDepth: 3 }),
  },
  { requiredKeys: ['metadata'] },
)

describe('a list of JSON that is read while it comes', () => {
  it('gives what it gives at once, wherever its bytes are cut', () => {
    fc.assert(
      fc.property(list, fc.nat({ max: 3 }), sizes, (value, indent, cuts) => {
        const body = Buffer.from(JSON.stringify(value, null, indent))
        expect(asItComes(body, cuts)).toEqual(atOnce(body))
      }),
      { numRuns: 300 },
    )
  })

  it('is refused where it is refused at once: with a byte changed, one left out, or its end missing', () => {
    fc.assert(
      fc.property(
        list,
        fc.nat(),
        fc.constantFrom(...'{}[],:"\\x0 '),
        fc.nat({ max: 2 }),
        sizes,
        (value, place, put, how, cuts) => {
          const text = Buffer.from(JSON.stringify(value)).toString('latin1')
          const at = place % text.length
          const other = [
            text.slice(0, at) + put + text.slice(at + 1),
            text.slice(0, at) + text.slice(at + 1),
            text.slice(0, at),
          ]
          const body = Buffer.from(other[how] ?? '', 'latin1')
          expect(asItComes(body, cuts)).toEqual(atOnce(body))
        },
      ),
      { numRuns: 500 },
    )
  })

  it('has each object read as soon as its last byte is there', () => {
    let read = 0
    const { group, version, plural, kind, namespaced } = secrets
    const counted = { group, version, plural, kind, namespaced, fromJson: () => ++read }
    const items = Array.from({ length: 100 }, (_, i) => ({ metadata: { name: `secret-${i}` } }))
    const body = Buffer.from(JSON.stringify({ kind: 'SecretList', metadata: {}, items }))
    const sink = listSink(counted, call)({ status: 200, headers })
    sink?.push(body.subarray(0, body.length / 2))
    expect(read).toBeGreaterThan(40)
    sink?.push(body.subarray(body.length / 2))
    expect(
      decodeList(counted, call, { status: 200, headers, body: NOTHING, ...(sink && { sink }) }).items,
    ).toHaveLength(100)
  })
})
