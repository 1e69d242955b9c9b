import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ApiObject } from '../types.ts'
import { catalogue } from './catalogue.ts'
import {
  decodeObject,
  encodeList,
  encodeObject,
  encodeWatchEvent,
  ProtobufError,
  UnencodableFieldError,
} from './index.ts'
import type { Field, Message } from './table.ts'
import { samples } from './test/samples.ts'

/** Any value a field can hold and JSON would show. */
function scalarOf({ kind, keepsZero, shape }: Field): fc.Arbitrary<unknown> {
  if (typeof kind === 'object') return messageValue(kind)
  const zero = keepsZero || shape !== 'one'
  const instant = (micro: boolean) =>
    fc.integer({ min: 1, max: 4_000_000_000 }).map((seconds) => {
      const text = new Date(seconds * 1000).toISOString().slice(0, 19)
      return micro ? `${text}.${String(seconds % 1_000_000).padStart(6, '0')}Z` : `${text}Z`
    })
  switch (kind) {
    case 'bool':
      return zero ? fc.boolean() : fc.constant(true)
    case 'int32':
      return fc.integer().filter((value) => zero || value !== 0)
    case 'int64':
      return fc.maxSafeInteger().filter((value) => zero || value !== 0)
    case 'double':
      return fc.double({ noNaN: true })
    case 'bytes':
      return fc.uint8Array({ minLength: zero ? 0 : 1 }).map((bytes) => Buffer.from(bytes).toString('base64'))
    case 'time':
      return instant(false)
    case 'microtime':
      return instant(true)
    case 'quantity':
      return fc.constantFrom('250m', '1Gi', '0', '12')
    case 'intOrString':
      return fc.oneof(fc.integer(), fc.string())
    case 'raw':
    case 'fields':
      return fc.dictionary(
        fc.string().filter((name) => name !== '__proto__'),
        fc.integer(),
      )
    case 'strings':
      return fc.array(fc.string(), { minLength: zero ? 0 : 1 })
    default:
      return fc.string({ unit: 'grapheme', minLength: zero ? 0 : 1, maxLength: 12 })
  }
}

function fieldValue(field: Field): fc.Arbitrary<unknown> {
  const one = scalarOf(field)
  if (field.shape === 'many') return fc.array(one, { minLength: 1, maxLength: 2 })
  if (field.shape === 'map') return fc.dictionary(fc.string({ maxLength: 8 }), one, { minKeys: 1, maxKeys: 3 })
  return one
}

/** A message with a few of its fields: all of them at once would be endless. */
function messageValue(message: Message): fc.Arbitrary<Record<string, unknown>> {
  const fields = message.fields.flatMap((field) =>
    field.shape === 'inline' && typeof field.kind === 'object' ? [...field.kind.fields] : [field],
  )
  return fc
    .subarray(fields, { maxLength: Math.min(4, fields.length) })
    .chain((some) => fc.record(Object.fromEntries(some.map((field) => [field.name, fieldValue(field)]))))
    .map((value) => ({ ...value }))
}

const kinds = samples.map(({ apiVersion, kind }) => ({ apiVersion, kind }))
const packageOf: Readonly<Record<string, string>> = {
  v1: 'core',
  'apps/v1': 'apps',
  'batch/v1': 'batch',
  'storage.k8s.io/v1': 'storage',
  'certificates.k8s.io/v1': 'certificates',
  'coordination.k8s.io/v1': 'coordination',
  'events.k8s.io/v1': 'events',
  'rbac.authorization.k8s.io/v1': 'rbac',
}

const anObject = fc
  .constantFrom(...kinds)
  .chain(({ apiVersion, kind }) =>
    messageValue(catalogue.get(`${packageOf[apiVersion]}.${kind}`)).map(
      (fields) => ({ kind, apiVersion, ...fields }) as unknown as ApiObject,
    ),
  )

