import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { ocmKinds } from '../generate.ts'

const folder = join(process.env.OCM_ASSETS ?? '', 'crds')
const missing =
  process.env.CI_REQUIRE_ALL === '1' || (process.env.OCM_ASSETS && existsSync(folder))
    ? undefined
    : 'no definitions in OCM_ASSETS'

interface Schema {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema
  readonly required?: readonly string[]
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
}

interface Definition {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly scope: string
    readonly names: { readonly kind: string; readonly plural: string; readonly shortNames?: readonly string[] }
    readonly versions: readonly {
      readonly name: string
      readonly additionalPrinterColumns?: readonly { readonly name: string; readonly jsonPath: string }[]
      readonly schema: { readonly openAPIV3Schema: Schema }
    }[]
  }
}

/** Theirs carry templates for their webhook, which are no YAML. */
const read = (file: string) =>
  parse(readFileSync(join(folder, file), 'utf8').replace(/\{\{.*?\}\}/g, 'x')) as Definition

/** Old names for what no longer counts. */
const LEFT_OUT = [/\.addOnConfiguration$/]
/** Ours ask for it, as nothing works without. */
const ASKED_FOR = ['.spec.workload.manifests[]']

/** What objects of theirs may say and ours may not. */
function losses(mine: Schema, theirs: Schema, path: string): string[] {
  if (mine['x-kubernetes-preserve-unknown-fields']) return []
  const faults: string[] = []
  if (theirs.type && mine.type && mine.type !== theirs.type)
    faults.push(`${path} is a ${mine.type}, not a ${theirs.type}`)
  const words = (theirs.enum ?? []).filter((word) => mine.enum && !mine.enum.includes(word))
  if (words.length > 0) faults.push(`${path} cannot be ${words}`)
  if (mine.enum && !theirs.enum && theirs.type === 'string' && !path.endsWith('.status'))
    faults.push(`${path} is restricted to ${mine.enum}`)
  const asked = (mine.required ?? []).filter((name) => !theirs.required?.includes(name) && !ASKED_FOR.includes(path))
  if (asked.length > 0) faults.push(`${path} needs ${asked}`)
  const keys = theirs['x-kubernetes-list-map-keys']
  if (keys && `${mine['x-kubernetes-list-map-keys']}` !== `${keys}`) faults.push(`${path} is not told apart by ${keys}`)
  for (const [name, field] of Object.entries(theirs.properties ?? {})) {
    const own = mine.properties?.[name]
    const at = `${path}.${name}`
    if (LEFT_OUT.some((pattern) => pattern.test(at))) continue
    faults.push(...(own ? losses(own, field, at) : [`${at} is unknown`]))
  }
  if (theirs.items && mine.items) faults.push(...losses(mine.items, theirs.items, `${path}[]`))
  if (theirs.additionalProperties && mine.additionalProperties)
    faults.push(...losses(mine.additionalProperties, theirs.additionalProperties, `${path}{}`))
  return faults
}

describe.skipIf(missing)(`kinds beside the definitions of Open Cluster Management (${missing ?? 'found'})`, () => {
  const originals = new Map(
    missing
      ? []
      : readdirSync(folder)
          .map((file) => read(file))
          .map((one) => [one.metadata.name, one]),
  )

  it.each(ocmKinds.map((kind) => ({ name: kind.definition.kind, kind })))('$name takes all they take', ({ kind }) => {
    const theirs = originals.get(`${kind.plural}.${kind.group}`)
    if (!theirs) throw new Error(`no definition of ${kind.plural} in ${folder}`)
    const mine = kind.crd({ converts: true }) as unknown as Definition
    const identity = ({ spec: { scope, names } }: Definition) => ({
      scope,
      kind: names.kind,
      plural: names.plural,
      shortNames: names.shortNames ?? [],
    })
    expect(identity(mine)).toEqual(identity(theirs))
    for (const version of theirs.spec.versions) {
      const own = mine.spec.versions.find(({ name }) => name === version.name)
      if (!own) throw new Error(`${version.name} of ${kind.plural} is not served`)
      expect(losses(own.schema.openAPIV3Schema, version.schema.openAPIV3Schema, ''), version.name).toEqual([])
      const columns = (one: typeof own) =>
        (one.additionalPrinterColumns ?? []).map(({ name, jsonPath }) => `${name} ${jsonPath}`)
      const shown = columns(version).filter((column) => !column.includes('addOnConfiguration'))
      expect(columns(own), version.name).toEqual(shown)
    }
  })
})
