import type { Finding } from './types.ts'

type More = Pick<Finding, 'at' | 'suggestion'>

/** Who has made a hundred mistakes is helped by the first. */
const MOST_FINDINGS = 100

/** Gathers what is found about one declaration, in the order it is found. */
export class Findings {
  readonly list: Finding[] = []

  /** No more need be said of expressions. */
  get isFull(): boolean {
    return this.list.length >= MOST_FINDINGS
  }

  get hasErrors(): boolean {
    return this.list.some(({ severity }) => severity === 'error')
  }

  error(code: string, path: string, message: string, more: More = {}): void {
    this.list.push({ severity: 'error', code, path, message, ...more })
  }

  warning(code: string, path: string, message: string, more: More = {}): void {
    this.list.push({ severity: 'warning', code, path, message, ...more })
  }
}

/** The name that was probably meant: of few letters' difference. As a part of a finding, empty where there is none. */
export function suggestionFor(text: string, names: Iterable<string>): Pick<Finding, 'suggestion'> {
  const limit = Math.max(1, Math.floor(text.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const name of names) {
    if (Math.abs(name.length - text.length) >= bestDistance) continue
    const distance = editDistance(text.toLowerCase(), name.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [name, distance]
  }
  return best === undefined ? {} : { suggestion: best }
}

/** Letters to insert, drop, change or swap with their neighbour; names are short. */
function editDistance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : change
      row.push(Math.min(change, swap, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    ;[before, above] = [above, row]
  }
  return above[b.length] ?? 0
}

const WIDTH = 100

/**
 * A finding for people at a terminal: severity, path and sentence; the line it is about with carets under the place; what was
 * probably meant. Lines end with a line feed, the last one without.
 */
export function printFinding(finding: Finding): string {
  const lines = [`${finding.severity}: ${finding.path}: ${finding.message} [${finding.code}]`]
  if (finding.at) lines.push(...pointed(finding.at))
  if (finding.suggestion !== undefined) lines.push(`  did you mean ${finding.suggestion}?`)
  return lines.join('\n')
}

/** The line of the place, cut around it where it is long, and carets below. */
function pointed({ text, from, to }: NonNullable<Finding['at']>): readonly string[] {
  const start = text.lastIndexOf('\n', from - 1) + 1
  const end = text.indexOf('\n', from) < 0 ? text.length : text.indexOf('\n', from)
  const number = text.slice(0, start).split('\n').length
  const cut = from - start > WIDTH / 2 ? from - WIDTH / 2 : start
  const shown = text.slice(cut, Math.min(end, cut + WIDTH))
  const [before, after] = [cut > start ? '…' : '', cut + WIDTH < end ? '…' : '']
  const label = text.includes('\n') ? `line ${number}: ` : ''
  const lead = [...`${label}${before}${text.slice(cut, from)}`].map((letter) => (letter === '\t' ? '\t' : ' ')).join('')
  const marked = [...text.slice(from, Math.min(to, cut + shown.length))].length
  return [`  ${label}${before}${shown}${after}`, `  ${lead}${'^'.repeat(Math.max(1, marked))}`]
}
