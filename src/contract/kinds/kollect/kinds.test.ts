import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { StructuralSchema } from '../crd-schema.ts'
import { kollectKinds } from '../generate.ts'
import { kollectInventory, kollectProfile } from './index.ts'

const schemaOf = (kind: { crd(): { readonly spec: Readonly<Record<string, unknown>> } }) => {
  const [version] = kind.crd().spec.versions as readonly { schema: { openAPIV3Schema: StructuralSchema } }[]
  return version?.schema.openAPIV3Schema
}

describe('kinds of inventory', () => {
  it.each(kollectKinds.map((kind) => [kind.definition.kind, kind] as const))('%s takes its own example', (_, kind) => {
    expect(kind.faults(kind.definition.example)).toEqual([])
    expect(kind.parse(kind.definition.example)).toMatchObject({ kind: kind.definition.kind })
  })

  it('have the names that manifests and people use', () => {
    const said = kollectKinds.map(({ apiVersion, definition: { plural, shortNames, scope, status, columns } }) =>
      [
        ...[apiVersion, plural, ...shortNames, scope ?? 'Namespaced', status ? 'status' : 'no status'],
        ...columns.filter(({ priority }) => !priority).map(({ name }) => name),
      ].join(' '),
    )
    const group = 'kollect.dev/v1alpha1'
    expect(said).toEqual([
      `${group} kollectprofiles kprof Namespaced status Kind Group Age`,
      `${group} kollecttargets ktgt Namespaced status Ready Synced Collected Updated Age`,
      `${group} kollectinventories kinv Namespaced status Ready Synced Items Exported Age`,
      `${group} kollectsnapshotsinks ksnap Namespaced status Type Cluster Verified Tested Synced Items Exported Behind Age`,
      `${group} kollectdatabasesinks kdb Namespaced status Type Cluster Verified Tested Synced Items Exported Behind Age`,
      `${group} kollecteventsinks kevt Namespaced status Type Cluster Verified Tested Synced Items Exported Behind Age`,
      `${group} kollectscopes kscope Namespaced no status Floor Age`,
      `${group} kollectconnectiontests kconntest Namespaced status Sink Verified Age`,
      `${group} kollectclustertargets kctgt Cluster status Profile Ready Age`,
      `${group} kollectclusterinventories kcinv Cluster status Ready Synced Targets Items Exported Age`,
      `${group} kollectclusterscopes kcscope Cluster no status Floor Age`,
    ])
  })

  it('take a sink by its name or as an object: such items have no type in the definition', () => {
    expect(schemaOf(kollectInventory)?.properties?.spec?.properties?.databaseSinkRefs?.items).toEqual({
      description: expect.any(String),
      'x-kubernetes-preserve-unknown-fields': true,
    })
    const { metadata, ...example } = kollectInventory.definition.example as { metadata: object }
    const refs = ['one', { name: 'two', exportMinInterval: '5m' }]
    const spec = { databaseSinkRefs: refs }
    expect(kollectInventory.parse({ ...example, metadata, spec }).spec).toEqual({
      databaseSinkRefs: refs,
      exportMinInterval: '30s',
    })
  })

  it('fill in what an export block leaves out, and no more', () => {
    const spec = { targetGVK: { version: 'v1', kind: 'Pod' } }
    const parsed = (more: object) =>
      kollectProfile.parse({ metadata: { name: 'a' }, spec: { ...spec, ...more } }).spec.export
    expect(parsed({})).toBeUndefined()
    expect(parsed({ export: {} })).toEqual({
      mode: 'Attributes',
      as: 'resource',
      include: 'SpecAndStatus',
      dedupeIdentity: true,
    })
  })

  it('of a namespace are viewed and edited with it, and scopes are written by nobody but who runs the cluster', () => {
    const roles = parseAllDocuments(readFileSync('deploy/inventory/people.yaml', 'utf8')).map(
      (one) => one.toJS() as { readonly rules: readonly { readonly resources: readonly string[] }[] },
    )
    const [viewed, edited] = roles.map(({ rules }) => rules.flatMap(({ resources }) => resources).sort())
    const namespaced = kollectKinds
      .filter(({ definition }) => definition.scope !== 'Cluster')
      .map((kind) => kind.plural)
    expect(viewed).toEqual([...namespaced].sort())
    expect(edited).toEqual(viewed?.filter((plural) => plural !== 'kollectscopes'))
  })
})
