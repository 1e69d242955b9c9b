import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { negotiate } from './accept.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const all = { protobuf: true, shapes: true }

describe('negotiate', () => {
  it.each([
    [undefined, 'json', 'object'],
    ['*/*', 'json', 'object'],
    ['application/yaml', 'yaml', 'object'],
    [`${TABLE},application/json`, 'json', 'table'],
    ['application/json;as=Table;v=v9;g=meta.k8s.io,application/json', 'json', 'object'],
    ['application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', 'json', 'partial'],
    [`${PROTOBUF},application/json`, 'protobuf', 'object'],
    [`${PROTOBUF};stream=watch`, 'protobuf', 'object'],
    ['application/json;q=0.1,application/yaml;q=0.9', 'yaml', 'object'],
    ['application/json;q=0,application/yaml', 'yaml', 'object'],
    ['text/html, application/json', 'json', 'object'],
  ])('reads %s as %s %s', (header, format, shape) => {
    expect(negotiate(header, all)).toMatchObject({ format, shape })
  })

  it('leaves out what the resource has not', () => {
    expect(negotiate(`${PROTOBUF},application/json`, { protobuf: false, shapes: true }).format).toBe('json')
    expect(negotiate(`${TABLE},application/yaml`, { protobuf: true, shapes: false }).format).toBe('yaml')
  })

  it('gives something it can, or says 406, whatever is asked', () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(TABLE, PROTOBUF, 'application/json', 'text/x', '*/*;q=0.5', ';', 'q=', '')),
        (parts) => {
          try {
            expect(['json', 'yaml']).toContain(negotiate(parts.join(','), { protobuf: false, shapes: true }).format)
          } catch (error) {
            expect(error).toMatchObject({ reason: 'NotAcceptable' })
          }
        },
      ),
    ))
})
