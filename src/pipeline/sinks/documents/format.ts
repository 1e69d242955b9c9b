import { canonicalRow, type Row } from '#extract'
import { type EnvelopeHead, envelope, envelopeHead } from './envelope.ts'
import { yamlOf } from './yaml.ts'

/** How rows become the text of a document. */
export interface DocumentFormat {
  /** of files, with its dot */
  readonly extension: string
  readonly contentType: string
  /** one row, such that the text of several is made of theirs */
  row(row: Row): string
  document(head: EnvelopeHead, rows: readonly string[]): string
  /** bytes of a document beside its rows, at most */
  frameBytes(head: EnvelopeHead): number
  /** bytes between two rows */
  readonly gapBytes: number
}

const ANY_CHECKSUM = '0'.repeat(64)
const ANY_COUNT = Number.MAX_SAFE_INTEGER

/** The envelope, with rows as its items. */
export const json: DocumentFormat = {
  extension: '.json',
  contentType: 'application/json',
  row: canonicalRow,
  document: (head, rows) => `${envelope(head, rows)}\n`,
  frameBytes: (head) => Buffer.byteLength(`${envelopeHead(head, ANY_COUNT, ANY_CHECKSUM)},"items":[]\n`),
  gapBytes: 1,
}

/** A row in each line. */
export const ndjson: DocumentFormat = {
  extension: '.ndjson',
  contentType: 'application/x-ndjson',
  row: (row) => `${canonicalRow(row)}\n`,
  document: (_, rows) => rows.join(''),
  frameBytes: () => 0,
  gapBytes: 0,
}

/** A list of rows. */
export const yaml: DocumentFormat = {
  extension: '.yaml',
  contentType: 'application/yaml',
  row: (row) => yamlOf([JSON.parse(canonicalRow(row))]),
  document: (_, rows) => (rows.length === 0 ? '[]\n' : rows.join('')),
  frameBytes: () => '[]\n'.length,
  gapBytes: 0,
}

export const documentFormats = { json, yaml, ndjson } as const
export type FormatName = keyof typeof documentFormats
