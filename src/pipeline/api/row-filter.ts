import {
  type Chunk,
  columnAt,
  type JsonValue,
  type Labels,
  parseLabelSelector,
  type ScalarValue,
  scalarOf,
  sizeOf,
} from '#model'
import { ChunkMemo, FEW_ROWS } from './chunk-memo.ts'
import { nameFinder } from './name-index.ts'
import { RefusedError } from './problem.ts'
import { columnOf, type RowColumn, textOf } from './row-columns.ts'
import { allRows, both, either, noRows, others, type RowSet, setOfColumn } from './row-set.ts'
import type { VisibleType } from './visible-types.ts'

/*
 * Filters of a question, chunk by chunk. A value is compared once where several rows of a chunk share it, and what came of a chunk
 * is kept for the next question, whoever asks it: which rows may be seen is no part of it.
 */

/** Which of the rows that may be seen. */
export interface RowsFilter {
  readonly namespace?: string
  /** a label selector */
  readonly labels?: string
  readonly q?: string
  readonly where?: readonly string[]
}

/** Rows of a chunk that pass. */
type ChunkTest = (chunk: Chunk) => RowSet

/** Sets of some hundred filters over a million rows: one takes up to 0.5 MB, most next to nothing. */
const memo = new ChunkMemo(64 * 2 ** 20)
const bytesOfSet = (set: RowSet): number => (set.length === 0 ? 0 : 240 + set.byteLength)

/** @throws RefusedError `invalid_parameter`. @returns undefined: all pass */
export function filterOf(
  type: VisibleType,
  { namespace, labels, q = '', where = [] }: RowsFilter,
): ChunkTest | undefined {
  const words = [...new Set(q.toLowerCase().split(/\s+/))].filter(Boolean).slice(0, 10)
  const tests = [
    ...(namespace === undefined ? [] : [namespaceTest(type, namespace)]),
    ...(labels === undefined ? [] : [labelTest(labels)]),
    ...where.map((text) => conditionOf(type, text)),
    ...words.map((word) => wordTest(type, word)),
  ]
  const [first, ...more] = tests
  if (!first || more.length === 0) return first
  return (chunk) => {
    let set = first(chunk)
    for (const test of more) {
      if (set === noRows) return set
      set = both(set, test(chunk), sizeOf(chunk))
    }
    return set
  }
}

/** @param question equal ones ask the same of a value */
function valueTest(column: RowColumn, question: string, test: (value: JsonValue) => boolean): ChunkTest {
  const answers = memo.answers(JSON.stringify([question, column.reading]), bytesOfSet)
  return (chunk) => {
    const values = column.of(chunk)
    // Columns of one value may be shared by chunks of any size.
    if (values.isOne) return test(values.words.at(0) as JsonValue) ? allRows : noRows
    const size = sizeOf(chunk)
    return size < FEW_ROWS ? setOfColumn(values, size, test) : answers.of(values, () => setOfColumn(values, size, test))
  }
}

const namespaceTest = (type: VisibleType, namespace: string): ChunkTest =>
  valueTest(columnOf(type, 'namespace'), `exactly ${namespace}`, (value) => value === namespace)

/** @throws RefusedError `invalid_parameter` */
function labelTest(selector: string): ChunkTest {
  const test = parseLabelSelector(selector)
  if (typeof test === 'string') throw new RefusedError('invalid_parameter', `labels=${test}`)
  const answers = memo.answers(`labels ${selector}`, bytesOfSet)
  const passes = (labels: Labels): boolean => test(labels)
  return (chunk) => {
    const { labels } = chunk
    if (labels.isOne) return passes(labels.at(0)) ? allRows : noRows
    return answers.of(labels, () => setOfColumn(labels, sizeOf(chunk), passes))
  }
}

const condition = /^([^=!<>~]+)(!=|!~|>=|<=|=|>|<|~)(.*)$/s

/** Alternatives stand between `||`: one of them has to hold. */
function conditionOf(type: VisibleType, text: string): ChunkTest {
  const tests = text.split('||').map((one) => comparisonOf(type, one))
  return (chunk) => {
    let set = noRows
    for (const test of tests) set = either(set, test(chunk), sizeOf(chunk))
    return set
  }
}

