import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import type { SourceFindingView } from '../../contract.ts'
import { findingSpan, lineColumn, placeOf, type Span } from '../../model/yaml-place.ts'

export interface PlacedFinding {
  readonly finding: SourceFindingView
  /** in the text; null where it cannot be found */
  readonly span: Span | null
}

/** Findings in the text they are about, in its order; those of no place first. */
export function placed(text: string, findings: readonly SourceFindingView[]): PlacedFinding[] {
  return findings
    .map((finding) => ({ finding, span: spanOf(text, finding) }))
    .sort((a, b) => (a.span?.from ?? -1) - (b.span?.from ?? -1))
}

function spanOf(text: string, finding: SourceFindingView): Span | null {
  // A text that is no YAML has no paths: its fault says the line.
  const place = /\bline (\d+)(?:,? column (\d+))?/i.exec(finding.message)
  if (finding.path === '' || finding.path === 'manifest')
    return place ? lineSpan(text, Number(place[1]), Number(place[2] ?? 1)) : null
  if (finding.code === 'unknown_key') return placeOf(text, finding.path)?.key ?? null
  return findingSpan(text, finding)
}

function lineSpan(text: string, line: number, column: number): Span | null {
  let from = 0
  for (let count = 1; count < line; count++) {
    const end = text.indexOf('\n', from)
    if (end < 0) return null
    from = end + 1
  }
  const next = text.indexOf('\n', from)
  const end = next < 0 ? text.length : next
  const at = Math.min(from + Math.max(0, column - 1), Math.max(from, end - 1))
  return { from: at, to: Math.max(end, at + 1) }
}

interface FindingListProps {
  readonly text: string
  readonly findings: readonly PlacedFinding[]
  readonly onGo: (span: Span) => void
  readonly onReplace: (span: Span, text: string) => void
}

/** What the hub found, each with its place, its caret and what was probably meant. */
export function FindingList({ text, findings, onGo, onReplace }: FindingListProps): ReactNode {
  return (
    <ul className="code-findings">
      {findings.map(({ finding, span }) => {
        const { severity, code, path, message, at, suggestion } = finding
        const place = span && lineColumn(text, span.from)
        const fix = span && suggestion !== null && fixFor(text, finding, span)
        return (
          <li key={`${path} ${code} ${at?.from ?? ''} ${message}`}>
            <HealthMark
              need={severity === 'error' ? 'unhealthy' : 'degraded'}
              word={severity === 'error' ? 'Error' : 'Warning'}
            />
            <div>
              <p>
                {message}
                {suggestion !== null && (
                  <>
                    {' '}
                    Did you mean <code>{suggestion}</code>?
                  </>
                )}
              </p>
              {at && <Caret at={at} />}
              <p className="finding-place">
                {span && place ? (
                  <button type="button" className="text-button" onClick={() => onGo(span)}>
                    line {place.line}, column {place.column}
                  </button>
                ) : null}
                {fix && suggestion !== null && (
                  <button type="button" className="text-button" onClick={() => onReplace(fix, suggestion)}>
                    Put it there
                  </button>
                )}
                {path && <code>{path}</code>} <code>{code}</code>
              </p>
            </div>
          </li>
        )
      })}
    </ul>
  )
}

/** What a suggestion takes the place of; null where it only explains, such as how a function is called. */
function fixFor(text: string, { at, suggestion, path, code }: SourceFindingView, span: Span): Span | null {
  if (suggestion === null || /[()]/.test(suggestion)) return null
  if (at) return text.slice(span.from, span.to) === at.text.slice(at.from, at.to) ? span : null
  return code === 'unknown_key' || placeOf(text, path)?.isExact ? span : null
}

const widest = 64

/** The piece of text with a caret under it, as a compiler shows it. */
function Caret({ at: { text, from, to } }: { at: NonNullable<SourceFindingView['at']> }): ReactNode {
  const lineStart = text.lastIndexOf('\n', Math.max(0, from - 1)) + 1
  const lineEnd = text.indexOf('\n', from)
  const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd)
  const column = from - lineStart
  const start = Math.max(0, Math.min(column - 20, line.length - widest))
  const shown = `${start > 0 ? '…' : ''}${line.slice(start, start + widest)}${line.length > start + widest ? '…' : ''}`
  const lead = column - start + (start > 0 ? 1 : 0)
  return (
    <pre className="code-caret" aria-hidden="true">
      {shown}
      {'\n'}
      {' '.repeat(Math.max(0, lead))}
      <b>{'^'.repeat(Math.max(1, Math.min(to - from, shown.length - lead)))}</b>
    </pre>
  )
}
