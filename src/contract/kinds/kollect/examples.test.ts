import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { kollectKinds } from '../generate.ts'
import { KOLLECT_API_VERSION, type KollectKnown, kollectFaults } from './index.ts'

const folder = join(import.meta.dirname, '../../../../deploy/examples/kollect')
const FOREIGN = 'foreign-secret.yaml.original'
interface Example {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, unknown>>
}
const objects = readdirSync(folder)
  .filter((file) => file !== 'kustomization.yaml')
  .flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => ({
      file,
      object: document.toJS() as Example,
    })),
  )
  .filter(({ object }) => object.apiVersion === KOLLECT_API_VERSION)
const judged = (semantics: KollectKnown['semantics']) =>
  objects.flatMap(({ file, object }) =>
    kollectFaults(object.kind, object, { semantics, maxExportBytes: 1_572_864 }).map(({ path }) => `${file} ${path}`),
  )

describe('deploy/examples/kollect', () => {
  it('has every kind', () =>
    expect([...new Set(objects.map(({ object }) => object.kind))].sort()).toEqual(
      kollectKinds.map(({ definition }) => definition.kind).sort(),
    ))

  it('has sinks by name and as objects, and a limit of statements', () => {
    const refs = objects.flatMap(({ object }) => [object.spec.databaseSinkRefs, object.spec.snapshotSinkRefs]).flat()
    expect(new Set(refs.map((ref) => typeof ref))).toEqual(new Set(['string', 'object', 'undefined']))
    expect(objects.filter(({ object }) => JSON.stringify(object).includes('statement_timeout')).length).toBeGreaterThan(
      1,
    )
  })

  it('has no faults but the Secret of another namespace, which the semantics of the original take', () => {
    expect(judged('strict')).toEqual([`${FOREIGN} spec.postgres.databaseRef.namespace`])
    expect(judged('original')).toEqual([])
  })
})
