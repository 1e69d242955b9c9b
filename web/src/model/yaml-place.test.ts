import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMap, isScalar, isSeq, parseDocument, stringify } from 'yaml'
import { findingSpan, lineColumn, pathSteps, placeOf, textAt } from './yaml-place.ts'

const examples = join(import.meta.dirname, '../../../deploy/examples/metric-sources')
const files = readdirSync(examples).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')

/** Every scalar of a text with its path and its place, as the parser of the hub sees them. */
function scalarsOf(text: string): { path: string; from: number; to: number }[] {
  const found: { path: string; from: number; to: number }[] = []
  const walk = (node: unknown, path: string): void => {
    if (isMap(node))
      for (const { key, value } of node.items) {
        const name = String(isScalar(key) ? key.value : key)
        walk(
          value,
          /^[A-Za-z_$][\w$-]*$/.test(name) ? `${path}${path && '.'}${name}` : `${path}[${JSON.stringify(name)}]`,
        )
      }
    else if (isSeq(node)) for (const [index, item] of node.items.entries()) walk(item, `${path}[${index}]`)
    else if (isScalar(node) && node.range && node.source !== '' && node.value !== null)
      found.push({ path, from: node.range[0], to: node.range[1] })
  }
  walk(parseDocument(text).contents, '')
  return found
}

const at = (text: string, path: string) => {
  const place = placeOf(text, path)
  return place && text.slice(place.from, place.to)
}

describe('placeOf', () => {
  it.each(files)('finds every value of the example %s where a parser of YAML does', (file) => {
    const text = readFileSync(join(examples, file), 'utf8')
    const scalars = scalarsOf(text)
    expect(scalars.length).toBeGreaterThan(10)
    for (const { path, from, to } of scalars) {
      const place = placeOf(text, path)
      expect({ path, text: text.slice(place?.from, place?.to).trimEnd() }).toEqual({
        path,
        text: text.slice(from, to).trimEnd(),
      })
      expect(place?.isExact).toBe(true)
    }
  })
  it('finds every value of what a writer of YAML writes, in blocks, in lines and as JSON', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9 :#'"{}[\],&*!|>%@`.-]{0,12}$/)
    const leaf = fc.oneof(word, fc.integer(), fc.boolean())
    const key = fc.stringMatching(/^[a-z][A-Za-z0-9./ -]{0,8}$/).filter((name) => name.trim() === name)
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie('node'), { minLength: 1, maxLength: 4 }),
        fc.dictionary(key, tie('node'), { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
      ),
    })).node
    const way = fc.constantFrom('block', 'flow', 'json')
    fc.assert(
      fc.property(fc.dictionary(key, tree, { minKeys: 1, maxKeys: 4, noNullPrototype: true }), way, (value, how) => {
        const text =
          how === 'json'
            ? JSON.stringify(value, null, 2)
            : stringify(value, { collectionStyle: how === 'flow' ? 'flow' : 'any', lineWidth: 0 })
        for (const { path, from, to } of scalarsOf(text)) {
          const place = placeOf(text, path)
          expect([path, text.slice(place?.from, place?.to)]).toEqual([path, text.slice(from, to)])
        }
      }),
      { numRuns: 300 },
    )
  })
  it('keeps to the first document, and to the last of two equal keys', () => {
    const text = '# about\n---\nkind: A\nkind: B\n---\nkind: C\n'
    expect(at(text, 'kind')).toBe('B')
  })
  it('gives what is around where the path leads nowhere', () => {
    const text = 'spec:\n  source:\n    kind: Pod\n  fields:\n    - name: a\n'
    expect(at(text, 'spec.source.apiVersion')).toBe('source')
    expect(placeOf(text, 'spec.source.apiVersion')?.isExact).toBe(false)
    expect(at(text, 'spec.fields[3].path')).toBe('fields')
    expect(at(text, 'spec.fields[0].path')).toBe('name')
    expect(at(text, 'spec.source')).toBe('source')
    expect(placeOf('', 'spec')).toBeNull()
  })
  it('never fails and stays inside the text, whatever is typed', () => {
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(
          'a: ',
          '- ',
          '  ',
          '\n',
          '{',
          '}',
          '[',
          ']',
          '"',
          "'",
          ': ',
          '#',
          '|',
          '>',
          '---\n',
          '&x ',
          '!t ',
        ),
        fc.string({ maxLength: 5 }),
      ),
      { maxLength: 60 },
    )
    fc.assert(
      fc.property(pieces, (some) => {
        const text = some.join('')
        for (const path of ['', 'a', 'a.a[0].a', 'spec.fields[2]["x"]']) {
          const place = placeOf(text, path)
          if (!place) continue
          expect(place.from).toBeGreaterThanOrEqual(0)
          expect(place.to).toBeGreaterThanOrEqual(place.from)
          expect(place.to).toBeLessThanOrEqual(text.length)
        }
      }),
      { numRuns: 2000 },
    )
  })
  it('follows no nesting without end, and is quick with much text', () => {
    for (const piece of ['[', '{', '- ', '? ', '[{a: ']) expect(placeOf(piece.repeat(50_000), 'a')).toBeNull()
    const large = `spec:\n  fields:\n${'    - { name: a, path: .b }\n'.repeat(8000)}`
    const before = process.cpuUsage()
    expect(at(large, 'spec.fields[7999].path')).toBe('.b')
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1500)
  })
})

