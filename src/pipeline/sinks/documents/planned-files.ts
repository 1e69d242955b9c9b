import type { Row } from '#extract'
import { type Delivery, SinkError } from '../sink.ts'
import type { EnvelopeHead } from './envelope.ts'
import { documentFormats } from './format.ts'
import { rowsOfDocument, withFormer } from './former-rows.ts'
import { type DocumentLayout, documentPath, rowText } from './layout.ts'
import { packRows } from './parts.ts'
import { partPath, wholePath } from './paths.ts'
import { rowPaths } from './row-files.ts'
import type { SetManifest } from './set-manifest.ts'
import { type DocumentTree, tooLarge } from './tree.ts'

export interface DocumentFile {
  readonly path: string
  readonly text: string
}

/** What files are made of. */
export interface Making {
  readonly delivery: Delivery
  readonly layout: DocumentLayout
  readonly head: EnvelopeHead
  /** what stands there and may not go, since the snapshot may lack it */
  readonly former: SetManifest | undefined
  readonly tree: DocumentTree
  readonly signal: AbortSignal
}

/** Files that are going to be written. */
export interface PlannedFiles {
  /** of all of them */
  readonly paths: readonly string[]
  readonly partTotal: number
  /** rows that stay in them though the snapshot has none of them */
  readonly kept: number
  /** may be asked again */
  files(): Iterable<DocumentFile>
}

export async function documentFiles(
  making: Making,
  template: string,
  given: () => Iterable<Row> = () => making.delivery.rows(),
): Promise<PlannedFiles> {
  const { delivery, layout, head } = making
  const path = documentPath(template, delivery.writing, delivery.generation, layout.format)
  if (wholePath(path) !== path)
    throw new SinkError(
      'terminal',
      `${path} is the name of a part of another document: let no path template end in .part-0001-of-0002`,
    )
  const { rows, kept } = await withRowsOf(path, given, making)
  const packed = packRows({ head, rows, maxBytes: delivery.maxPartBytes }, documentFormats[layout.format])
  const { total } = packed
  return {
    paths: Array.from({ length: total }, (_, i) => partPath(path, { index: i + 1, total })),
    partTotal: total,
    kept,
    *files() {
      for (const part of packed.parts()) yield { path: partPath(path, part), text: part.text }
    },
  }
}

/** Documents that are read back, bytes: of a hundred thousand rows, and of one that was written under another bound. */
const MAX_FORMER_BYTES = 128 * 2 ** 20
const MAX_DOCUMENT_BYTES = 4 * 2 ** 20

/** The rows, with those of the document that stands there where it may not lose any. */
async function withRowsOf(path: string, rows: () => Iterable<Row>, { former, tree, delivery, signal }: Making) {
  if (!former) return { rows, kept: 0 }
  const before: Row[] = []
  const maxBytes = Math.max(MAX_DOCUMENT_BYTES, 2 * delivery.maxPartBytes)
  let left = MAX_FORMER_BYTES
  for (const one of new Set(former.paths.filter((part) => wholePath(part) === path))) {
    const text = (await tree.read(one, maxBytes, signal)) ?? ''
    left -= text.length
    if (left < 0) throw tooLarge(`what stands at ${path}`, MAX_FORMER_BYTES)
    if (text !== '') for (const row of rowsOfDocument(one, text)) before.push(row)
  }
  const all = withFormer(rows(), before)
  return { rows: () => all, kept: all.length - delivery.itemCount }
}

export async function treeFiles(making: Making): Promise<PlannedFiles> {
  const { delivery, layout } = making
  const paths = rowPaths(delivery.rows(), layout, delivery.writing, delivery.generation)
  function* withPaths(): Generator<Row> {
    let at = 0
    for (const row of delivery.rows()) yield { ...row, attributes: { path: paths[at++] } }
  }
  const index = layout.indexTemplate ? await documentFiles(making, layout.indexTemplate, withPaths) : undefined
  return {
    paths: [...paths, ...(index?.paths ?? [])],
    partTotal: index?.partTotal ?? 1,
    kept: 0,
    *files() {
      let at = 0
      for (const row of delivery.rows()) yield rowFile(paths[at++] as string, row, making) // one for each row
      if (index) yield* index.files()
    },
  }
}

function rowFile(path: string, row: Row, { layout, delivery }: Making): DocumentFile {
  const text = rowText(row, layout.content, layout.format)
  if (Buffer.byteLength(text) <= delivery.maxPartBytes) return { path, text }
  throw new SinkError(
    'terminal',
    `${path} would have more than ${delivery.maxPartBytes} bytes: let the profile take less of each object, or raise maxExportBytes, up to MAX_EXPORT_BYTES of the agent`,
  )
}
