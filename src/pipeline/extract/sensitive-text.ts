import { isHarmless, sourceOfNames, textCountsOrRefers } from './sensitive-key.ts'
import { type Place, REDACTED_TEXT, TextValues } from './text-value.ts'

/** Shorter ones hold no secret that could be told. */
export const SHORTEST_TEXT = 6
/** Longer texts are not looked through, UTF-16 units: no object of a cluster is larger. */
const MAX_TEXT = 2 ** 21
/** Documents in documents. */
const MAX_NESTED = 4
/** How far before its name, on the same line, the value of an entry is looked for. */
const MAX_BEFORE = 2048
/** What stands before a name at the head of its line. */
const MAX_HEAD = 2048
/** What stands between two lines of a packed key, at most. */
const MAX_BETWEEN = 256
/** Aliases that lead to aliases. */
const MAX_ALIASES = 4

/** "PRIVATE KEY" as base64, by which of three letters it begins at. */
const PACKED_KEY = /UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW/
/** "-----BEGIN " as base64. */
const PACKED_PEM = 'LS0tLS1CRUdJTi'
/** No value behind a name, and no token, is in a text without one of these, or one of the names that were given. */
const NAMED =
  'pass|pwd|pw[=:]|psk|secret|token|key|cred|auth|sig=|bearer|basic|cookie|connection|dockercfg|dockerconfig|eyJ|gh[opusr]_|github_pat|glpat-|gl[a-z]{2,5}-|hv[sbr]\\.|npm_|pypi-|dckr_|sg\\.[\\w-]{10}|hf_|xapp-|nonce|salt|machine\\s|xox[abeprs]-|[rs]k_live|AIza|-u\\s|--user|identified\\s|user\\s'
/** No address, document or packed key without one of these. */
const UNNAMED = String.raw`:\/\/|@\w*\(|@\w*\/|@\/\/|oracle:|^\s*[{[]|${PACKED_PEM}|${PACKED_KEY.source}`