describe('the binary form of objects', () => {
  it('reads back whatever is written', () => {
    fc.assert(
      fc.property(anObject, (object) => {
        expect(decodeObject(encodeObject(object), { unknown: 'throw' })).toEqual(object)
      }),
      { numRuns: 500 },
    )
  })

  it('answers broken bytes with an error that says so, never otherwise', () => {
    const attempt = (bytes: Buffer) => {
      try {
        decodeObject(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(ProtobufError)
      }
    }
    fc.assert(
      fc.property(anObject, fc.nat(), fc.nat({ max: 255 }), (object, at, byte) => {
        const bytes = encodeObject(object)
        attempt(bytes.subarray(0, at % bytes.length))
        const changed = Buffer.from(bytes)
        changed[4 + (at % (bytes.length - 4))] = byte
        attempt(changed)
      }),
      { numRuns: 500 },
    )
  })

  it('reads a list as its objects', () => {
    const pods = [{ metadata: { name: 'a' } }, { metadata: { name: 'b' }, spec: { containers: [{ name: 'c' }] } }]
    const list = encodeList('v1', 'Pod', pods, { resourceVersion: '7', continue: 'next', remainingItemCount: 0 })
    expect(decodeObject(list)).toEqual({
      kind: 'PodList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '7', continue: 'next', remainingItemCount: 0 },
      items: pods,
    })
  })

  it('writes every object the same way, whatever was written before', () => {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' }, data: { z: '1', a: '2' } }
    const first = encodeObject({ ...object, data: { a: '2', z: '1' } })
    expect(() => encodeObject({ ...object, data: { a: 1 } })).toThrow(UnencodableFieldError)
    expect(encodeObject(object)).toEqual(first)
    expect(encodeObject(object)).toEqual(first)
  })

  it('writes what is frozen the same way in every object and every field', () => {
    const labels = Object.freeze({ app: 'a' })
    const containers = Object.freeze([{ name: 'c', image: 'i', unheard: undefined }])
    const pod = (name: string) => ({
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name, labels, annotations: labels },
      spec: { containers, initContainers: containers, nodeSelector: labels },
    })
    const thawed = (name: string) => JSON.parse(JSON.stringify(pod(name)))
    for (const name of ['a', 'b', 'a']) expect(encodeObject(pod(name))).toEqual(encodeObject(thawed(name)))
    const odd = { ...pod('c'), spec: Object.freeze({ containers: Object.freeze([{ name: 'c', unheard: 1 }]) }) }
    encodeObject({ ...odd }, { unknown: 'skip' })
    expect(() => encodeObject(odd)).toThrow('spec.containers.unheard')
  })

  it.each([
    ['a field no table knows', { spec: { nodeNam: 'a' } }, 'spec.nodeNam'],
    ['a field no table knows in a list', { spec: { containers: [{ name: 'a', imag: 'b' }] } }, 'spec.containers.imag'],
    ['a text for a number', { spec: { priority: '1' } }, 'spec.priority'],
    ['a number beyond its size', { spec: { priority: 2 ** 31 } }, 'spec.priority'],
    ['a list for an object', { spec: [] }, 'spec'],
    ['a date that is none', { metadata: { creationTimestamp: 'today' } }, 'metadata.creationTimestamp'],
  ])('refuses %s', (_, fields, path) => {
    const object = { kind: 'Pod', apiVersion: 'v1', ...fields }
    const refusal = () => encodeObject(object)
    expect(refusal).toThrow(UnencodableFieldError)
    expect(refusal).toThrow(path)
  })

  it('leaves out what has no place where it is told to, and forgets that it did', () => {
    const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' }, spec: { nodeName: 'n', unheard: 1 } }
    expect(decodeObject(encodeObject(pod, { unknown: 'skip' }))).toEqual({ ...pod, spec: { nodeName: 'n' } })
    expect(() => encodeObject(pod)).toThrow(UnencodableFieldError)
  })

  it('steps over fields of newer clients, unless it shall not', () => {
    const bytes = encodeObject({ kind: 'Namespace', apiVersion: 'v1' })
    // Field 99 with the text "x", into the empty message of the object.
    const at = bytes.length - 5
    const newer = Buffer.concat([bytes.subarray(0, at), Buffer.from([4, 0x9a, 0x06, 1, 0x78]), bytes.subarray(at + 1)])
    expect(decodeObject(newer)).toEqual({ kind: 'Namespace', apiVersion: 'v1' })
    expect(() => decodeObject(newer, { unknown: 'throw' })).toThrow('99')
  })

  it('keeps names that mean something to JavaScript as names', () => {
    const data = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>
    const object = { kind: 'ConfigMap', apiVersion: 'v1', data }
    const read = decodeObject(encodeObject(object)) as unknown as { data: object }
    expect(JSON.stringify(read.data)).toBe('{"__proto__":"a","constructor":"b"}')
  })

  it('refuses what is no envelope, and kinds it has no table for', () => {
    expect(() => decodeObject(Buffer.from('{}'))).toThrow(ProtobufError)
    expect(() => decodeObject(Buffer.alloc(0))).toThrow(ProtobufError)
    expect(() => encodeObject({ kind: 'Widget', apiVersion: 'example.com/v1' })).toThrow(UnencodableFieldError)
  })

  it('frames an event of a watch by its length', () => {
    const frame = encodeWatchEvent('DELETED', encodeObject({ kind: 'Namespace', apiVersion: 'v1' }))
    expect(frame.readUInt32BE(0)).toBe(frame.length - 4)
    expect(frame.subarray(4, 13)).toEqual(Buffer.from('\x0a\x07DELETED', 'latin1'))
  })
})
