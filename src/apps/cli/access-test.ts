import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { type Access, asPrincipal, type Question, type SelectedCluster, type Semantics, standardTypes } from '#access'
import { type Answer, accessOver, notesOf } from './access.ts'
import { ManifestError, readYaml } from './manifest-files.ts'
import { readPolicyFiles } from './policy-files.ts'

export interface TestOptions {
  readonly files: readonly string[]
  readonly cases: string
  readonly semantics: Semantics
  readonly output: 'text' | 'json'
}

const Labels = Type.Optional(Type.Record(Type.String(), Type.String()))
const Names = Type.Optional(Type.Array(Type.String()))

const Check = Type.Object(
  {
    cluster: Type.String(),
    action: Type.Optional(Type.Union([Type.Literal('view'), Type.Literal('view_metrics')])),
    type: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    namespace: Type.Optional(Type.String()),
    labels: Labels,
    fields: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    expect: Type.Union(['allow', 'partial', 'deny', 'shown', 'hidden'].map((text) => Type.Literal(text))),
    decidedBy: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)

const Case = Type.Object(
  {
    name: Type.String(),
    as: Type.Optional(Type.String()),
    email: Type.Optional(Type.String()),
    groups: Names,
    at: Type.Optional(Type.String()),
    sees: Names,
    hides: Names,
    checks: Type.Optional(Type.Array(Check)),
  },
  { additionalProperties: false },
)

const Cases = Type.Object(
  {
    clusters: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), labels: Labels }, { additionalProperties: false })),
    ),
    cases: Type.Array(Case, { minItems: 1 }),
  },
  { additionalProperties: false },
)
type Case = Static<typeof Case>
type Check = Static<typeof Check>
const cases = Compile(Cases)

interface Result {
  readonly name: string
  readonly faults: readonly string[]
}

/** Holds policies against what they are expected to show, for a pull request. A policy with errors fails as well. */
export async function testPolicies({ files, cases: path, semantics, output }: TestOptions): Promise<Answer> {
  const given = readPolicyFiles(files, Date.now())
  const value = readYaml(path)
  if (!cases.Check(value)) {
    const [fault] = cases.Errors(value)
    throw new ManifestError(
      `${path}: ${fault ? `${fault.instancePath || 'the file'} ${fault.message}` : 'is no list of cases'}`,
    )
  }
  const clusters = [...given.clusters, ...(value.clusters ?? []).map(({ name, labels = {} }) => ({ name, labels }))]
  const results: Result[] = []
  for (const one of value.cases) {
    const now = one.at === undefined ? Date.now() : Date.parse(one.at)
    if (Number.isNaN(now)) throw new ManifestError(`${path}: at: ${one.at} of ${JSON.stringify(one.name)} is no time`)
    const access = await accessOver(given, { semantics, now })
    results.push({ name: one.name, faults: await faultsOf(access, one, clusters) })
  }
  const errors = given.findings.filter(({ finding }) => finding.severity === 'error').length
  const failed = results.filter(({ faults }) => faults.length > 0).length
  const summary = `${results.length - failed} passed, ${failed} failed${errors > 0 ? `, ${errors} error${errors === 1 ? '' : 's'} in policies` : ''}`
  const text =
    output === 'json'
      ? JSON.stringify({ results, findings: given.findings }, null, 2)
      : [
          ...results.flatMap(({ name, faults }) => [
            `${faults.length === 0 ? 'ok  ' : 'FAIL'}  ${name}`,
            ...faults.map((fault) => `      ${fault}`),
          ]),
          '',
          summary,
        ].join('\n')
  return { text, notes: notesOf(given), failed: failed > 0 || errors > 0 }
}

async function faultsOf(access: Access, one: Case, clusters: readonly SelectedCluster[]): Promise<string[]> {
  const principal = asPrincipal({ username: one.as ?? '', email: one.email, groups: one.groups })
  const clusterOf = (name: string): SelectedCluster =>
    clusters.find((cluster) => cluster.name === name) ?? { name, labels: {} }
  const faults: string[] = []
  const expected: Check[] = [
    ...(one.sees ?? []).map((cluster) => ({ cluster, expect: 'shown' })),
    ...(one.hides ?? []).map((cluster) => ({ cluster, expect: 'hidden' })),
    ...(one.checks ?? []),
  ] as Check[]
  for (const check of expected) {
    const { cluster, action = 'view', expect, decidedBy, ...item } = check
    const question: Question = { action, cluster: clusterOf(cluster), ...(item as Partial<Question>) }
    const explained = await access.explain(principal, question)
    const what = [cluster, item.type, item.name].filter((text) => text !== undefined).join(', ')
    const shown = explained.item?.shown ?? explained.result !== 'deny'
    const isRight = expect === 'shown' ? shown : expect === 'hidden' ? !shown : explained.result === expect
    const by = explained.decidedBy?.policy ?? 'no policy'
    const why = explained.item?.why ?? explained.reason
    if (!isRight)
      faults.push(
        `${what} (${action}): expected ${expect}, got ${expect === 'shown' || expect === 'hidden' ? (shown ? 'shown' : 'hidden') : explained.result}: ${why}; decided by ${by}`,
      )
    else if (decidedBy !== undefined && decidedBy !== by)
      faults.push(`${what} (${action}): expected to be decided by ${decidedBy}, was by ${by}`)
    if (
      item.type !== undefined &&
      item.type.toLowerCase() !== item.type &&
      standardTypes.some((type) => type === item.type?.toLowerCase())
    )
      faults.push(`${what}: types are written in lower case: ${item.type.toLowerCase()}`)
  }
  return faults
}