/** Each match is redacted but for its first group. Bounds in the patterns keep them linear. */
const FIRST: readonly RegExp[] = [
  /()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*/g,
  /(\bPrivate-Lines: \d{1,4}\r?\n)[\s\S]*/g,
  // Userinfo of an address; a digest behind @ is none (docker-pullable://image@sha256:…).
  /(:\/\/)(?:[^\s/?#"'<>]|(?<=\w)'(?=\w)){1,1024}(?=@(?!sha\d{1,3}:(?!\d{1,5}\/)[0-9a-f]{4}))/g,
  // A password with "/", "?" or "#" in it; a port is none, where addresses of the web may go on behind it.
  /(:\/\/)[^\s/?#"'@:]{0,256}:(?!\d{1,5}(?:[/?]|$))(?:[^\s"'<>]|(?<=\w)'(?=\w)){1,2048}(?=@(?!sha\d{1,3}:(?!\d{1,5}\/)[0-9a-f]{4}))/g,
  /((?<![\w+.-])(?!https?:|wss?:|docker|oci:|git\+|ftp|file:)[a-z][\w+.-]{0,30}:\/\/)[^\s/?#"'@:]{0,256}:(?:[^\s"'<>]|(?<=\w)'(?=\w)){1,2048}(?=@(?!sha\d{1,3}:(?!\d{1,5}\/)[0-9a-f]{4}))/gi,
]
const ORACLE: readonly RegExp[] = [
  /(\boracle:\w{1,16}:[^\s/@"']{0,128}\/)(?:"[^"\n]{1,1024}"|[^\s"]{1,1024})(?=@)/gi,
  /((?<![\w$#/@.])[\w$#]{1,64}\/)(?:"[^"\n]{1,256}"|[^\s"/](?:[^\s"]|(?<=\w)"(?=\w)){0,255})(?=@\/\/)/g,
]
const LAST: readonly RegExp[] = [
  // Of netrc, SQL, and Redis.
  /(\b(?:machine|login)\s{1,20}\S{1,256}(?:\s{1,20}(?:login|account)\s{1,20}\S{1,256}){0,2}\s{1,20}password\s{1,20})\S+/gi,
  /(\bdefault\s{1,20}password\s{1,20})\S+(?=\s{1,20}login\b)/gi,
  /(\b(?:password|identified\s{1,20}(?:with\s{1,20}\S{1,64}\s{1,20})?(?:by|as))\s{1,20})[NE]?(?:'(?:[^'\\\n]|''|\\[^\n]){1,4096}'|"(?:[^"\\\n]|""|\\[^\n]){1,4096}"|\$\$[^$\n]{1,4096}\$\$)/gi,
  /((?<![\w$-])(?:requirepass|(?:master|primary)auth)[ \t]{1,20})[^\n]+/gi,
  /((?<!\S)(?:(?:auth|sentinel)[-_]pass|[\w-]{0,32}key-file-pass|insecure-password)[ \t]{1,20})[^\n]+/gi,
  /((?<=^|\n)[ \t]{0,200}(?:acl[ \t]{1,8}set)?user[ \t]{1,8}\S{1,64}[ \t][^\n>]{0,256})>[^\n]+/gi,
  /((?<=^|\s)(?:-u|--user)[\s=]{1,20})["']?[^\s:]{1,256}:\S+/g,
  /(\b(?:bearer|basic)\s{1,20})[\w+/=.~-]{8,}/gi,
  /()\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?/g,
  /()\b(?:AGE-SECRET-KEY-1\w{10,}|gh[opusr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|[rs]k_live_\w{10,}|AIza[\w-]{30,}|hv[sbr]\.[\w-]{20,}|npm_\w{20,}|pypi-[\w-]{20,}|dckr_(?:pat|oat)_[\w-]{16,}|SG\.[\w-]{10,}\.[\w-]{10,}|hf_\w{20,}|gl(?:rt|dt|cbt|ptt|ft|soat|agent)-[\w-]{16,}|xapp-[\w-]{10,})/g,
]
/** A manifest of a Secret as YAML or JSON in quotes: its values may stand under any name. */
const SECRET_MANIFEST =
  /(?:^|[\s{,"'-])\\*["']?kind\\*["']?\s{0,20}:\s{0,20}(?:(?:[!&][\w!:.-]{0,60}|[|>][-+]?)\s{1,20}){0,2}(?:\{\{-?\s{0,20})?\\*["']?Secret(?:List)?\\*["']?(?:$|[\s,}])/
/** Letters of base64 in a row, and what stands between two lines of them: escapes, quotes, what joins, quotes or lists them. */
const BASE64 = /[A-Za-z0-9+/_-]{16,}={0,2}/g
const BETWEEN_BASE64 = /^(?:\\+(?:[nrt]|u00[0-9a-f]{2})?|&#x?[0-9a-f]{1,4};|[\s"'\x60+,#>*.;|()-])*$/i
const LAST_OF_BASE64 =
  /(?:\\+[nrt]?|&#x?[0-9a-f]{1,4};|[\s"'\x60+,#>*;|-]){1,64}[A-Za-z0-9+/]{1,15}={0,2}(?![\w:=.-])/iy
/** Letters as JSON, YAML, shells and XML write them in quotes. */
const ESCAPE = /\\(?:u[0-9a-f]{4}|x[0-9a-f]{2}|[nrt"'/\\])|&(?:#\d{1,5}|#x[0-9a-f]{1,5}|quot|apos|lt|gt|amp);/gi
const LETTERS: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  quot: '"',
  apos: "'",
  lt: '<',
  gt: '>',
  amp: '&',
}
/** Escapes in escapes. */
const MAX_ESCAPED = 6
const QUOTED = /"(?:[^"\\]|\\[\s\S])*"/g
const QUOTED_REDACTED = `"${REDACTED_TEXT}"`
/** user:password@tcp(host), @(host), @/database: of Go's drivers. */
const PROTOCOL = /@(?:(?:[a-z][\w+.-]{0,20})?\(|(?:tcp|unix)?\/(?!\/))/gi

const QUOTE = String.raw`(?:\\*["'\x60]|&(?:quot|#34);)?`
const ENTRY_VALUE = String.raw`\\*["']?(?:(?:default|string)[-_]?)?(?:value|default)s?\\*["']?[ \t]{0,20}[:=]`
/** Between the name of an entry and its value: not the next item of a list, nor the next map. */
const SAME_ENTRY = String.raw`(?:[\s,]{1,64}|[^\n{}<>]{0,256}?[\s,]|[ \t,]{0,20}(?:#[^\n]{0,256})?(?:\r?\n(?![ \t]{0,64}-[ \t])[^\n]{0,512}){0,8}?\r?\n[ \t]{0,64})`

/** A table of TOML, or section of another file, that holds secrets under any name; and the next one. */
const SECTION =
  /(?<=^|\n)[ \t]{0,64}\[{1,2}[\w. "'-]{0,64}?(?:secrets?|credentials?|passwords?|tokens?|api[-_]?keys?)["']?\]{1,2}[ \t]{0,20}(?:[#;][^\n]{0,256})?\r?\n/gi
const NEXT_SECTION = /\n[ \t]*\[/g
/** The same of HCL. */
const BLOCK_OF_HCL =
  /(?<=^|\n)[ \t]{0,64}(?:credentials?|secrets?|tokens?|passwords?)(?:[ \t]{1,8}"[^"\n]{0,128}")?[ \t]{1,8}\{/gi

/** Of an address without a password. */
const PORT = /^\d{1,5}(?=[/?#\s"'`<>,;)\]}\\|&]|[.:](?:\s|$)|$)(?![^\s"'<>]*@)/

const IN_LINE: Place = { column: 0, isKey: false, isInFlow: true }

type Span = readonly [start: number, end: number]

/** Texts from this length on are remembered, and so many letters of them in all. */
const LONG_TEXT = 16_384
const MAX_REMEMBERED = 2 ** 22

/** Long texts lately seen in which nothing is secret: the attributes and profiles that take one look through it once. */
class HarmlessTexts {
  /** by the text, what was looked for in it */
  readonly #known = new Map<string, Set<string>>()
  #letters = 0

  has(text: string, { source }: RegExp): boolean {
    return text.length >= LONG_TEXT && this.#known.get(text)?.has(source) === true
  }

  add(text: string, { source }: RegExp): void {
    if (text.length < LONG_TEXT) return
    const sources = this.#known.get(text)
    if (sources) {
      sources.add(source)
      return
    }
    this.#letters += text.length
    if (this.#letters > MAX_REMEMBERED) {
      this.#known.clear()
      this.#letters = text.length
    }
    this.#known.set(text, new Set([source]))
  }
}

const harmless = new HarmlessTexts()

/** Takes secrets out of texts of whatever format. */
export class TextCleaner {
  readonly #suspect: RegExp
  readonly #named: RegExp
  readonly #assigned: RegExp
  readonly #entry: RegExp
  readonly #entryName: RegExp
  readonly #moreOfEntry = new RegExp(`${SAME_ENTRY}(${ENTRY_VALUE})`, 'iy')
  readonly #call: RegExp
  readonly #flag: RegExp
  readonly #elements: readonly RegExp[]
  readonly #nameElement: RegExp

  /** @param more names that are secret besides the built-in ones */
  constructor(more: readonly string[] = []) {
    const name = sourceOfNames(more)
    const source = sourceOfNames(more, true)
    const own = source && `|${source}`
    const entryName = String.raw`(?:\b(?:name|key)\\*["']?\s{0,20}[:=]\s{0,20}\\*["']?[\w./:-]{0,128}?${name}\\*["']?(?![\w.-])|\bvariable[ \t]{1,20}["'][\w.-]{0,64}?${name}["'][ \t]{0,20}\{)`
    const xmlName = String.raw`[\w:.-]{0,64}?${name}`
    const xmlText = String.raw`[\w:./-]{0,128}?${name}`
    this.#named = new RegExp(NAMED + own, 'i')
    this.#suspect = new RegExp(`${UNNAMED}|${NAMED}${own}`, 'i')
    this.#assigned = new RegExp(
      String.raw`${name}${QUOTE}(?:\]|\[[\w-]{0,32}\])?\s{0,64}(?:(?:\/\*[^*]{0,256}\*\/|(?:\/\/|#)[^\n]{0,256}\n)\s{0,64})?(?:[?+]?=>?|:=?)`,
      'gi',
    )
    this.#entryName = new RegExp(entryName, 'gi')
    this.#entry = new RegExp(`${entryName}${SAME_ENTRY}(${ENTRY_VALUE})`, 'gi')
    this.#call = new RegExp(String.raw`\(\s{0,20}["'][\w.-]{0,64}?${name}["']\s{0,20},`, 'gi')
    this.#flag = new RegExp(
      String.raw`(?<=^|[\s"'\x60[,=])--?[\w.-]{0,64}?${name}(?:["'\x60]?,\s{0,64}|["'\x60]?(?:\s|\\\r?\n){1,64}(?:-[ \t]{1,20}(?!--))?)(?!-[ \t])`,
      'gi',
    )
    this.#elements = [
      new RegExp(String.raw`<(${xmlName})(?:\s[^<>]{0,512})?(?<!\/)>`, 'gi'),
      new RegExp(
        String.raw`<([\w:.-]{1,64})\s[^<>]{0,512}?\b(?:name|key|id|property)\s{0,20}=\s{0,20}["']${xmlText}["'][^<>]{0,4096}(?<!\/)>`,
        'gi',
      ),
      new RegExp(
        String.raw`<[\w:-]{0,32}?(?:name|key)(?:\s[^<>]{0,512})?>\s{0,64}${xmlText}\s{0,64}</[^<>]{1,64}>(?:(?!<(?:[\w:-]{0,32}?(?:name|key)(?:\s[^<>]{0,512})?|/property|/entry)>)[\s\S]){0,65536}?<([\w:-]{0,32}?(?:value|string|default)s?)(?:\s[^<>]{0,512})?>`,
        'gi',
      ),
    ]
    this.#nameElement = new RegExp(
      String.raw`<[\w:-]{0,32}?(?:name|key)(?:\s[^<>]{0,512})?>\s{0,64}${xmlText}\s{0,64}</`,
      'gi',
    )
  }

  /**
   * A text without the secrets that it shows to be such: passwords of addresses and connection strings, values behind telling names and
   * flags, private keys, tokens of well-known shape, and the same inside a document of JSON.
   * @param scrub for values of documents; what it leaves as it is, it returns itself
   */
  clean(text: string, scrub: (value: object) => unknown, nested = 0): string {
    if (text.length < SHORTEST_TEXT || harmless.has(text, this.#suspect)) return text
    const isSuspect = this.#suspect.test(text)
    if (!isSuspect && !isEscaped(text)) {
      harmless.add(text, this.#suspect)
      return text
    }
    if (text.length > MAX_TEXT) return REDACTED_TEXT
    const left = isSuspect ? this.#plain(text, scrub, nested) : text
    if (!this.#hides(left, scrub, nested)) return left
    const pieces = left.replace(QUOTED, (piece) =>
      this.#hides(piece.slice(1, -1), scrub, nested) ? QUOTED_REDACTED : piece,
    )
    return this.#hides(pieces, scrub, nested) ? REDACTED_TEXT : pieces
  }

  /** Whether a secret shows once the escapes of a text are undone, however often they were made. */
  #hides(text: string, scrub: (value: object) => unknown, nested: number, depth = 0): boolean {
    if (!isEscaped(text)) return false
    if (depth >= MAX_ESCAPED) return true
    const meant = text.replace(ESCAPE, unescaped)
    if (this.#suspect.test(meant) && this.#plain(meant, scrub, nested) !== meant) return true
    return this.#hides(meant, scrub, nested, depth + 1)
  }

  /** The same of a text as it stands. */
  #plain(text: string, scrub: (value: object) => unknown, nested: number): string {
    const document = /^\s*[{[]/.test(text) ? parsed(text) : undefined
    if (document !== undefined) {
      if (nested >= MAX_NESTED) return REDACTED_TEXT
      const clean = scrub(document)
      return clean === document ? text : JSON.stringify(clean)
    }
    if (SECRET_MANIFEST.test(text)) return REDACTED_TEXT
    const first = withoutAddresses(replaced(withoutPackedKeys(text), FIRST))
    if (!this.#named.test(first)) return first
    return replaced(without(first, this.#spans(first)), LAST)
  }

  /** Where the values are that stand behind telling names. */
  #spans(text: string): readonly Span[] {
    const values = new TextValues(text)
    const spans: Span[] = []
    const add = (from: number, end: number): number => {
      const start = values.startOf(from)
      if (start < end) spans.push([start, end])
      return end
    }
    each(this.#assigned, text, (match, behind) => {
      const end = values.endOf(behind, placeOfExplicit(text, match) ?? values.placeOf(match.index))
      return isHarmlessHere(text, match, end) ? behind : add(behind, end)
    })
    each(this.#entry, text, (match, behind) => {
      let end = behind
      for (let more: RegExpExecArray | null = match; more; more = sticky(this.#moreOfEntry, text, end)) {
        const from = more.index + more[0].length
        end = add(from, values.endOf(from, values.placeOf(from - (more[1] ?? '').length)))
      }
      return end
    })
    const work = new Work(text.length)
    const brackets = new Brackets(text)
    each(this.#entryName, text, (match, behind) => {
      spans.push(...valuesBefore(text, match, values, work), ...valuesOfEntry(text, match, values, brackets, work))
      return behind
    })
    each(this.#call, text, (_, behind) => add(behind, values.endOf(behind, IN_LINE)))
    each(this.#flag, text, (_, behind) => {
      const closed = values.behindQuote(behind)
      return add(
        behind,
        closed !== undefined && closed > 0 ? closed : behindWord(text, Math.max(behind, -(closed ?? 0))),
      )
    })
    each(SECTION, text, (_, behind) => {
      NEXT_SECTION.lastIndex = behind - 1
      return add(behind, NEXT_SECTION.exec(text)?.index ?? text.length)
    })
    each(BLOCK_OF_HCL, text, (_, behind) => add(behind - 1, values.endOf(behind - 1, IN_LINE)))
    if (text.includes('<')) this.#addElements(text, add, work)
    if (text.includes('&')) addAnchors(text, spans, values)
    return work.isTooMuch ? [[0, text.length]] : spans
  }

  #addElements(text: string, add: (from: number, end: number) => number, work: Work): void {
    const unclosed = new Set<string>()
    for (const pattern of this.#elements)
      each(pattern, text, (match, behind) => {
        const close = closeOf(text, match[1] ?? '', behind, unclosed, work)
        if (close !== undefined) return add(behind, close)
        // Nothing closes it: a placeholder, or broken. What stands on its line, or on the next.
        OPEN.lastIndex = behind
        return add(behind, OPEN.test(text) ? OPEN.lastIndex : behind)
      })
    each(this.#nameElement, text, ({ index }, behind) => {
      for (let at = index; at > 0; ) {
        const tag = text.lastIndexOf('<', at - 1)
        if (tag === -1 || !work.spend(at - tag)) break
        const name = /^<\/?[\w:-]{0,64}/.exec(text.slice(tag, tag + 66))?.[0] ?? ''
        if (name[1] !== '/' && /values?$/i.test(name)) {
          const start = text.indexOf('>', tag) + 1
          const end = text.indexOf('</', start)
          if (end !== -1 && end < index) add(start, end)
          break
        }
        if (/(?:^<\/?property|entry|name|key)$/i.test(name)) break
        at = tag
      }
      return behind
    })
  }
}

/** Where the element ends that begins there; those in it that have its name end first. @param unclosed names that nothing closes in the rest of the text */
function closeOf(text: string, name: string, from: number, unclosed: Set<string>, work: Work): number | undefined {
  if (unclosed.has(name)) return undefined
  let last: number | undefined
  let depth = 1
  for (let at = from; work.spend(0); ) {
    const close = text.indexOf(`</${name}`, at)
    work.spend((close === -1 ? text.length : close) - at)
    if (close === -1) {
      if (last === undefined) unclosed.add(name)
      return last
    }
    const opens = text.slice(at, close).split(`<${name}`).slice(1)
    depth += opens.filter((open) => /^[\s>]/.test(open) && !/^[^<>]*\/>/.test(open)).length - 1
    last = close
    if (depth <= 0) return close
    at = close + 2
  }
  return last
}

const OPEN = /\s{0,64}[^<\n]*/y

/** Calls with each match; goes on where it is told. */
function each(pattern: RegExp, text: string, found: (match: RegExpExecArray, behind: number) => number): void {
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const behind = pattern.lastIndex
    pattern.lastIndex = Math.max(found(match, behind), behind)
  }
}

function sticky(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function isHarmlessHere(text: string, match: RegExpExecArray, end: number): boolean {
  const name = /^[\w.-]*\w/.exec(match[0])?.[0] ?? ''
  let from = match.index
  while (from > 0 && match.index - from < 64 && /[\w.-]/.test(text[from - 1] as string)) from--
  if (isHarmless(text.slice(from, match.index) + name)) return true
  const behind = match.index + match[0].length
  if (text.startsWith('//', from - 2) && PORT.test(text.slice(behind, behind + MAX_BEFORE))) return true
  return /(?:secret|token|key)s$/i.test(name) && textCountsOrRefers(text.slice(behind, end).trim())
}

/** Where the value of `? name` begins in YAML: with the colon on a line of its own. */
function placeOfExplicit(text: string, { index, 0: found }: RegExpExecArray): Place | undefined {
  const colon = /\n([ \t]*):$/.exec(found)
  if (!colon) return undefined
  const from = text.lastIndexOf('\n', index) + 1
  if (index - from > MAX_HEAD || !/^[ \t]*(?:-[ \t]+)*\?[ \t]/.test(text.slice(from, index))) return undefined
  return { column: (colon[1] ?? '').length, isKey: true, isInFlow: false }
}

/** Letters that are looked at more than once, for entries and elements: so many that it stays linear in the text. What is beyond is secret as a whole. */
class Work {
  #left: number

  constructor(length: number) {
    this.#left = 8 * length + 2 ** 18
  }

  get isTooMuch(): boolean {
    return this.#left < 0
  }

  /** @returns whether it may go on */
  spend(letters: number): boolean {
    this.#left -= letters + 1
    return this.#left >= 0
  }
}

/** Where its line begins, and in which column an entry does whose name stands at the head of a line; undefined elsewhere. */
function headOf(text: string, name: number): { lineStart: number; column: number; isItem: boolean } | undefined {
  const lineStart = text.slice(Math.max(0, name - MAX_HEAD), name).lastIndexOf('\n') + 1 + Math.max(0, name - MAX_HEAD)
  if (lineStart > 0 && text[lineStart - 1] !== '\n') return undefined
  const head = /^([ \t]*(?:-[ \t]+)*)\\*["']?$/.exec(text.slice(lineStart, name))?.[1]
  return head === undefined ? undefined : { lineStart, column: head.length, isItem: head.includes('-') }
}

/** The values of an entry that stand before its name, on its line or those above. */
function valuesBefore(
  text: string,
  { index: name, 0: found }: RegExpExecArray,
  values: TextValues,
  work: Work,
): readonly Span[] {
  const head = headOf(text, name)
  if (head) return head.isItem ? [] : valuesAbove(text, head.lineStart, head.column, found.slice(0, 3), values, work)
  const from = Math.max(0, name - MAX_BEFORE)
  const before = text.slice(from, name)
  if (!/value|default/i.test(before)) return []
  return valuesInLine(before, before.lastIndexOf('\n') + 1).map(([start, end]) => [from + start, from + end])
}

const VALUE_AT = new RegExp(ENTRY_VALUE, 'iy')
const VALUE_IN_FLOW = new RegExp(String.raw`(?:[\w-]{1,32}:)?${ENTRY_VALUE}`, 'iy')
const NAME_IN_FLOW = /(?:[\w-]{1,32}:)?\\*["']?(?:name|key)\\*["']?[ \t]{0,20}[:=]/iy
const VALUES = new RegExp(String.raw`(?<![\w.-])${ENTRY_VALUE}`, 'gi')
const MAX_VALUES = 8

/** @param word which key of an entry the name stands under: another one of the same is of another entry */
function valuesAbove(
  text: string,
  lineStart: number,
  column: number,
  word: string,
  values: TextValues,
  work: Work,
): readonly Span[] {
  const spans: Span[] = []
  for (let end = lineStart - 1; end >= 0; ) {
    const start = end === 0 ? 0 : text.lastIndexOf('\n', end - 1) + 1
    if (!work.spend(end - start)) break
    const line = text.slice(start, end)
    const head = /^[ \t]*(?:-[ \t]+)?/.exec(line)?.[0] ?? ''
    const isOther = line.trim() === '' || line.trim().startsWith('#') || head.length > column
    if (!isOther && (head.length < column || line.startsWith(word, head.length))) break
    VALUE_AT.lastIndex = start + head.length
    if (!isOther && VALUE_AT.test(text)) {
      const behind = VALUE_AT.lastIndex
      const stop = Math.min(values.endOf(behind, { column, isKey: true, isInFlow: false }), lineStart - 1)
      if (!work.spend(stop - behind)) break
      if (values.startOf(behind) < stop) spans.push([values.startOf(behind), stop])
    }
    if (!isOther && head.includes('-')) break
    if (start === 0) break
    end = start - 1
  }
  return spans
}

/** The values of an entry, whatever there is between them and its name: on lines below that begin where it does, and in the same brackets. */
function valuesOfEntry(
  text: string,
  { index: name, 0: found }: RegExpExecArray,
  values: TextValues,
  brackets: Brackets,
  work: Work,
): readonly Span[] {
  const from = name + found.length
  if (found.endsWith('{')) return valuesInFlow(text, from, true, values, work)
  const head = headOf(text, name)
  const below = head ? valuesBelow(text, from, head.column, found.slice(0, 3), values, work) : []
  const open = brackets.around(name)
  if (open !== undefined) return [...below, ...valuesInFlow(text, open + 1, true, values, work)]
  return head ? below : valuesInFlow(text, from, false, values, work)
}

/** Tells which bracket, or tag of XML, a place stands in. Places must be asked for in ascending order. */
class Brackets {
  readonly #text: string
  readonly #open: number[] = []
  readonly #told = new Set<number>()
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** @returns undefined as well where it was told before: whoever asked has seen all that is in it */
  around(place: number): number | undefined {
    while (this.#at < place) this.#at = this.#step(this.#at) + 1
    const open = this.#open.at(-1)
    if (open === undefined || this.#told.has(open)) return undefined
    this.#told.add(open)
    return open
  }

  /** @returns the last letter that was looked at */
  #step(at: number): number {
    const text = this.#text
    const letter = text[at] as string
    if ('[{('.includes(letter) || (letter === '<' && /[a-z]/i.test(text[at + 1] ?? ' '))) this.#open.push(at)
    else if (']})'.includes(letter) || letter === '>') this.#close(letter === '>', at)
    else if ((letter === '"' || letter === "'") && /[\s,:=[{(]/.test(text[at - 1] ?? ' ')) {
      CLOSE_ON_LINE.lastIndex = at
      if (CLOSE_ON_LINE.test(text)) return CLOSE_ON_LINE.lastIndex - 1
    } else if (letter === '#' && /\s/.test(text[at - 1] ?? ' ')) return behindLine(text, at) - 1
    return at
  }

  #close(isTag: boolean, at: number): void {
    const isOpenTag = () => this.#text[this.#open.at(-1) ?? at] === '<'
    if (isTag) {
      if (isOpenTag()) this.#open.pop()
      return
    }
    while (isOpenTag()) this.#open.pop()
    this.#open.pop()
  }
}

const CLOSE_ON_LINE = /"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y

function valuesBelow(
  text: string,
  from: number,
  column: number,
  word: string,
  values: TextValues,
  work: Work,
): readonly Span[] {
  const spans: Span[] = []
  for (let at = behindLine(text, from); at < text.length; ) {
    const next = behindLine(text, at)
    if (!work.spend(next - at)) break
    const line = text.slice(at, next)
    const indent = line.length - line.trimStart().length
    at = next
    if (line.trim() === '' || line[indent] === '#' || indent > column) continue
    const key = line.slice(indent).replace(/^\\*["']/, '')
    if (indent < column || key.startsWith(word) || /^(?:[[}\])]|---|\.\.\.)/.test(key)) break
    VALUE_AT.lastIndex = next - line.length + indent
    if (!VALUE_AT.test(text)) continue
    const behind = VALUE_AT.lastIndex
    const end = values.endOf(behind, { column, isKey: true, isInFlow: key !== line.slice(indent) })
    if (!work.spend(end - behind)) break
    if (values.startOf(behind) < end) spans.push([values.startOf(behind), end])
    at = Math.max(next, end)
  }
  return spans
}

/** Up to the end of the brackets or of the element, nothing where they have none; without them of the line, or before another name. */
function valuesInFlow(text: string, from: number, isOpen: boolean, values: TextValues, work: Work): readonly Span[] {
  const spans: Span[] = []
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (!work.spend(0)) break
    const letter = text[at] as string
    // Statements of code are no entry.
    if (letter === '\n' && (!isOpen || (depth === 0 && text[at - 1] === ';'))) break
    if ('[{('.includes(letter)) depth++
    else if (']})>'.includes(letter) && --depth < 0) return spans
    if (!/[\s,;[{(]/.test(text[at - 1] as string)) continue
    VALUE_IN_FLOW.lastIndex = at
    NAME_IN_FLOW.lastIndex = at
    if (depth === 0 && !isOpen && NAME_IN_FLOW.test(text)) break
    if (depth === 0 && VALUE_IN_FLOW.test(text)) {
      const behind = VALUE_IN_FLOW.lastIndex
      const end = values.endOf(behind, IN_LINE)
      if (values.startOf(behind) < end) spans.push([values.startOf(behind), end])
      if (!work.spend(end - behind)) break
      if (closesMore(text.slice(behind, end))) return spans
      at = Math.max(at, end - 1)
    } else if (letter === '"' || letter === "'") {
      const close = text.indexOf(letter, at + 1)
      if (!work.spend((close === -1 ? text.length : close) - at) || close === -1) break
      at = close
    }
  }
  return isOpen ? [] : spans
}

/** Whether a piece of text closes a bracket that was open before it: a value without quotes goes to the end of its line. */
function closesMore(piece: string): boolean {
  let depth = 0
  for (const letter of piece) {
    if ('[{('.includes(letter)) depth++
    else if (']})>'.includes(letter) && --depth < 0) return true
  }
  return false
}

function behindLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end + 1
}

function valuesInLine(before: string, lineStart: number): readonly Span[] {
  const values = new TextValues(before)
  const starts = [...before.slice(lineStart).matchAll(VALUES)].slice(-MAX_VALUES)
  const end = before.replace(/[\s,]*\\*["']?$/, '').length
  const spans: Span[] = []
  for (const match of starts) {
    const start = values.startOf(lineStart + match.index + match[0].length)
    const isClosed = /^\\*["'`[{(]/.test(before.slice(start, start + 8))
    const stop = isClosed ? Math.min(values.endOf(start, IN_LINE), end) : end
    if (start < stop && !/[{}<>\n]/.test(before.slice(isClosed ? stop : start))) spans.push([start, stop])
  }
  return spans
}

function behindWord(text: string, from: number): number {
  if (text.startsWith(REDACTED_TEXT, from)) return from + REDACTED_TEXT.length
  let end = from
  while (end < text.length && !/\s/.test(text[end] as string)) end++
  return end
}

const ALIAS = /\*([^\s,[\]{}"'*&]{1,256})/g
const ANCHOR = /&([^\s,[\]{}"'*&]{1,256})(?=[\s,}\]]|$)/g

/** What is secret by an alias is so where it stands itself. */
function addAnchors(text: string, spans: Span[], values: TextValues): void {
  let seen = 0
  for (let round = 0; round < MAX_ALIASES && seen < spans.length; round++) {
    const names = new Set<string>()
    for (const [start, end] of merged(spans.slice(seen)))
      for (const [, alias = ''] of text.slice(start, end).matchAll(ALIAS)) names.add(alias)
    seen = spans.length
    if (names.size === 0) return
    each(ANCHOR, text, ([, name = ''], behind) => {
      if (!names.has(name)) return behind
      const end = values.endOf(behind, values.placeOf(behind - 1 - name.length))
      const start = values.startOf(behind)
      if (start < end) spans.push([start, end])
      return end
    })
  }
}

function merged(spans: readonly Span[]): readonly Span[] {
  const all: [number, number][] = []
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1)
    if (last && start <= last[1]) last[1] = Math.max(last[1], end)
    else all.push([start, end])
  }
  return all
}

function without(text: string, spans: readonly Span[]): string {
  if (spans.length === 0) return text
  const parts: string[] = []
  let at = 0
  for (const [start, end] of merged(spans)) {
    parts.push(text.slice(at, start), REDACTED_TEXT)
    at = end
  }
  return parts.join('') + text.slice(at)
}

const replaced = (text: string, patterns: readonly RegExp[]): string =>
  patterns.reduce((left, pattern) => left.replace(pattern, (_, kept: string) => `${kept}${REDACTED_TEXT}`), text)

function withoutPackedKeys(text: string): string {
  if (!text.includes(PACKED_PEM) && !PACKED_KEY.test(text)) return text
  const spans: Span[] = []
  let lines: Span[] = []
  const close = () => {
    const [first, last] = [lines[0], lines.at(-1)]
    if (first && last && PACKED_KEY.test(lines.map(([start, end]) => text.slice(start, end)).join(''))) {
      LAST_OF_BASE64.lastIndex = last[1]
      spans.push([first[0], LAST_OF_BASE64.test(text) ? LAST_OF_BASE64.lastIndex : last[1]])
    }
    lines = []
  }
  each(BASE64, text, ({ 0: run, index }, end) => {
    const start = index + (text[index - 1] === '\\' ? (/^(?:[nrt]|u00[0-9a-f]{2})/i.exec(run)?.[0].length ?? 0) : 0)
    const before = lines.at(-1)?.[1] ?? start
    const isNext = start - before <= MAX_BETWEEN && BETWEEN_BASE64.test(text.slice(before, start))
    // The name of what follows, or another file.
    if (!isNext || text[end] === ':' || text.startsWith(PACKED_PEM, start)) close()
    lines.push([start, end])
    return end
  })
  close()
  return without(text, spans)
}

function withoutAddresses(text: string): string {
  if (!text.includes('@')) return text
  const left = text.includes('@//') || /oracle:/i.test(text) ? replaced(text, ORACLE) : text
  PROTOCOL.lastIndex = 0
  return PROTOCOL.test(left) ? withoutDsns(left) : left
}

function withoutDsns(text: string): string {
  const spans: Span[] = []
  let least = 0
  each(PROTOCOL, text, (match, behind) => {
    let from = match.index
    const stop = Math.max(least, from - MAX_BEFORE)
    while (from > stop && !/[\s"'`]/.test(text[from - 1] as string)) from--
    const colon = text.slice(from, match.index).indexOf(':')
    const isAddress = text.startsWith('//', from + colon + 1)
    if (colon !== -1 && !isAddress && from + colon + 1 < match.index) spans.push([from + colon + 1, match.index])
    least = behind
    return behind
  })
  return without(text, spans)
}

function isEscaped(text: string): boolean {
  if (!text.includes('\\') && !text.includes('&')) return false
  ESCAPE.lastIndex = 0
  return ESCAPE.test(text)
}

function unescaped(written: string): string {
  const what = written[0] === '&' ? written.slice(1, -1) : written.slice(1)
  const digits = /^(?:[ux]|#x)([0-9a-f]+)$/i.exec(what)?.[1]
  if (digits !== undefined) return String.fromCharCode(Number.parseInt(digits, 16))
  return what[0] === '#' ? String.fromCharCode(Number(what.slice(1))) : (LETTERS[what.toLowerCase()] ?? what)
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    // What only looks like JSON is looked through as text.
    return undefined
  }
}