function comparisonOf(type: VisibleType, text: string): ChunkTest {
  const [, given = '', operator, operand = ''] = condition.exec(text) ?? []
  if (operator === undefined)
    throw new RefusedError(
      'invalid_parameter',
      `where=${text.slice(0, 80)} is none of field=text, ~, !=, !~, >, <, >= and <=`,
    )
  const name = given.trim()
  const wanted = operand.toLowerCase()
  if (operator === '~' || operator === '!~') {
    const holds = name === '*' ? wordTest(type, wanted) : holdsTest(columnOf(type, name), wanted)
    return operator === '~' ? holds : (chunk) => others(holds(chunk), sizeOf(chunk))
  }
  const column = columnOf(type, name)
  if (operator === '=' || operator === '!=') {
    const isSaid = sameTest(type, name, column, wanted)
    const isReferred = isReference(type, name)
    return valueTest(
      column,
      `${operator}${isReferred ? ' reference' : ''} ${wanted}`,
      (value) => isSaid(value) === (operator === '='),
    )
  }
  const bound = operand.trim() === '' ? Number.NaN : Number(operand)
  const version = /^\s*v?(\d+(\.\d+)*\S*)/.exec(operand)?.[1]
  if (Number.isNaN(bound) && version === undefined)
    throw new RefusedError('invalid_parameter', `where=${text.slice(0, 80)} compares with what is no number`)
  const compare = comparisons[operator] ?? (() => false)
  return valueTest(column, `${operator} ${operand}`, (raw) => {
    const value = column.read(raw)
    if (typeof value === 'string' && version !== undefined && /^v?\d/.test(value))
      return compare(byNumbers.compare(value.replace(/^v/, ''), version), 0)
    return typeof value === 'number' && compare(value, bound)
  })
}

/** Of a list one of its items. */
function sameTest(type: VisibleType, name: string, column: RowColumn, wanted: string): (value: JsonValue) => boolean {
  const named = isReference(type, name) ? afterKind(wanted) : undefined
  return (value) => {
    if (Array.isArray(value)) return value.some((one) => isSame(scalarOf(one), wanted))
    if (named !== undefined && typeof value === 'string' && value.includes('/') !== wanted.includes('/'))
      return afterKind(value).toLowerCase() === named
    return isSame(column.read(value), wanted)
  }
}

/** What names an object is found by its name with and without its kind. */
const isReference = ({ source }: VisibleType, name: string): boolean =>
  source.columns.some((column) => column.name === name && column.refersTo === 'object')

const afterKind = (reference: string): string => reference.slice(reference.indexOf('/') + 1)

/** Versions compare number by number. */
const byNumbers = new Intl.Collator('en', { numeric: true })

const comparisons: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  '>': (value, bound) => value > bound,
  '<': (value, bound) => value < bound,
  '>=': (value, bound) => value >= bound,
  '<=': (value, bound) => value <= bound,
}

const holdsTest = (column: RowColumn, word: string): ChunkTest =>
  valueTest(column, `~ ${word}`, (value) =>
    String(column.read(value) ?? '')
      .toLowerCase()
      .includes(word),
  )

/**
 * Nothing is the empty text; a number is meant however it is written.
 * @param text in lower case: words are the same in either
 */
function isSame(value: ScalarValue, text: string): boolean {
  if (value === null) return text === ''
  if (typeof value === 'number') return String(value) === text || (text.trim() !== '' && Number(text) === value)
  return String(value).toLowerCase() === text
}

/** A word in the name, the namespace or any value. */
function wordTest({ source, rows }: VisibleType, word: string): ChunkTest {
  // Lists and objects that nobody sees without asking are not what a row is called.
  const unsaid = new Set(
    source.columns.filter(({ kind, isExtra }) => kind === 'any' && isExtra).map(({ name }) => name),
  )
  const isOfNumbers = /^[-+.\de]*$/.test(word)
  // What is measured is numbers, and moves all the time.
  if (!isOfNumbers) for (const { name, isMeasured } of source.columns) if (isMeasured) unsaid.add(name)
  const said = rows.fields.flatMap((field, at) => (unsaid.has(field) ? [] : [at]))
  const holds = (raw: JsonValue): boolean => {
    const value = textOf(raw)
    return value !== null && String(value).toLowerCase().includes(word)
  }
  const answers = memo.answers(JSON.stringify(['q', word, said]), bytesOfSet)
  const named = nameFinder(word)
  const find = (chunk: Chunk): RowSet => {
    const size = sizeOf(chunk)
    let set = either(named(chunk.keys).rows, setOfColumn(chunk.keys.namespaces, size, holds), size)
    for (const at of said) {
      if (set === allRows) return set
      const column = columnAt(chunk, at)
      if (column.numbers !== null && !isOfNumbers) continue
      set = either(set, setOfColumn(column, size, holds), size)
    }
    return set
  }
  return (chunk) => (sizeOf(chunk) < FEW_ROWS ? find(chunk) : answers.of(chunk, find))
}
