import { statSync } from 'node:fs'
import { type Fault, KOLLECT_GROUP, kollectKinds } from '#kinds'
import {
  flattened,
  isRecord,
  ManifestError,
  manifestsIn,
  type Place,
  placeOf,
  textOf,
  yamlOf,
} from './manifest-files.ts'

/** An object of inventory, and where it was read. */
export interface Declaration {
  readonly object: Readonly<Record<string, unknown>>
  readonly kind: string
  /** undefined: of the cluster */
  readonly namespace: string | undefined
  /** '': it has none */
  readonly name: string
  readonly file: string
  /** which of the file, from 1 */
  readonly document: number
}

/** A fault and where it stands; line and column where the file tells. */
export interface Finding extends Fault, Partial<Place> {
  readonly file: string
  readonly document?: number
  /** kind, namespace and name, as far as there are any */
  readonly object?: string
}

/** What files declare. */
export interface Declared {
  readonly files: readonly string[]
  readonly declarations: readonly Declaration[]
  /** what is no object at all */
  readonly findings: readonly Finding[]
  /** objects of other groups */
  readonly others: number
}

const clusterKinds = new Set(
  kollectKinds.filter(({ definition }) => definition.scope === 'Cluster').map(({ definition }) => definition.kind),
)
/** Files that are read at most: more is a folder that was not meant. */
const MAX_FILES = 10_000

/**
 * Reads objects of inventory out of files and folders, `-` is standard input. What is no object is a finding, so that the rest
 * can be judged all the same.
 * @param namespace of objects that name none
 * @throws ManifestError where a path is not there, or nothing of inventory is in any
 */
export function readDeclarations(paths: readonly string[], namespace: string): Declared {
  const files = paths.flatMap(filesAt)
  if (files.length > MAX_FILES)
    throw new ManifestError(
      `${paths.join(', ')}: ${files.length} files; at most ${MAX_FILES} are read: name the folder that is meant`,
    )
  const read = files.map((file) => declaredIn(file, namespace))
  const all = {
    files,
    declarations: read.flatMap(({ declarations }) => declarations),
    findings: read.flatMap(({ findings }) => findings),
    others: read.reduce((sum, { others }) => sum + others, 0),
  }
  if (all.declarations.length === 0 && all.findings.length === 0)
    throw new ManifestError(
      `${paths.join(', ')}: there is no object of ${KOLLECT_GROUP} in ${files.length === 1 ? 'it' : `${files.length} files`}; \`clusterpulse init\` writes some`,
    )
  return all
}

/** Kind, namespace and name, for people. */
export const titleOf = ({ kind, namespace, name }: Declaration): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name === '' ? '(no name)' : name}`

/** @throws ManifestError for what is not there */
function filesAt(path: string): string[] {
  if (path === '-') return [path]
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw new ManifestError(`${path} is not there: check how it is written`)
  if (!found.isDirectory()) return [path]
  const files = manifestsIn(path)
  if (files.length === 0) throw new ManifestError(`${path}: the folder holds no .yaml, .yml or .json file`)
  return files
}

function declaredIn(file: string, namespace: string) {
  const declarations: Declaration[] = []
  const findings: Finding[] = []
  let others = 0
  for (const [at, value] of documentsOf(file, findings).entries()) {
    const document = at + 1
    const objects = flattened(value)
    if (objects.length === 0 && !isNothing(value))
      findings.push({ file, document, path: '', message: 'is no object: a manifest has apiVersion, kind and metadata' })
    for (const object of objects) {
      const { apiVersion, kind } = object
      const missing = ['apiVersion', 'kind'].filter((field) => typeof object[field] !== 'string')
      findings.push(...missing.map((path) => ({ file, document, ...placeOf(object, ''), path, message: 'is missing' })))
      if (typeof apiVersion !== 'string' || typeof kind !== 'string') continue
      if (apiVersion.split('/')[0] === KOLLECT_GROUP)
        declarations.push(declarationOf(object, kind, { file, document, namespace }))
      else others++
    }
  }
  return { declarations, findings, others }
}

function documentsOf(file: string, findings: Finding[]): unknown[] {
  try {
    return yamlOf(file, textOf(file))
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error
    findings.push({ file, path: '', message: error.message.replace(`${file}: `, '').replace(`${file} `, '') })
    return []
  }
}

/** An empty document, or a list of nothing. */
const isNothing = (value: unknown): boolean =>
  value === null || value === undefined || Array.isArray(value) || (isRecord(value) && Array.isArray(value.items))

function declarationOf(
  object: Readonly<Record<string, unknown>>,
  kind: string,
  { file, document, namespace }: { readonly file: string; readonly document: number; readonly namespace: string },
): Declaration {
  const metadata = isRecord(object.metadata) ? object.metadata : {}
  const own = typeof metadata.namespace === 'string' && metadata.namespace !== '' ? metadata.namespace : namespace
  const name = typeof metadata.name === 'string' ? metadata.name : ''
  return { object, kind, namespace: clusterKinds.has(kind) ? undefined : own, name, file, document }
}
