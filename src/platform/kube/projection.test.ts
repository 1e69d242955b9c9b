import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import { isKubeError } from './errors.ts'
import { message, objectMeta, projected } from './projection.ts'

const { root } = protobuf.parse(
  `
syntax = "proto2";
message Time { optional int64 seconds = 1; optional int32 nanos = 2; }
message Quantity { optional string string = 1; }
message Owner { optional string kind = 1; optional string name = 3; optional bool controller = 6; }
message Meta {
  optional string name = 1; optional string namespace = 3; optional int64 generation = 7; optional Time creationTimestamp = 8;
  optional Time deletionTimestamp = 9; map<string, string> labels = 11; repeated Owner ownerReferences = 13; repeated string finalizers = 14;
}
message Inner { optional string word = 1; optional int64 far = 9; }
message Spec {
  repeated string names = 1; optional int32 wanted = 2; optional int32 counted = 3; optional bool isOn = 4; map<string, Quantity> amounts = 5;
  repeated Inner inner = 6; optional fixed64 eight = 7; optional fixed32 four = 8; optional string text = 100;
}
message Thing { optional Meta metadata = 1; optional Spec spec = 2; optional Spec status = 3; }
`,
  { keepCase: true },
)
const encode = (value: object): Uint8Array => {
  const type = root.lookupType('Thing')
  return type.encode(type.fromObject(value)).finish()
}
const read = projected(
  message({
    metadata: [1, objectMeta],
    spec: [
      2,
      message({
        names: [1, ['text']],
        wanted: [2, 'int'],
        counted: [3, 'count'],
        isOn: [4, 'bool'],
        amounts: [5, 'quantities'],
        inner: [6, [message({ word: [1, 'word'] })]],
        text: [100, 'text'],
      }),
    ],
  }),
)

describe('a projection', () => {
  it('has the wanted fields as the JSON has them, times as numbers, and nothing of the others', () => {
    const labels = { app: 'web', empty: '' }
    const spec = {
      names: ['a', 'ü'],
      wanted: -3,
      counted: 4,
      isOn: true,
      inner: [{ word: 'x', far: 5 }, {}],
      eight: 1,
      four: 2,
      text: 'long',
    }
    const bytes = encode({
      metadata: {
        ...{
          name: 'one',
          namespace: 'shop',
          generation: 7,
          creationTimestamp: { seconds: 1_700_000_000, nanos: 5 },
          labels,
        },
        ownerReferences: [{ kind: 'Job', name: 'j', controller: true }],
        finalizers: ['f'],
      },
      spec: { ...spec, amounts: { cpu: { string: '250m' } } },
      status: { text: 'nobody wants it' },
    })
    expect(read(bytes)).toEqual({
      metadata: {
        ...{ name: 'one', namespace: 'shop', generation: 7, creationTimestamp: 1_700_000_000_000, labels },
        ownerReferences: [{ kind: 'Job', name: 'j', controller: true }],
      },
      spec: {
        names: ['a', 'ü'],
        wanted: -3,
        counted: 4,
        isOn: true,
        amounts: { cpu: '250m' },
        inner: [{ word: 'x' }, {}],
        text: 'long',
      },
    })
  })

  it('leaves out what is empty, and keeps a number that is 0 by choice', () => {
    const bytes = encode({
      metadata: { name: '', generation: 0, creationTimestamp: {} },
      spec: { wanted: 0, counted: 0, isOn: false, text: '' },
    })
    expect(read(bytes)).toEqual({ metadata: {}, spec: { wanted: 0, isOn: false } })
  })

  it('has metadata where the object has none', () => expect(read(new Uint8Array())).toEqual({ metadata: {} }))

  it('steps over a field of another wire type than the wanted one', () => {
    // Field 1 as a number, then field 2 with a number in a wanted text.
    expect(read(Buffer.from([0x08, 0x05, 0x12, 0x02, 0x08, 0x07]))).toEqual({ metadata: {}, spec: {} })
  })

  it('says that the answer is broken wherever it is cut off', () => {
    const bytes = encode({
      metadata: { name: 'one', labels: { app: 'web' } },
      spec: { amounts: { cpu: { string: '1' } }, inner: [{ word: 'x' }] },
    })
    for (let length = 1; length < bytes.length; length++) {
      try {
        read(bytes.subarray(0, length))
      } catch (error) {
        expect(isKubeError(error, 'protocol'), String(error)).toBe(true)
        continue
      }
      // Between two fields of the object itself nothing is missing.
      expect([encode({ metadata: { name: 'one', labels: { app: 'web' } } }).length]).toContain(length)
    }
  })
})
