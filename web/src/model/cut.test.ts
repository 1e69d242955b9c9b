import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutAt } from './cut.ts'

describe('where a name is cut', () => {
  it.each([
    ['prod-eu-west-1-worker-000123', 'prod-eu-west-1-worke', 'r-000123'],
    ['api-7d9f8c5b64-x2x4z', 'api-7d9f8c5b', '64-x2x4z'],
    ['worker-12', 'worker-12', ''],
    ['node-exporter', 'node-ex', 'porter'],
    ['cilium-operator', 'cilium-o', 'perator'],
    ['Production East', 'Producti', 'on East'],
    ['', '', ''],
    ['🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊', '🦊🦊🦊🦊🦊🦊🦊🦊', '🦊🦊🦊🦊🦊🦊🦊🦊'],
  ])('%s: %s … %s', (name, head, tail) => expect(cutAt(name)).toEqual([head, tail]))
  it('loses no letter', () =>
    fc.assert(fc.property(fc.string({ maxLength: 60, unit: 'grapheme' }), (name) => cutAt(name).join('') === name)))
})
