import { isDeepStrictEqual } from 'node:util'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import type { Answer } from './access.ts'
import { isRecord, ManifestError, objectsOf, readYaml } from './manifest-files.ts'
import { type Declared, type Evaluated, evaluateObjects, printLocated, readSources } from './metricsource.ts'

export interface SourceTestOptions {
  readonly files: readonly string[]
  readonly cases: string
  readonly output: 'text' | 'json'
}

const Open = Type.Record(Type.String(), Type.Unknown())
const Case = Type.Object(
  {
    name: Type.String(),
    source: Type.Optional(Type.String({ description: 'name of the MetricSource, where the files hold several' })),
    at: Type.Optional(Type.String({ description: 'as if it were then, for now() and age()' })),
    objects: Type.Optional(Type.Array(Open)),
    objectFiles: Type.Optional(Type.Array(Type.String())),
    expect: Type.Object(
      {
        count: Type.Optional(Type.Integer()),
        rows: Type.Optional(Type.Record(Type.String(), Type.Union([Open, Type.Null()]))),
        aggregations: Type.Optional(Open),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)
const Cases = Type.Object({ cases: Type.Array(Case, { minItems: 1 }) }, { additionalProperties: false })
type Case = Static<typeof Case>
const cases = Compile(Cases)

interface Result {
  readonly name: string
  readonly faults: readonly string[]
}

/** Holds declarations against what they are expected to give, for a pull request. A declaration with errors fails as well. */
export function testSources({ files, cases: path, output }: SourceTestOptions): Answer {
  const declared = readSources(files)
  const value = readYaml(path)
  if (!cases.Check(value)) {
    const [fault] = cases.Errors(value)
    throw new ManifestError(
      `${path}: ${fault ? `${fault.instancePath || 'the file'} ${fault.message}` : 'is no list of cases'}`,
    )
  }
  const results = value.cases.map((one): Result => ({ name: one.name, faults: faultsOf(one, declared, path) }))
  const errors = declared.filter(({ source }) => !source).length
  const failed = results.filter(({ faults }) => faults.length > 0).length
  const summary = `${results.length - failed} passed, ${failed} failed${errors > 0 ? `, ${errors} with errors` : ''}`
  const lines = results.flatMap(({ name, faults }) => [
    `${faults.length === 0 ? 'ok  ' : 'FAIL'}  ${name}`,
    ...faults.map((fault) => `      ${fault}`),
  ])
  return {
    text: output === 'json' ? JSON.stringify({ results }, null, 2) : [...lines, '', summary].join('\n'),
    notes: declared.flatMap(({ findings }) => findings.map(printLocated)),
    failed: failed > 0 || errors > 0,
  }
}

function faultsOf(one: Case, declared: readonly Declared[], path: string): string[] {
  const about = declared.filter(({ object }) => one.source === undefined || object.metadata.name === one.source)
  const [first] = about
  if (!first || about.length > 1) {
    const names = declared.map(({ object }) => object.metadata.name).join(', ')
    throw new ManifestError(`${path}: ${JSON.stringify(one.name)} must say which source it is about: ${names}`)
  }
  if (!first.source) return ['the declaration has errors']
  const now = one.at === undefined ? Date.now() : Date.parse(one.at)
  if (Number.isNaN(now)) throw new ManifestError(`${path}: at: ${one.at} of ${JSON.stringify(one.name)} is no time`)
  const objects = [...(one.objects ?? []), ...objectsOf(one.objectFiles ?? [])]
  return differences(one.expect, evaluateObjects(first.source, first.object, objects, now))
}

function differences({ count, rows = {}, aggregations = {} }: Case['expect'], seen: Evaluated): string[] {
  const faults: string[] = []
  if (count !== undefined && count !== seen.rows.size) faults.push(`expected ${count} rows, got ${seen.rows.size}`)
  const byId = new Map([...seen.rows.rows()].map((row, place) => [seen.rows.idAt(place), row]))
  for (const [id, expected] of Object.entries(rows)) {
    const row = byId.get(id)
    if (expected === null) {
      if (row) faults.push(`${id}: expected no row, and there is one`)
      continue
    }
    if (!row)
      faults.push(
        `${id}: expected a row, there is none; rows are ${[...byId.keys()].slice(0, 10).join(', ') || 'none'}`,
      )
    else faults.push(...unlike(id, expected, row.values))
  }
  return [...faults, ...unlike('aggregations', aggregations, seen.aggregations)]
}

function unlike(
  where: string,
  expected: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): string[] {
  return Object.entries(expected).flatMap(([name, value]) => {
    if (!Object.hasOwn(given, name))
      return [`${where}: there is no ${name}; there are ${Object.keys(given).join(', ') || 'none'}`]
    return isDeepStrictEqual(plain(value), plain(given[name]))
      ? []
      : [`${where}: ${name} is ${JSON.stringify(given[name])}, expected ${JSON.stringify(value)}`]
  })
}

/** Groups are compared by name, in whatever order. */
const plain = (value: unknown): unknown =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value
