import { canonicalJson, canonicalRow, type Row } from '#extract'
import type { KollectSnapshotSinkSpec } from '#kinds'
import { SinkError, type Writing } from '../sink.ts'
import { documentFormats, type FormatName } from './format.ts'
import { literalExtension, manifestPath, renderPath, safeSegment, withExtension } from './paths.ts'
import { yamlOf } from './yaml.ts'

type Layout = NonNullable<KollectSnapshotSinkSpec['layout']>

/** What of a row stands in its file. */
export type TreeContent = NonNullable<Layout['content']>

/** How a sink lays out its documents. */
export interface DocumentLayout {
  /** path of the document of all rows */
  readonly template: string
  readonly format: FormatName
  /** what is asked for; absent: one document, or where rows may have files, a file for each where every one embeds its object */
  readonly mode?: 'document' | 'perResource' | 'split'
  readonly content: TreeContent
  readonly rowTemplate: string
  /** absent: there is no index */
  readonly indexTemplate?: string
  readonly withGroup: boolean
  readonly lowercaseKind: boolean
  readonly maxSegmentLength: number
  /** whether rows may have files of their own */
  readonly takesTrees: boolean
  /** absent: what is no longer written goes, but for files of former generations */
  readonly prune?: boolean
}

export const DEFAULT_DOCUMENT_PATH = 'inventory/{namespace}/{name}{extension}'
const DEFAULT_ROW_PATH = '{cluster}/{sourceNamespace}/{kind}/{sourceName}{extension}'
const OF_EXTENSION: Readonly<Record<string, FormatName>> = {
  '.json': 'json',
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
}

/** What a sink can do that it writes documents to. */
export interface LayoutAbilities {
  readonly defaultFormat: FormatName
  /** also the only one it takes */
  readonly onlyDefault?: boolean
  readonly takesTrees: boolean
}

/** Reads the fields of a sink that are about its documents; admission has looked at them. */
export function layoutOf(spec: KollectSnapshotSinkSpec, abilities: LayoutAbilities): DocumentLayout {
  const { defaultFormat, onlyDefault = false, takesTrees } = abilities
  const layout: Layout = (takesTrees && spec.layout) || {}
  const template = withExtension(spec.pathTemplate ?? DEFAULT_DOCUMENT_PATH)
  const { index = {}, filename = {}, mode } = layout
  return {
    template,
    format: onlyDefault ? defaultFormat : formatOf(template, spec.serialization?.format, defaultFormat),
    ...(mode && { mode }),
    content: layout.content ?? (mode === undefined ? 'manifest' : 'item'),
    rowTemplate: withExtension(layout.pathTemplate ?? DEFAULT_ROW_PATH),
    ...(mode === 'split' &&
      index.enabled !== false && { indexTemplate: withExtension(index.pathTemplate ?? DEFAULT_DOCUMENT_PATH) }),
    withGroup: filename.groupInPath !== 'never',
    lowercaseKind: filename.lowercaseKind ?? true,
    maxSegmentLength: filename.maxSegmentLength ?? 63,
    takesTrees,
    ...(spec.git?.prune !== undefined && { prune: spec.git.prune }),
  }
}

/** An extension that the template spells out is what the file is. */
export function formatOf(template: string, asked: string | undefined, otherwise: FormatName): FormatName {
  const spelled = OF_EXTENSION[literalExtension(template)?.toLowerCase() ?? '']
  if (spelled) return spelled
  return asked !== undefined && Object.hasOwn(documentFormats, asked) ? (asked as FormatName) : otherwise
}

/** Namespace of cluster inventories in paths. */
const CLUSTER_INVENTORY = 'cluster'

/** What inventories have for the placeholders of every template. */
export const writingValues = ({ cluster, namespace, inventory }: Writing, generation: string, format: FormatName) => ({
  cluster: safeSegment(cluster),
  namespace: namespace === '' ? CLUSTER_INVENTORY : safeSegment(namespace),
  name: safeSegment(inventory),
  generation,
  extension: documentFormats[format].extension,
})

/** Path of the document of an inventory, or of its index. */
export const documentPath = (template: string, writing: Writing, generation: number, format: FormatName): string =>
  renderPath(template, writingValues(writing, String(generation), format))

/**
 * Where the list of owned files stands: beside the document, the same for all generations. Where rows may have files and the path of
 * the document does not tell clusters apart, the name of the list does.
 */
export function ownManifestPath({ template, format, takesTrees }: DocumentLayout, writing: Writing): string {
  const values = writingValues(writing, '', format)
  const path = manifestPath(renderPath(template, values))
  const isShared = takesTrees && !template.includes('{cluster}')
  return isShared ? path.replace(/\.manifest\.json$/, `.${values.cluster}$&`) : path
}

/** The attribute in which every row embeds its object. */
export function embeddedAttribute(rows: Iterable<Row>): string | undefined {
  let candidates: readonly string[] | undefined
  for (const { attributes } of rows) {
    candidates = (candidates ?? Object.keys(attributes)).filter((key) => isManifest(attributes[key]))
    if (candidates.length === 0) return undefined
  }
  return candidates?.[0]
}

function isManifest(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const { apiVersion, kind } = value as Readonly<Record<string, unknown>>
  return typeof apiVersion === 'string' && typeof kind === 'string'
}

/** The text of the file of a row. @throws SinkError terminal, where its object is wanted and not embedded */
export function rowText(row: Row, content: TreeContent, format: FormatName): string {
  const json =
    content === 'item' ? canonicalRow(row) : canonicalJson(content === 'attributes' ? row.attributes : manifestOf(row))
  if (format === 'ndjson') return `${json}\n`
  const value = JSON.parse(json) as unknown
  return format === 'yaml' ? yamlOf(value) : `${JSON.stringify(value, null, 2)}\n`
}

function manifestOf({ attributes, kind, namespace, name }: Row): unknown {
  const found = Object.values(attributes).find(isManifest)
  if (found) return found
  throw new SinkError(
    'terminal',
    `the layout wants the object of each row, and the row of ${kind} ${namespace}/${name} embeds none: let the profile export with mode Resource, or set layout.content to item`,
  )
}