describe('findingSpan', () => {
  const expression = 'round(capacty / 1024, 2)'
  const found = { path: 'spec.computed[0].expression', at: { text: expression, from: 6, to: 13 } }
  it.each([
    ['plain', `spec:\n  computed:\n    - name: x\n      expression: ${expression}\n`],
    ['quoted', `spec:\n  computed:\n    - { name: x, expression: "${expression}" }\n`],
    ['single quotes', `spec:\n  computed:\n  - name: x\n    expression: '${expression}' # why\n`],
    ['block', `spec:\n  computed:\n  - expression: |\n      ${expression}\n    name: x\n`],
    ['folded', `spec:\n  computed:\n  - expression: >-\n      round(capacty\n      / 1024, 2)\n`],
    ['JSON', JSON.stringify({ spec: { computed: [{ expression }] } })],
  ])('marks the piece that is meant: %s', (_, text) => {
    const span = findingSpan(text, found)
    expect(text.slice(span?.from, span?.to)).toBe('capacty')
  })
  it('counts escapes as what they stand for', () => {
    const text = 'spec:\n  e: "a == \\"b\\" && capacty"\n'
    const value = 'a == "b" && capacty'
    const span = findingSpan(text, { path: 'spec.e', at: { text: value, from: 12, to: 19 } })
    expect(text.slice(span?.from, span?.to)).toBe('capacty')
    const single = "spec:\n  e: 'it''s capacty'\n"
    const other = findingSpan(single, { path: 'spec.e', at: { text: "it's capacty", from: 5, to: 12 } })
    expect(single.slice(other?.from, other?.to)).toBe('capacty')
  })
  it('points behind the last letter where something is missing there', () => {
    const text = 'spec:\n  e: round(a\n'
    const span = findingSpan(text, { path: 'spec.e', at: { text: 'round(a', from: 7, to: 7 } })
    expect(text.slice(span?.from, span?.to)).toBe('a')
  })
})

it('pathSteps reads paths as findings write them', () => {
  expect(pathSteps('spec.fields[2].name')).toEqual(['spec', 'fields', 2, 'name'])
  expect(pathSteps('metadata.labels["app.kubernetes.io/name"]')).toEqual([
    'metadata',
    'labels',
    'app.kubernetes.io/name',
  ])
  expect(pathSteps('')).toEqual([])
})

it('textAt gives a value as it is meant', () => {
  expect(textAt('metadata:\n  name: "a\\tb"\n', 'metadata.name')).toBe('a\tb')
  expect(textAt('metadata:\n  name: |\n    a\n    b\n', 'metadata.name')).toBe('a\nb\n')
  expect(textAt('metadata:\n  name: 0x10\n', 'metadata.name')).toBe('0x10')
  expect(textAt('metadata: {}', 'metadata.name')).toBe('')
  expect(textAt('metadata:\n  name:\n', 'metadata.name')).toBe('')
})

it('lineColumn counts from 1', () => {
  expect(lineColumn('ab\ncd', 0)).toEqual({ line: 1, column: 1 })
  expect(lineColumn('ab\ncd', 4)).toEqual({ line: 2, column: 2 })
})
