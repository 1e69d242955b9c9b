/** Headers of an answer: names in lower case, as the HTTP parser gives them. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** One way to sign in that a registry offers. */
export interface Challenge {
  /** in lower case */
  readonly scheme: string
  readonly parameters: ReadonlyMap<string, string>
}

/** Every line of this header; [] where there is none. */
export function linesOf(headers: Headers, name: string): readonly string[] {
  const value = headers[name]
  return value === undefined ? [] : typeof value === 'string' ? [value] : value
}

/** The first line; '' where there is none. */
export const lineOf = (headers: Headers, name: string): string => linesOf(headers, name)[0] ?? ''

const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const PARAMETER = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z/:]+))/y
const GAP = /[ \t]*(?:,[ \t]*)*/y
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))/y

/**
 * Reads `WWW-Authenticate` (RFC 9110, 11.6.1): several challenges may stand in one line or in several.
 * @returns as far as the lines can be read, in their order
 */
export function parseChallenges(lines: readonly string[]): readonly Challenge[] {
  return lines.flatMap((line) => readLine(line.slice(0, 8192)))
}

function readLine(line: string): Challenge[] {
  const found: { scheme: string; parameters: Map<string, string> }[] = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(line)
    if (match) at = pattern.lastIndex
    return match
  }
  while (at < line.length) {
    take(GAP)
    const parameter = found.length > 0 ? take(PARAMETER) : null
    if (parameter) {
      const [, name = '', quoted, bare = ''] = parameter
      const { parameters } = found[found.length - 1] as (typeof found)[number]
      // The first of several counts, as nobody may add one that overrules it.
      if (!parameters.has(name.toLowerCase()))
        parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare)
      continue
    }
    const scheme = take(TOKEN)
    if (!scheme) break
    found.push({ scheme: scheme[0].toLowerCase(), parameters: new Map() })
    const gap = take(/[ \t]+/y)
    // A single value instead of parameters, as Negotiate has it; it must not be read as a scheme of its own.
    if (gap && !startsParameter(line, at)) take(TOKEN68)
  }
  return found
}

function startsParameter(line: string, at: number): boolean {
  PARAMETER.lastIndex = at
  return PARAMETER.test(line)
}

const LINK = /<([^<>]*)>[ \t]*((?:;[^",;]*(?:"(?:[^"\\]|\\.)*"[^",;]*)*)*)/g
const REL_NEXT = /;[ \t]*rel[ \t]*=[ \t]*(?:"(?:[^"]*[ \t])?next(?:[ \t][^"]*)?"|next(?=[ \t]*(?:;|$)))/i

/**
 * The address of the next page (RFC 8288), as it is written; undefined where there is none.
 * Commas and semicolons may stand inside of the angle brackets and of quotes.
 */
export function nextLink(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    for (const [, address = '', parameters = ''] of line.slice(0, 4096).matchAll(LINK)) {
      if (REL_NEXT.test(parameters)) return address.trim()
    }
  }
  return undefined
}
