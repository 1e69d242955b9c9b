import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crdYaml, generateKinds, kindReference, kinds } from './generate.ts'

describe('what is generated from the kinds', () => {
  it('is a YAML stream with one definition per kind', () => {
    const documents = parseAllDocuments(crdYaml()).map((document) => document.toJS() as unknown)
    expect(documents).toEqual(kinds.map((kind) => kind.crd()))
  })

  it('says on the first line of every file that it is generated', () => {
    for (const { path, text } of generateKinds()) expect(text.split('\n', 1)[0], path).toContain('do not edit')
  })

  it('gives the example of every kind as an object that the kind takes', () => {
    for (const kind of kinds) expect(kind.faults(kind.definition.example)).toEqual([])
  })

  it('describes every field on the reference page', () => {
    const page = kindReference()
    for (const field of ['spec.credentialsRef.name', 'spec.monitoring.interval', 'status.conditions[].reason']) {
      expect(page).toContain(`\`${field}\``)
    }
  })
})
