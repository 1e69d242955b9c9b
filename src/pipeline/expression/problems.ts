import { slipsBetween } from '#model'
import type { Place } from './ast.ts'
import type { Problem } from './types.ts'

/** More are not reported: who has made twenty mistakes is helped by the first. */
const MOST_PROBLEMS = 20

/** Collects what is wrong with one text, in the order it is found. */
export class Problems {
  readonly list: Problem[] = []
  #hasErrors = false

  get hasErrors(): boolean {
    return this.#hasErrors
  }

  /** No more are taken: what is costly to say need not be worked out. */
  get isFull(): boolean {
    return this.list.length >= MOST_PROBLEMS
  }

  error(code: string, place: Place, message: string, suggestion?: string): void {
    this.#hasErrors = true
    this.#add('error', code, place, message, suggestion)
  }

  warning(code: string, place: Place, message: string, suggestion?: string): void {
    this.#add('warning', code, place, message, suggestion)
  }

  #add(severity: Problem['severity'], code: string, { from, to }: Place, message: string, suggestion?: string): void {
    const problem = { severity, code, message, from, to, ...(suggestion === undefined ? {} : { suggestion }) }
    if (!this.isFull) this.list.push(problem)
    // A full list of warnings must still show why there is no expression.
    else if (severity === 'error' && this.list.every((known) => known.severity === 'warning')) {
      this.list[MOST_PROBLEMS - 1] = problem
    }
  }
}

const LONGEST_NAME = 64

/** The one of `names` that was probably meant: nearly the same letters, whatever their case. undefined where none is near. */
export function nearest(text: string, names: Iterable<string>): string | undefined {
  if (text.length > LONGEST_NAME) return undefined
  const wanted = text.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.floor(wanted.length / 3) + 1
  for (const name of names) {
    if (Math.abs(name.length - text.length) >= bestDistance || name.length > LONGEST_NAME) continue
    const distance = slipsBetween(wanted, name.toLowerCase(), bestDistance)
    if (distance < bestDistance) [best, bestDistance] = [name, distance]
  }
  return best
}

const LINE_SHOWN = 100
const CONTROL = /\p{C}/gu

/**
 * A problem as people read it in a terminal: the sentence with line and column (both from 1, columns in characters), the line
 * with a mark under the place, and what was probably meant. Control characters of the text are shown as `·`.
 */
export function problemText(text: string, problem: Problem): string {
  const from = Math.min(Math.max(problem.from, 0), text.length)
  const begin = text.lastIndexOf('\n', from - 1) + 1
  const newline = text.indexOf('\n', from)
  const end = newline < 0 ? text.length : newline
  const number = text.slice(0, begin).split('\n').length
  const column = [...text.slice(begin, from)].length + 1
  const { shown, lead, marks } = cut(text, begin, end, from, Math.max(problem.to, from))
  const gutter = `${number} | `
  return [
    `${problem.severity}: ${problem.message} (line ${number}, column ${column})`,
    `  ${gutter}${shown}`,
    `  ${' '.repeat(gutter.length - 2)}| ${' '.repeat(lead)}${'^'.repeat(Math.max(1, marks))}`,
    ...(problem.suggestion === undefined ? [] : [`  did you mean ${problem.suggestion.replace(CONTROL, '·')} ?`]),
  ].join('\n')
}

/** The part of a line around a place, with how many characters stand before it and how many belong to it. */
function cut(text: string, begin: number, end: number, from: number, to: number) {
  const before = [...text.slice(begin, Math.min(from, end))].map(visible)
  const inside = [...text.slice(from, Math.min(to, end))].map(visible)
  const after = [...text.slice(Math.min(to, end), end)].map(visible)
  const head = before.length > LINE_SHOWN / 2 ? ['…', ...before.slice(-LINE_SHOWN / 2)] : before
  const rest = [...inside, ...after]
  const room = LINE_SHOWN - head.length
  const tail = rest.length > room ? [...rest.slice(0, room), '…'] : rest
  return { shown: [...head, ...tail].join(''), lead: head.length, marks: Math.min(inside.length, room) }
}

const visible = (character: string) => (character === '\t' ? ' ' : character.replace(CONTROL, '·'))
