import type { Environment } from '@marcbachmann/cel-js'
import { RE2JS } from 're2js'
import { define } from './define.ts'

/** Letters of a text that a function makes, and of a regular expression. */
export const MAX_TEXT = 2 ** 22
const MAX_PATTERN = 1024
const MAX_PROGRAM = 2000
const MAX_COMPILED = 200

const compiled = new Map<string, RE2JS>()

/** RE2, as in Kubernetes: linear in the text. @throws where it is none, or too large */
function regex(pattern: string): RE2JS {
  const known = compiled.get(pattern)
  if (known) return known
  if (pattern.length > MAX_PATTERN) throw new Error(`a regular expression may have ${MAX_PATTERN} letters`)
  const made = RE2JS.compile(pattern)
  if (made.programSize() > MAX_PROGRAM) throw new Error('the regular expression is too large: repeat less')
  if (compiled.size >= MAX_COMPILED) compiled.clear()
  compiled.set(pattern, made)
  return made
}

/** @throws where it would be too long */
export function bounded(letters: number): void {
  if (letters > MAX_TEXT) throw new Error(`a text may have ${MAX_TEXT} letters`)
}

/** Functions on texts and lists that Kubernetes has and the library lacks, or has without bounds. */
export function registerTexts(cel: Environment): void {
  define(cel, 'string._matches(string): bool', (text: string, pattern: string) => regex(pattern).test(text))
  define(cel, 'string.find(string): string', (text: string, pattern: string) => {
    const found = regex(pattern).matcher(text)
    return found.find() ? (found.group() ?? '') : ''
  })
  define(cel, 'string.findAll(string): list<string>', (text: string, pattern: string) => findAll(text, pattern, -1n))
  define(cel, 'string.findAll(string, int): list<string>', findAll)
  define(cel, 'string.replace(string, string): string', (text: string, from: string, to: string) =>
    replaced(text, from, to, -1),
  )
  define(cel, 'string.replace(string, string, int): string', (text: string, from: string, to: string, count: bigint) =>
    replaced(text, from, to, Number(count)),
  )
  define(cel, 'string.charAt(int): string', (text: string, at: bigint) => {
    if (at < 0n || at > BigInt(text.length)) throw new Error('the index is beyond the text')
    return text.charAt(Number(at))
  })
  define(cel, 'list._join(): string', (list: readonly unknown[]) => joined(list, ''))
  define(cel, 'list._join(string): string', joined)
  define(cel, 'list.isSorted(): bool', (list: readonly Ordered[]) =>
    list.every((one, i) => i === 0 || (list[i - 1] as Ordered) <= one),
  )
  define(cel, 'list.sum(): dyn', (list: readonly (bigint | number)[]) =>
    list.length === 0
      ? 0n
      : list.reduce((sum, one) =>
          typeof sum === 'bigint' && typeof one === 'bigint' ? sum + one : Number(sum) + Number(one),
        ),
  )
  define(cel, 'list.min(): dyn', (list: readonly Ordered[]) => extreme(list, (a, b) => a < b))
  define(cel, 'list.max(): dyn', (list: readonly Ordered[]) => extreme(list, (a, b) => a > b))
  define(cel, 'list.indexOf(dyn): int', (list: readonly unknown[], one: unknown) => BigInt(list.indexOf(one)))
  define(cel, 'list.lastIndexOf(dyn): int', (list: readonly unknown[], one: unknown) => BigInt(list.lastIndexOf(one)))
}

type Ordered = string | number | bigint

function extreme(list: readonly Ordered[], isBetter: (a: Ordered, b: Ordered) => boolean): Ordered {
  const [first, ...rest] = list
  if (first === undefined) throw new Error('the list is empty')
  return rest.reduce((best, one) => (isBetter(one, best) ? one : best), first)
}

function findAll(text: string, pattern: string, limit: bigint): string[] {
  const found: string[] = []
  const matcher = regex(pattern).matcher(text)
  while ((limit < 0n || found.length < Number(limit)) && matcher.find()) found.push(matcher.group() ?? '')
  return found
}

function replaced(text: string, from: string, to: string, count: number): string {
  const parts = text.split(from)
  const first = count < 0 ? parts : parts.slice(0, count + 1)
  bounded(text.length + first.length * to.length)
  const rest = parts.slice(first.length)
  return [first.join(to), ...rest].join(from)
}

function joined(list: readonly unknown[], separator: string): string {
  let letters = list.length * separator.length
  for (const one of list) {
    if (typeof one !== 'string') throw new Error('join takes a list of texts')
    letters += one.length
  }
  bounded(letters)
  return list.join(separator)
}
