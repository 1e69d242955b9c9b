import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Document, isNode, isScalar, LineCounter, parseAllDocuments } from 'yaml'
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

/** Where something stands in a file; line and column count from 1. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** The document that an object was read from, and its path there. */
interface Origin {
  readonly file: string
  readonly text: string
  readonly document: Document
  readonly lines: LineCounter
  readonly path: readonly (string | number)[]
}
const origins = new WeakMap<object, Origin>()

/** Every document of a YAML or JSON text. @throws ManifestError with file, line and column */
export function yamlOf(path: string, text: string): unknown[] {
  const lines = new LineCounter()
  return [...parseAllDocuments(text, { uniqueKeys: true, logLevel: 'silent', lineCounter: lines })].map((document) => {
    const [fault] = document.errors
    if (fault) throw new ManifestError(`${path}: ${fault.message.split('\n', 1)[0]?.replace(/:$/, '')}`)
    const value = plainOf(document, path)
    if (typeof value === 'object' && value !== null) origins.set(value, { file: path, text, document, lines, path: [] })
    return value
  })
}

function plainOf(document: Document, path: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    // Aliases without end, or to nothing, or deeper than the stack.
    throw new ManifestError(`${path}: ${(error as Error).message}: write out what its aliases stand for`)
  }
}

/** The first document of a YAML file. @throws ManifestError with file, line and column */
export const readYaml = (path: string): unknown => yamlOf(path, textOf(path))[0]

/** Every object of the files: several documents, lists and plain JSON lists are taken apart. */
export function objectsOf(paths: readonly string[]): Readonly<Record<string, unknown>>[] {
  return paths.flatMap((path) => yamlOf(path, textOf(path)).flatMap(flattened))
}

/** The files of a folder and of those in it that hold manifests by their names, in order; hidden ones are left out. */
export function manifestsIn(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.')) return []
    if (entry.isDirectory()) return manifestsIn(path)
    return entry.isFile() && /\.(ya?ml|json)$/.test(entry.name) ? [path] : []
  })
}

/** The objects of a document: a list of them is taken apart. */
export function flattened(value: unknown): Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => flattened(from(value, [at], item)))
  if (!isRecord(value)) return []
  if (!Array.isArray(value.items)) return [value]
  return value.items.flatMap((item, at) => withKindOf(value, from(value, ['items', at], item)))
}

/** Items of a typed list (PodList) do not say their kind themselves. */
function withKindOf(list: Readonly<Record<string, unknown>>, item: unknown): Readonly<Record<string, unknown>>[] {
  const kind = typeof list.kind === 'string' ? list.kind.replace(/List$/, '') : ''
  const said = kind === '' ? {} : { apiVersion: list.apiVersion, kind }
  return flattened(item).map((one) => from(one, [], { ...said, ...one }))
}

/** Remembers that a part comes from where the whole came from. */
function from<T>(whole: object, path: readonly (string | number)[], part: T): T {
  const origin = origins.get(whole)
  if (origin && typeof part === 'object' && part !== null)
    origins.set(part, { ...origin, path: [...origin.path, ...path] })
  return part
}

/**
 * Where a field of an object stands, or the nearest one around it that is there.
 * @param path as in `spec.fields[0].path`
 * @param at a part of the field's text, where it is about that
 * @returns undefined for an object that was read from no file
 */
export function placeOf(
  object: object,
  path: string,
  at?: { readonly text: string; readonly from: number },
): Place | undefined {
  const origin = origins.get(object)
  if (!origin) return undefined
  const asked = [...path.matchAll(/[^.[\]]+/g)].map(([word]) => (/^\d+$/.test(word) ? Number(word) : word))
  for (let length = asked.length; length >= 0; length--) {
    const node = origin.document.getIn([...origin.path, ...asked.slice(0, length)], true)
    if (!isNode(node) || !node.range) continue
    const [start] = node.range
    const isWhole = length === asked.length && at !== undefined && isScalar(node)
    const { line, col } = origin.lines.linePos(isWhole ? within(origin.text, start, at) : start)
    return { file: origin.file, line, column: col }
  }
  return undefined
}

/** Behind the quote, if there is one; of a text that is folded or escaped the beginning must do. */
function within(file: string, start: number, { text, from }: { readonly text: string; readonly from: number }): number {
  const places = [start, start + 1].filter((at) => file.startsWith(text, at))
  return places[0] === undefined ? start : places[0] + from
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
