import { type Fault, KOLLECT_API_VERSION, type KollectKnown, kollectFaults } from '#kinds'
import { configReader } from '#runtime'
import { inventoryKnown } from '../inventory-config.ts'
import { isTenantMode } from '../inventory-settings.ts'
import { type Declaration, type Declared, type Finding, readDeclarations, titleOf } from './inventory-files.ts'
import { placeOf } from './manifest-files.ts'
import { printableLine } from './terminal.ts'
import { missingReferences } from './validate-references.ts'

export interface ValidateOptions {
  /** files, folders, or `-` for standard input */
  readonly paths: readonly string[]
  /** of objects that name none */
  readonly namespace: string
  readonly semantics: string
  readonly output: 'text' | 'json'
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** What came of it. Status 0: all of it can be used; 1: it can, but names what is not there; 2: something cannot be used. */
export interface Validated {
  readonly text: string
  readonly notes: readonly string[]
  readonly status: 0 | 1 | 2
}

/**
 * Judges manifests of inventory as admission does, all at once, and what they name among each other. Asks nobody.
 * @throws ManifestError where there is nothing to judge
 */
export function validate({ paths, namespace, semantics, output, environment }: ValidateOptions): Validated {
  const { declarations, faults, others } = judged(paths, namespace, { ...environment, KOLLECT_SEMANTICS: semantics })
  const missing = missingReferences(declarations).flatMap(({ declaration, fault }) => findingsOf(declaration, [fault]))
  const status = faults.length > 0 ? 2 : missing.length > 0 ? 1 : 0
  if (output === 'json') return { text: JSON.stringify({ faults, missing }, null, 2), notes: [], status }
  const bad = new Set(faults.map(({ file, document, object }) => JSON.stringify([file, document, object]))).size
  const rest = others > 0 ? `; ${counted(others, 'object')} of other kinds not looked at` : ''
  const summary = `${counted(declarations.length, 'object')} of inventory; ${counted(faults.length, 'fault')}${bad > 0 ? ` in ${bad} of the documents` : ''}${rest}`
  return { text: [...faults.map(printedFinding), summary].join('\n'), notes: missing.map(printedFinding), status }
}

/**
 * Manifests, and everything that is wrong with them by themselves.
 * @throws ManifestError where there is nothing to judge
 */
export function judged(
  paths: readonly string[],
  namespace: string,
  environment: Readonly<Record<string, string | undefined>>,
): Pick<Declared, 'declarations' | 'others'> & { readonly faults: readonly Finding[] } {
  const read = configReader(environment)
  const known = { ...inventoryKnown(read), tenantMode: isTenantMode(read) }
  read.done()
  const { declarations, findings, others } = readDeclarations(paths, namespace)
  const faults = [
    ...findings,
    ...declarations.flatMap((one) => findingsOf(one, faultsOf(one, knownOf(one, declarations, known)))),
    ...repeated(declarations),
  ]
  return { declarations, faults, others }
}

const counted = (amount: number, what: string): string => `${amount} ${what}${amount === 1 ? '' : 's'}`

function faultsOf({ kind, object, name }: Declaration, known: KollectKnown): Fault[] {
  const { apiVersion } = object
  const isOther = apiVersion !== KOLLECT_API_VERSION
  return [
    ...(isOther
      ? [{ path: 'apiVersion', message: `is ${JSON.stringify(apiVersion)}: write ${KOLLECT_API_VERSION}` }]
      : []),
    ...(name === '' ? [{ path: 'metadata.name', message: 'is missing' }] : []),
    ...kollectFaults(kind, object, known),
  ]
}

/** The settings of the process, the namespace it would be written to, and the scopes that are declared for it. */
function knownOf({ namespace }: Declaration, all: readonly Declaration[], known: KollectKnown): KollectKnown {
  const scopeKind = namespace === undefined ? 'KollectClusterScope' : 'KollectScope'
  const scopes = all.filter((one) => one.kind === scopeKind && one.namespace === namespace).map(({ object }) => object)
  return { ...known, scopes, ...(namespace !== undefined && { namespace }) }
}

function findingsOf(declaration: Declaration, faults: readonly Fault[]): Finding[] {
  const { object, file, document } = declaration
  return faults.map((fault) => ({
    ...placeOf(object, fault.path),
    ...{ file, document, object: titleOf(declaration) },
    ...fault,
  }))
}

/** The second of two objects of one name: kubectl would write it over the first. */
function repeated(declarations: readonly Declaration[]): Finding[] {
  const seen = new Map<string, Declaration>()
  return declarations.flatMap((one) => {
    const first = seen.get(titleOf(one))
    if (one.name === '' || !first) {
      seen.set(titleOf(one), one)
      return []
    }
    const message = `is declared in document ${first.document} of ${first.file} already: take one of them out`
    return findingsOf(one, [{ path: 'metadata.name', message }])
  })
}

/** As compilers say it: the file with line and column, the document, the object, the field. */
export function printedFinding({ file, document, line, column, object, path, message }: Finding): string {
  const where = `${file}${line === undefined ? '' : `:${line}:${column}`}:`
  const which = document === undefined ? '' : ` document ${document}:`
  const what = object === undefined ? '' : ` ${object}:`
  return printableLine(`${where}${which}${what}${path === '' ? '' : ` ${path}`} ${message}`)
}
