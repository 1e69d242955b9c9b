/** What stands where a part of a text was secret. */
export const REDACTED_TEXT = '[redacted]'
/** Shorter ones hold no secret that could be told. */
export const SHORTEST_TEXT = 6
/** Longer texts are not looked through, UTF-16 units: no object of a cluster is larger. */
const MAX_TEXT = 2 ** 21
/** Documents in documents. */
const MAX_NESTED = 4

/** Nothing below fits a text without one of these. */
const SUSPECT =
  /pass|pwd|pw[=:]|secret|token|key|cred|auth|sig=|bearer|basic|cookie|:\/\/|^\s*[{[]|eyJ|gh[opusr]_|github_pat|glpat-|xox[abeprs]-|[rs]k_live|AIza|-u\s|--user|identified\s/i

const NAME =
  '(?:pass(?:word|wd|phrase)?s?|pwd|(?<![a-z])pw|secret|token|(?:api|private|secret|access|account|shared|encryption|signing|master)[-_. ]?key|credentials?|auth(?:orization)?|set-cookie|connection[-_ ]?string|sig)'
/** Quoted, or redacted before, and nothing right behind it. */
const QUOTED = String.raw`(?:"(?:[^"\\\n]|\\.){0,65536}"?|'[^'\n]{0,65536}'?)(?=[\s,;:}\])&|]|$)|\[redacted\](?=[\s,;:}\])&|"'\\]|$)`
/** Behind `|` or `>` of YAML: the lines that are indented. */
const BLOCK = String.raw`[|>][-+0-9]{0,2}[ \t]{0,20}(?:\r?\n(?:[ \t]+[^\n]*|(?=\r?\n|$))){1,2000}`

/** An entry of a list in YAML, JSON or XML whose name is telling, on one line or some; its value stands behind it, or before. */
const ENTRY_NAME = String.raw`(?:name|key)["']?\s{0,20}[:=]\s{0,20}["']?[\w.-]{0,128}?${NAME}["']?(?![\w.-])`
const ENTRY_VALUE = String.raw`["']?value["']?\s{0,20}[:=]\s{0,20}`
const SAME_ENTRY = String.raw`(?:[\s,]{1,64}|[ \t,]{0,20}(?:#[^\n]{0,256})?(?:\r?\n(?![ \t]{0,64}-[ \t])[^\n]{0,512}){0,4}?\r?\n[ \t]{0,64})`

/** Each match is redacted but for its first group. Bounds in the patterns keep them linear. */
const PATTERNS: readonly RegExp[] = [
  /()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*/g,
  // Userinfo of an address; a digest behind @ is none (docker-pullable://image@sha256:…).
  /(:\/\/)[^\s/?#"'<>]{1,1024}(?=@(?!sha\d))/g,
  // A password with "/", "?" or "#" in it; a port is none.
  /(:\/\/)[^\s/?#"'@:]{0,256}:(?!\d{1,5}(?:[/?#]|$))[^\s"'<>]{1,2048}(?=@(?!sha\d))/g,
  // Unquoted the value goes to the end of the line: nobody knows which letters a password has.
  new RegExp(String.raw`(${NAME}\\?["']?\s{0,20}(?:=>?|:=?)\s{0,20})(?:\\?(?:${QUOTED})|${BLOCK}|[^\n]+)`, 'gi'),
  new RegExp(String.raw`(\b${ENTRY_NAME}${SAME_ENTRY}${ENTRY_VALUE})(?:\\?(?:${QUOTED})|${BLOCK}|[^\n]+)`, 'gi'),
  new RegExp(String.raw`(\b${ENTRY_VALUE})(?:${QUOTED}|[^\n]+?)(?=${SAME_ENTRY}["']?${ENTRY_NAME})`, 'gi'),
  new RegExp(String.raw`(<[\w:.-]{0,64}?${NAME}>\s{0,20})[^<]{1,65536}`, 'gi'),
  // Of netrc, and of SQL.
  /(\blogin\s{1,20}\S{1,256}\s{1,20}password\s{1,20})\S+/gi,
  /(\b(?:password|identified\s{1,5}by)\s{1,20})(?:'[^'\n]{1,1024}'|"[^"\n]{1,1024}")/gi,
  new RegExp(String.raw`((?<=^|\s)--?[\w-]{0,64}?${NAME}\s{1,20})(?:${QUOTED}|\S+)`, 'gi'),
  /((?<=^|\s)(?:-u|--user)[\s=]{1,20})["']?[^\s:]{1,256}:\S+/g,
  /(\b(?:bearer|basic)\s{1,20})[\w+/=.~-]{8,}/gi,
  /()\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?/g,
  /()\b(?:gh[opusr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|[rs]k_live_\w{10,}|AIza[\w-]{30,})/g,
]
/** A manifest of a Secret as YAML: its values may stand under any name. */
const SECRET_MANIFEST =
  /(?:^|[\s{,"'-])["']?kind["']?\s{0,20}:\s{0,20}(?:[!&][\w!:.-]{0,60}\s{1,20}){0,2}["']?Secret(?:List)?["']?(?:$|[\s,}])/

/**
 * A text without the secrets that it shows to be such: passwords of addresses and connection strings, values behind telling names and
 * flags, private keys, tokens of well-known shape, and the same inside a document of JSON.
 * @param scrub for values of documents; what it leaves as it is, it returns itself
 */
export function cleanText(text: string, scrub: (value: object) => unknown, nested = 0): string {
  if (text.length < SHORTEST_TEXT || !SUSPECT.test(text)) return text
  if (text.length > MAX_TEXT) return REDACTED_TEXT
  const document = /^\s*[{[]/.test(text) ? parsed(text) : undefined
  if (document !== undefined) {
    if (nested >= MAX_NESTED) return REDACTED_TEXT
    const clean = scrub(document)
    return clean === document ? text : JSON.stringify(clean)
  }
  if (SECRET_MANIFEST.test(text)) return REDACTED_TEXT
  let clean = text
  for (const pattern of PATTERNS) clean = clean.replace(pattern, (_, kept: string) => `${kept}${REDACTED_TEXT}`)
  return clean
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
