import { createHash } from 'node:crypto'
import { SinkError } from '../sink.ts'

/** What stands for a placeholder of a template. */
export type PathValues = Readonly<Record<string, string>>

const PLACEHOLDER = /\{([^{}]*)\}/g
const LITERAL_EXTENSION = /[^/}]*?(\.[A-Za-z0-9]+)$/

/** Extension that a template spells out at its end, with the dot. */
export function literalExtension(template: string): string | undefined {
  const tail = template.slice(Math.max(template.lastIndexOf('}'), template.lastIndexOf('/')) + 1)
  return LITERAL_EXTENSION.exec(tail)?.[1]
}

/** The template with `{extension}` at its end, where it says nothing of one. */
export const withExtension = (template: string): string =>
  template.includes('{extension}') || literalExtension(template) ? template : `${template}{extension}`

/**
 * Fills values in, which must be segments already. Segments without a letter collapse: objects of the whole cluster have no namespace.
 * @throws SinkError terminal, for a path that would lead out of its place
 */
export function renderPath(template: string, values: PathValues): string {
  const path = template
    .replace(PLACEHOLDER, (text, name: string) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      if (value === undefined)
        throw new SinkError('terminal', `the path template ${template} has ${text}, which is unknown`)
      return value
    })
    .split('/')
    .filter((segment) => segment !== '')
    .join('/')
  const problem = pathProblem(path)
  if (problem || template.startsWith('/'))
    throw new SinkError(
      'terminal',
      `the path template ${template} gives ${path}, which ${problem ?? 'begins with "/"'}`,
    )
  return path
}

/** What git calls its own folder, by every name that some file system has for it. */
const GIT_FOLDER = /^(\.git[ .]*|git~\d+)$/i
const MAX_PATH_BYTES = 1024

function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty'
  if (path.includes('..')) return 'has ".." in it: nothing is written outside of its place'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\0-\x1f\x7f\\]/.test(path)) return 'has a backslash or a control character in it'
  if (path.split('/').some((segment) => segment === '.' || GIT_FOLDER.test(segment)))
    return "is git's own folder, or none"
  return Buffer.byteLength(path) > MAX_PATH_BYTES ? `is longer than ${MAX_PATH_BYTES} bytes` : undefined
}

/** A value as one segment of a path. */
export interface Segment {
  readonly text: string
  /** the value differs from the text: others may have the same one */
  readonly isChanged: boolean
}

/** Makes one segment of a value: no folders, no dots that lead up, no longer than `max` characters. */
export function segmentOf(value: string, max = Number.MAX_SAFE_INTEGER): Segment {
  const trimmed = value.trim()
  const plain = trimmed
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
    .replace(/[/\\:\0-\x1f\x7f]/g, '-')
    .replace(/\.{2,}/g, '-')
  const text = stripped([...plain].slice(0, max).join(''))
  return { text: text === '' && value !== '' ? markOf(value) : text, isChanged: text !== value }
}

const markOf = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 8)

const stripped = (text: string): string => text.replace(/^[-.\s]+|[-.\s]+$/g, '')

/** The same, and different for every value: for those that would be equal. */
export function uniqueSegmentOf(value: string, max = Number.MAX_SAFE_INTEGER): string {
  const mark = markOf(value)
  const { text } = segmentOf(value, Math.max(1, max - mark.length - 1))
  return text === mark ? mark : `${text}-${mark}`
}

/** A value that no other value has: itself, where nothing about it had to be changed. */
export function safeSegment(value: string): string {
  const { text, isChanged } = segmentOf(value)
  return isChanged ? uniqueSegmentOf(value) : text
}

const EXTENSION = /(\.[A-Za-z0-9]+)?$/
const PART = /\.part-\d{4,}-of-\d{4,}(?=(\.[A-Za-z0-9]+)?$)/i

/** Path of one of several parts. */
export function partPath(path: string, { index, total }: { readonly index: number; readonly total: number }): string {
  if (total === 1) return path
  const digits = (count: number) => String(count).padStart(4, '0')
  return path.replace(EXTENSION, (extension) => `.part-${digits(index)}-of-${digits(total)}${extension}`)
}

/** What the paths of all parts of a document begin with. */
export const partsPrefix = (path: string): string => `${path.replace(EXTENSION, '')}.part-`

/** Path of the document that this is a part of, or is. */
export const wholePath = (path: string): string => path.replace(PART, '')

const LIST = '.manifest.json'

/** Path of what lists the files of a document. */
export const manifestPath = (path: string): string => path.replace(EXTENSION, LIST)

/** Path of a document whose files such a list names, where documents are JSON. */
export const documentOf = (list: string): string => `${list.slice(0, -LIST.length)}.json`

/** Whether such a list may stand there, of whomever: nothing else does. */
export const isListPath = (path: string): boolean => path.toLowerCase().endsWith(LIST)
