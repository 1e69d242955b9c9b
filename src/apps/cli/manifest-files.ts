import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { FleetError } from '#model'

/** A file of manifests or of cases cannot be used; says where and why. */
export class ManifestError extends FleetError {
  override readonly name = 'ManifestError'
  readonly code = 'invalid_manifest'
  readonly retryable = false
}

/** The text of a file; `-` is standard input. @throws ManifestError where it cannot be read */
export function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ManifestError(`${path} cannot be read: ${why}`, { cause })
  }
}

/** Every document of a YAML or JSON text. @throws ManifestError with file, line and column */
export function yamlOf(path: string, text: string): unknown[] {
  return [...parseAllDocuments(text, { uniqueKeys: true, logLevel: 'silent' })].map((document) => {
    const [fault] = document.errors
    if (fault) throw new ManifestError(`${path}: ${fault.message.split('\n', 1)[0]?.replace(/:$/, '')}`)
    return document.toJS({ maxAliasCount: 100 }) as unknown
  })
}

/** The first document of a YAML file. @throws ManifestError with file, line and column */
export const readYaml = (path: string): unknown => yamlOf(path, textOf(path))[0]

/** Every object of the files: several documents, lists and plain JSON lists are taken apart. */
export function objectsOf(paths: readonly string[]): Readonly<Record<string, unknown>>[] {
  return paths.flatMap((path) => yamlOf(path, textOf(path)).flatMap(flattened))
}

function flattened(value: unknown): Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value)) return value.flatMap(flattened)
  if (!isRecord(value)) return []
  return Array.isArray(value.items) ? value.items.flatMap((item) => withKindOf(value, item)) : [value]
}

/** Items of a typed list (PodList) do not say their kind themselves. */
function withKindOf(list: Readonly<Record<string, unknown>>, item: unknown): Readonly<Record<string, unknown>>[] {
  const kind = typeof list.kind === 'string' ? list.kind.replace(/List$/, '') : ''
  const said = kind === '' ? {} : { apiVersion: list.apiVersion, kind }
  return flattened(item).map((one) => ({ ...said, ...one }))
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
