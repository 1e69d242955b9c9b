import { type KeyboardEvent, type ReactNode, type Ref, useId, useImperativeHandle, useMemo, useRef } from 'react'
import { lineColumn, type Span } from '../../model/yaml-place.ts'

export interface Mark extends Span {
  readonly severity: 'error' | 'warning'
}

/** What others may do to the text: the browser's own undo takes it back. */
export interface EditorHandle {
  /** puts the caret there and shows it */
  readonly go: (span: Span) => void
  readonly replace: (span: Span, text: string) => void
  /** at the caret */
  readonly insert: (text: string) => void
}

interface YamlEditorProps {
  readonly text: string
  readonly onText: (text: string) => void
  readonly marks: readonly Mark[]
  readonly describedBy: string
  readonly handle: Ref<EditorHandle>
}

const lineHeight = 20
export const mostCharacters = 262_144

/**
 * A text field with line numbers, and with marks behind its letters. Tab indents, Shift Tab takes it back; after Escape the
 * keyboard is free to leave.
 */
export function YamlEditor({ text, onText, marks, describedBy, handle }: YamlEditorProps): ReactNode {
  const id = useId()
  const field = useRef<HTMLTextAreaElement>(null)
  const behind = useRef<HTMLPreElement>(null)
  const gutter = useRef<HTMLDivElement>(null)

  const follow = () => {
    const box = field.current
    if (!box) return
    if (behind.current) behind.current.style.transform = `translate(${-box.scrollLeft}px, ${-box.scrollTop}px)`
    if (gutter.current) gutter.current.style.transform = `translateY(${-box.scrollTop}px)`
  }
  const write = (span: Span, put: string) => {
    const box = field.current
    if (!box) return
    box.focus({ preventScroll: true })
    box.setSelectionRange(span.from, span.to)
    // The old way, because it is the one that the browser can undo.
    const done = put === '' ? document.execCommand('delete') : document.execCommand('insertText', false, put)
    if (!done) box.setRangeText(put, span.from, span.to, 'end')
    if (box.value !== text) onText(box.value)
  }
  const go = (span: Span) => {
    const box = field.current
    if (!box) return
    box.focus({ preventScroll: true })
    box.setSelectionRange(span.from, span.to)
    const { line, column } = lineColumn(box.value, span.from)
    box.scrollTop = Math.max(0, (line - 1) * lineHeight - box.clientHeight / 2)
    if (column < 40) box.scrollLeft = 0
    box.scrollIntoView({ block: 'nearest' })
    follow()
  }
  useImperativeHandle(handle, () => ({
    go,
    replace: write,
    insert: (put) => {
      const at = { from: field.current?.selectionStart ?? 0, to: field.current?.selectionEnd ?? 0 }
      write(at, put)
    },
  }))

  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    const box = event.currentTarget
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'Tab') {
      event.preventDefault()
      const change = event.shiftKey ? outdented(box) : indented(box)
      if (!change) return
      write(change.span, change.put)
      box.setSelectionRange(change.select.from, change.select.to)
    } else if (event.key === 'Enter' && box.selectionStart === box.selectionEnd) {
      const before = box.value.slice(0, box.selectionStart)
      const indent = /(?:^|\n)( *)(?:- )?[^\n]*$/.exec(before)?.[1] ?? ''
      if (indent === '') return
      event.preventDefault()
      write({ from: box.selectionStart, to: box.selectionEnd }, `\n${indent}`)
    }
  }
  const lines = useMemo(() => text.split('\n').length, [text])
  const pieces = useMemo(() => piecesOf(text, marks), [text, marks])
  const worst = useMemo(() => worstByLine(text, marks), [text, marks])
  return (
    <div className="code">
      <div className="code-gutter" aria-hidden="true">
        <div ref={gutter}>
          <pre>{Array.from({ length: lines }, (_, line) => line + 1).join('\n')}</pre>
          {[...worst].map(([line, severity]) => (
            <span key={line} className={`code-sign is-${severity}`} style={{ top: `${(line - 1) * lineHeight}px` }}>
              ▲
            </span>
          ))}
        </div>
      </div>
      <div className="code-field">
        <pre className="code-marks" ref={behind} aria-hidden="true">
          {pieces.map(({ from, piece, severity }) =>
            severity ? (
              <mark key={from} className={`is-${severity}`}>
                {piece}
              </mark>
            ) : (
              piece
            ),
          )}{' '}
        </pre>
        <label className="vh" htmlFor={id}>
          The declaration, as YAML
        </label>
        <textarea
          id={id}
          ref={field}
          value={text}
          wrap="off"
          spellCheck={false}
          autoCapitalize="none"
          autoComplete="off"
          maxLength={mostCharacters}
          aria-describedby={describedBy}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={press}
          onScroll={follow}
        />
      </div>
    </div>
  )
}

interface Change {
  readonly span: Span
  readonly put: string
  readonly select: Span
}

/** Two spaces at the caret; where lines are selected, before each of them. */
function indented({ value, selectionStart: from, selectionEnd: to }: HTMLTextAreaElement): Change {
  if (!value.slice(from, to).includes('\n')) {
    const at = from - (value.lastIndexOf('\n', from - 1) + 1)
    const put = ' '.repeat(2 - (at % 2))
    return { span: { from, to }, put, select: { from: from + put.length, to: from + put.length } }
  }
  const start = value.lastIndexOf('\n', from - 1) + 1
  const put = value.slice(start, to).replace(/^(?=.)/gm, '  ')
  return { span: { from: start, to }, put, select: { from: start, to: start + put.length } }
}

function outdented({ value, selectionStart: from, selectionEnd: to }: HTMLTextAreaElement): Change | null {
  const start = value.lastIndexOf('\n', from - 1) + 1
  const next = value.indexOf('\n', to)
  const end = next < 0 ? value.length : next
  const old = value.slice(start, end)
  const put = old.replace(/^ {1,2}/gm, '')
  if (put === old) return null
  const first = (/^ {0,2}/.exec(old)?.[0] ?? '').length
  return {
    span: { from: start, to: end },
    put,
    select: { from: Math.max(start, from - first), to: Math.max(start, to - (old.length - put.length)) },
  }
}

/** The text cut at its marks; of marks one over another the first counts. */
function piecesOf(text: string, marks: readonly Mark[]): { from: number; piece: string; severity: string | null }[] {
  const pieces: { from: number; piece: string; severity: string | null }[] = []
  let at = 0
  for (const { from, to, severity } of marks.toSorted((a, b) => a.from - b.from)) {
    if (from < at || to > text.length) continue
    if (from > at) pieces.push({ from: at, piece: text.slice(at, from), severity: null })
    pieces.push({ from, piece: text.slice(from, Math.max(to, from + 1)), severity })
    at = Math.max(to, from + 1)
  }
  pieces.push({ from: at, piece: text.slice(at), severity: null })
  return pieces
}

function worstByLine(text: string, marks: readonly Mark[]): Map<number, Mark['severity']> {
  const worst = new Map<number, Mark['severity']>()
  for (const { from, severity } of marks) {
    const { line } = lineColumn(text, from)
    if (severity === 'error' || !worst.has(line)) worst.set(line, severity)
  }
  return worst
}
