import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nameSelected, parseFieldSelector, parseLabelSelector } from './selectors.ts'
import type { ApiObject } from './types.ts'

const labelled = (labels?: Record<string, string>): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', namespace: 'n', ...(labels ? { labels } : {}) },
})
const label = fc.stringMatching(/^[a-z]([a-z0-9]{0,5})$/)

describe('parseLabelSelector', () => {
  it('splits all objects in two: those that are in, those that are not', () =>
    fc.assert(
      fc.property(
        label,
        fc.array(label, { minLength: 1, maxLength: 4 }),
        fc.dictionary(label, label),
        (key, values, labels) => {
          const object = labelled(labels)
          const within = parseLabelSelector(`${key} in (${values.join(', ')})`)(object)
          const without = parseLabelSelector(`${key} notin (${values.join(',')})`)(object)
          expect(within).toBe(!without)
          expect(within).toBe(values.includes(labels[key] ?? ''))
          expect(parseLabelSelector(`!${key}`)(object)).toBe(!parseLabelSelector(key)(object))
        },
      ),
    ))

  it('needs all of its terms', () =>
    fc.assert(
      fc.property(fc.dictionary(label, label, { minKeys: 1 }), (labels) => {
        const terms = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
        expect(parseLabelSelector(terms.join(','))(labelled(labels))).toBe(true)
        expect(parseLabelSelector([...terms, '!other-key'].join(','))(labelled({ ...labels, 'other-key': '' }))).toBe(
          false,
        )
      }),
    ))

  it('takes keys with a prefix and compares numbers', () => {
    expect(parseLabelSelector('kubernetes.io/os=linux')(labelled({ 'kubernetes.io/os': 'linux' }))).toBe(true)
    expect(parseLabelSelector('n>9')(labelled({ n: '10' }))).toBe(true)
    expect(parseLabelSelector('n<9')(labelled({ n: '10' }))).toBe(false)
    expect(parseLabelSelector('n<9')(labelled({ n: 'x' }))).toBe(false)
    expect(parseLabelSelector('')(labelled())).toBe(true)
  })

  it('reads or refuses every text, and never hangs', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '=', '!', ',', '(', ')', ' ', 'in', 'notin', '<', '>', '/') }),
        (text) => {
          try {
            parseLabelSelector(text)(labelled({ a: 'a' }))
          } catch (error) {
            expect(error).toMatchObject({ reason: 'BadRequest' })
          }
        },
      ),
    ))
})

describe('parseFieldSelector', () => {
  const readers = { 'spec.x': (object: ApiObject) => String((object.spec as { x?: string } | undefined)?.x ?? '') }

  it.each([
    ['metadata.name=a', true],
    ['metadata.name==a,metadata.namespace=n', true],
    ['metadata.name!=a', false],
    ['spec.x=', true],
    ['spec.x!=', false],
    ['', true],
  ])('reads %j', (text, expected) => {
    expect(parseFieldSelector(text, readers).matches(labelled())).toBe(expected)
  })

  it('unescapes values', () => {
    const object = { ...labelled(), spec: { x: 'a,b=c\\d' } }
    expect(parseFieldSelector('spec.x=a\\,b\\=c\\\\d', readers).matches(object)).toBe(true)
  })

  it('knows the one name that is asked for', () => {
    expect(parseFieldSelector('spec.x=1,metadata.name=a', readers).name).toBe('a')
    expect(parseFieldSelector('metadata.name!=a', readers).name).toBeUndefined()
  })

  it('are decided by no name but the one they select', () => {
    const everyField = new Proxy({}, { get: () => () => 'a' })
    const piece = fc.constantFrom('metadata.name', 'metadata.namespace', '=', '==', '!=', ',', '\\', 'a', 'n', ' ')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.constantFrom('a', 'n', 'x'), (pieces, name) => {
        const text = pieces.join('')
        const selected = nameSelected(text)
        fc.pre(selected !== undefined && selected !== name)
        const object = { ...labelled(), metadata: { name, namespace: 'n' } }
        expect(parseFieldSelector(text, everyField).matches(object)).toBe(false)
      }),
      { numRuns: 2000 },
    )
    expect(nameSelected('metadata.namespace!=x\\,metadata.name=one')).toBeUndefined()
    expect(nameSelected('metadata.namespace=n,metadata.name=one')).toBe('one')
  })

  it.each(['spec.y=1', 'x', '=a'])('refuses %j', (text) => {
    expect(() => parseFieldSelector(text, readers)).toThrow(expect.objectContaining({ reason: 'BadRequest' }))
  })
})
