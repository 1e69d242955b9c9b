/** What stands where a part of a text was secret. */
export const REDACTED_TEXT = '[redacted]'

/** Where in its line something begins: what is indented deeper belongs to it. */
export interface Place {
  readonly column: number
  /** it is the name that its line, or a map within its line, begins with: what is indented deeper is its value */
  readonly isKey: boolean
  /** it is quoted, or stands in brackets: then a bracket behind it is none of the letters of a password */
  readonly isInFlow: boolean
}

const HEAD = /[ \t]*(?:[-?][ \t]+)*/y
const KEY = /(?:^|[{,[][ \t]*)(?:(?:export|set|local|const|let|var)[ \t]+)?[!&"'\\]*[\w$ ./:@-]*$/
const NO_KEY = /\(|^(?:if|elif|else|for|while|until|unless|when|case|return|def|class|with|assert|and|or|not)\b/
const MAX_KEY = 128
/** Of such lines at most: else each name would look at all of them. */
const MAX_NEUTRAL = 64

/** Anchors and tags of YAML, comments of JSON. */
const PROPERTIES = /[ \t]*(?:(?:[!&][^\s,;[\]{}"']{0,256}|\/\*[^*]{0,256}\*\/)(?:[ \t]+|(?=\r?\n)))*/y
const BLOCK = /[|>][-+0-9]{0,2}[ \t]*(?:#[^\n]*)?\r?(?=\n|$)/y
const EMPTY = /[ \t]*\r?(?=\n)/y
const QUOTE = /(\\*)(["'`])/y
const TRIPLE = /"""|'''/y
const HEREDOC = /<<([-~]?)[ \t]*["']?([A-Za-z_]\w{0,64})/g
/** What may stand right behind a value. */
const BEHIND = /[\s,;:}\])&|]|$/y
const BEHIND_ESCAPED = /[\s,;:}\])&|\\"'`]|$/y
const BEHIND_BRACKET = /[ \t]*[,;]?[ \t]*(?:\r?\n|$)|[ \t]+(?:#|\/[/*])/y
/** Further pieces of a text that is put together. */
const JOINED =
  /[ \t]*(?:[+.~][ \t\r\n]*["'`\w$(]|(?:&|\|\|)[ \t\r\n]*["'`]|\\\r?(?:\n|$)|\r?\n[ \t]{0,200}(?:[+.~&]|\|\|)[ \t]{0,8}["'`])/y
/** The end of a line whose text goes on with the next: what joins them stands at its end, or before the quote of the next. */
const JOINED_LINES =
  /(?<=["'`][ \t]{0,8}(?:[+.~&]|\|\|)[ \t]{0,8}\r?)\n[ \t]{0,200}["'`\w$(]|\n[ \t]{0,200}(?:[+.~&]|\|\|)[ \t]{0,8}["'`]/y
/** A line that is not indented deeper, and yet ends nothing: empty, a comment, an action of a template. */
const NEUTRAL = /^\s*(?:$|#|\{\{)/
/** The line behind a name without a value begins another, or ends what it stood in. */
const NEXT_NAME = /^(?:["']?[\w./@$-]+["']?[ \t]*(?::(?:\s|$)|=(?!=)[ \t]*[^\s=])|[}\])]|---|\.\.\.|<|-[ \t])/

/**
 * Finds out where values end in one text of whatever format: on their line, behind their quote or bracket, or where indentation does.
 * Places must be asked for in ascending order. Whoever goes on behind a value that was found takes time that is linear in the text.
 */
export class TextValues {
  readonly #text: string
  #lineStart = 0
  #head = 0
  #nextLine = 0

  constructor(text: string) {
    this.#text = text
    this.#enterLine(0)
  }

  #enterLine(at: number): void {
    this.#lineStart = at
    this.#head = this.#match(HEAD, at)
    this.#nextLine = this.#behindLine(at)
  }

  /** @param name where the name begins, or something in it */
  placeOf(name: number): Place {
    if (name < this.#lineStart) this.#enterLine(0)
    while (this.#nextLine <= name) this.#enterLine(this.#nextLine)
    const before = name - this.#head > MAX_KEY ? undefined : this.#text.slice(this.#head, name)
    return {
      column: this.#head - this.#lineStart,
      isKey: before !== undefined && KEY.test(before) && !NO_KEY.test(before),
      isInFlow: before === undefined || /["'[{]/.test(before),
    }
  }

  /** The first letter of a value: behind spaces, and behind the end of the line where it begins on the next. */
  startOf(from: number): number {
    let at = from
    while (/\s/.test(this.#text[at] ?? '')) at++
    return at
  }

  /** @param from right behind the name and what divides it from the value. @returns `from` where there is no value */
  endOf(from: number, place: Place): number {
    const at = this.#match(PROPERTIES, from)
    const block = this.#match(BLOCK, at)
    if (block > at) return this.#endOfBlock(block, place.column, false)
    EMPTY.lastIndex = at
    if (EMPTY.test(this.#text)) return this.#endOfNextLines(at, from, place)
    return at >= this.#text.length ? from : this.#endOfInline(at, place)
  }

  #endOfInline(at: number, place: Place): number {
    const behind = this.#behindClosed(at, place)
    if (behind === undefined) return this.#endOfPlain(at, place)
    if (behind < 0) return this.#endOfPlain(-behind, place)
    JOINED.lastIndex = behind
    return JOINED.test(this.#text) ? this.#endOfPlain(behind, place) : behind
  }

  /** Behind the quote or bracket that ends what begins with one, negative where the value goes on; undefined where there is no such end. */
  #behindClosed(at: number, { isInFlow }: Place): number | undefined {
    TRIPLE.lastIndex = at
    const triple = TRIPLE.exec(this.#text)?.[0]
    if (triple !== undefined) return this.#behindNext(triple, at + 3)
    const quoted = this.behindQuote(at)
    if (quoted !== undefined) return quoted === 0 ? undefined : quoted
    // An action of a template decides of what follows it.
    if (this.#text.startsWith('{{', at) || !'[{('.includes(this.#text[at] ?? ' ')) return undefined
    const end = this.#behindBrackets(at)
    const behind = isInFlow || this.#text.startsWith(REDACTED_TEXT, at) ? BEHIND_ESCAPED : BEHIND_BRACKET
    behind.lastIndex = end
    return behind.test(this.#text) ? end : undefined
  }

  /**
   * Behind the closing quote of what begins with one. A quote that is not closed on its line is on a later one, or never.
   * @returns undefined where there is no quote; 0 where more of the value stands behind the one that closes it on its line; negative
   * where that is so on a later one
   */
  behindQuote(at: number): number | undefined {
    QUOTE.lastIndex = at
    const [opening, escapes = '', quote = ''] = QUOTE.exec(this.#text) ?? []
    if (opening === undefined) return undefined
    const behind = escapes === '' ? BEHIND : BEHIND_ESCAPED
    const lineEnd = this.#endOfLine(at)
    let isClosed = false
    for (let i = this.#text.indexOf(quote, at + opening.length); i !== -1; i = this.#text.indexOf(quote, i + 1)) {
      if (i > lineEnd && isClosed) return 0
      let run = 0
      while (run < i && this.#text[i - 1 - run] === '\\') run++
      const isEscaped = escapes === '' ? run % 2 === 1 : run > escapes.length
      // In YAML a backslash is a letter between single quotes; then the last of the line ends it.
      if (isEscaped && quote !== "'") continue
      // Twice it is a letter, too.
      if (escapes === '' && this.#text[i + 1] === quote) {
        i++
        continue
      }
      isClosed ||= i <= lineEnd
      behind.lastIndex = i + 1
      if (!isEscaped && behind.test(this.#text)) return i + 1
      if (!isEscaped && i > lineEnd) return -(i + 1)
    }
    return isClosed ? 0 : this.#text.length
  }

  /** Behind the bracket that closes the first one. Brackets in quotes and comments do not count. */
  #behindBrackets(from: number): number {
    let depth = 0
    const text = this.#text
    for (let at = from; at < text.length; at++) {
      const letter = text[at] as string
      if ('[{('.includes(letter)) depth++
      else if (']})'.includes(letter)) {
        depth--
        if (depth <= 0) return at + 1
      } else if ((letter === '"' || letter === "'" || letter === '\\') && /[\s,:=[{(]/.test(text[at - 1] ?? ' ')) {
        at = this.#lastOfQuoted(at)
      } else if (this.#isComment(at, letter)) at = this.#endOfLine(at)
    }
    return text.length
  }

  /** The quote that closes the one that begins there; the end of the text where none does. */
  #lastOfQuoted(at: number): number {
    QUOTE.lastIndex = at
    const [opening, escapes = '', quote = ''] = QUOTE.exec(this.#text) ?? []
    if (opening === undefined) return at
    for (let i = this.#text.indexOf(quote, at + opening.length); i !== -1; i = this.#text.indexOf(quote, i + 1)) {
      let run = 0
      while (run < i && this.#text[i - 1 - run] === '\\') run++
      if (escapes === '' ? run % 2 === 0 : run <= escapes.length) return i
    }
    return this.#text.length
  }

  #isComment(at: number, letter: string): boolean {
    if (letter !== '#' && letter !== '/') return false
    return (letter === '#' || '/*'.includes(this.#text[at + 1] ?? ' ')) && /\s/.test(this.#text[at - 1] ?? ' ')
  }

  #endOfPlain(at: number, place: Place): number {
    const text = this.#text
    const end = this.#endOfLines(at)
    const line = text.slice(at, end).trimEnd()
    if (line === '') return end
    HEREDOC.lastIndex = 0
    const [, dash, word] = HEREDOC.exec(line) ?? []
    if (word !== undefined) return this.#behindHeredoc(word, end, dash === '' ? place.column : undefined)
    if ('[{(,'.includes(line.slice(-1))) {
      const open = this.#openBracket(at, end)
      if (open !== undefined) return this.#endOfLine(this.#behindBrackets(open))
    }
    return place.isKey ? this.#endOfBlock(end, place.column, line.startsWith('#')) : end
  }

  /** The first bracket of a line that is not closed on it. */
  #openBracket(at: number, end: number): number | undefined {
    const open: number[] = []
    for (let i = at; i < end; i++) {
      if ('[{('.includes(this.#text[i] as string)) open.push(i)
      else if (']})'.includes(this.#text[i] as string)) open.pop()
    }
    return open[0]
  }

  /** The end of a line, or of a later one, where a quoted value begins on the one and ends on the other. */
  #endOfLines(at: number): number {
    let end = this.#endOfContinued(at)
    for (let from = this.#behindOpenQuote(at, end); from !== undefined; from = this.#behindOpenQuote(from, end))
      end = this.#endOfContinued(from)
    return end
  }

  /** Behind the quote that closes, on a later line, what opens on this one behind "=", ":" and the like. */
  #behindOpenQuote(at: number, end: number): number | undefined {
    const text = this.#text
    let isValue = false
    for (let i = at; i < end; i++) {
      const letter = text[i] as string
      if (letter === '#' && /\s/.test(text[i - 1] ?? ' ')) return undefined
      if (isValue && '"\'`'.includes(letter)) {
        const quote = text.startsWith(letter.repeat(3), i) && letter !== '`' ? letter.repeat(3) : letter
        const close = this.#closing(quote, i + quote.length)
        if (close >= end) return Math.min(close + quote.length, text.length)
        i = close + quote.length - 1
      }
      isValue = '=:([{,'.includes(letter) || (isValue && (letter === ' ' || letter === '\t'))
    }
    return undefined
  }

  #closing(quote: string, from: number): number {
    for (let i = this.#text.indexOf(quote, from); i !== -1; i = this.#text.indexOf(quote, i + 1)) {
      let run = 0
      while (this.#text[i - 1 - run] === '\\' && run < i - from) run++
      if (run % 2 === 0 || quote === "'") return i
    }
    return this.#text.length
  }

  /** The end of a line and of those that go on with it: behind a backslash, or what joins texts. */
  #endOfContinued(at: number): number {
    for (let end = this.#endOfLine(at); ; end = this.#endOfLine(end + 1)) {
      let last = this.#text[end - 1] === '\r' ? end - 2 : end - 1
      let run = 0
      for (; last >= at && this.#text[last] === '\\'; last--) run++
      JOINED_LINES.lastIndex = end
      if ((run % 2 === 0 && !JOINED_LINES.test(this.#text)) || end >= this.#text.length) return end
    }
  }

  /** @param column the last line of it is not indented deeper, where one is not */
  #behindHeredoc(word: string, from: number, column?: number): number {
    const last = (indent: string) => {
      const end = new RegExp(String.raw`^[ \t]${indent}${word}\b[^\n]*`, 'gm')
      end.lastIndex = from
      return end.test(this.#text) ? end.lastIndex : undefined
    }
    return (column === undefined ? undefined : last(`{0,${column}}`)) ?? last('*') ?? this.#text.length
  }

  #endOfNextLines(at: number, none: number, place: Place): number {
    let next = at
    for (let skipped = 0; next < this.#text.length && NEUTRAL.test(this.#lineAt(next)); skipped++) {
      if (skipped === MAX_NEUTRAL) return none
      next = this.#behindLine(next)
    }
    if (next >= this.#text.length) return none
    const line = this.#lineAt(next)
    const column = line.length - line.trimStart().length
    const isItem = /^\s*-(?:\s|$)/.test(line)
    if (place.isKey && (column > place.column || (isItem && column === place.column)))
      return this.#endOfBlock(this.#endOfLine(at), place.column, true)
    const first = next + column
    if (column <= place.column && NEXT_NAME.test(line.trimStart())) return none
    return this.#endOfInline(first, { ...place, column, isKey: false })
  }

  /** The end of the last line that is indented deeper. @param hasItems those of a list at the same indentation as well */
  #endOfBlock(lineEnd: number, column: number, hasItems: boolean): number {
    let end = lineEnd
    let neutral = 0
    for (let at = lineEnd + 1; at <= this.#text.length && neutral <= MAX_NEUTRAL; ) {
      const next = this.#endOfLine(at)
      const indent = this.#indentAt(at, column)
      const isItem = () => /^-(?:\s|$)/.test(this.#text.slice(at + indent, at + indent + 2))
      const isIn = indent > column || (hasItems && indent === column && isItem())
      const line = this.#text.slice(at, next)
      if (isIn && line.trim() !== '') {
        end = next
        neutral = 0
      } else if (NEUTRAL.test(line)) neutral++
      else break
      at = next + 1
    }
    return this.#text[end - 1] === '\r' ? end - 1 : end
  }

  /** The spaces a line begins with; not more are counted than tell whether they are more than a column. */
  #indentAt(at: number, column: number): number {
    let indent = 0
    while (indent <= column && (this.#text[at + indent] === ' ' || this.#text[at + indent] === '\t')) indent++
    return indent
  }

  #lineAt(at: number): string {
    return this.#text.slice(at, this.#endOfLine(at))
  }

  #endOfLine(at: number): number {
    const end = this.#text.indexOf('\n', at)
    return end === -1 ? this.#text.length : end
  }

  #behindLine(at: number): number {
    return this.#endOfLine(at) + 1
  }

  #behindNext(what: string, from: number): number {
    const at = this.#text.indexOf(what, from)
    return at === -1 ? this.#text.length : at + what.length
  }

  /** @returns where a sticky pattern ends that begins there, or there */
  #match(pattern: RegExp, at: number): number {
    pattern.lastIndex = at
    return pattern.test(this.#text) ? pattern.lastIndex : at
  }
}
