/** Names end in one of these, letters and digits only, whatever stands between them. @see Kollect's scrubber, and what it lets pass */
const WORDS: readonly string[] = [
  ...['password', 'passwords', 'passwd', 'passphrase', 'requirepass', 'masterauth', 'pgpass', 'pwd', 'secret', 'token'],
  ...['auth', 'authorization', 'credential', 'credentials', 'clientsecret', 'passwordhash', 'connectionstring'],
  ...['secretkeyref', 'secretref', 'secretkeybase', 'dockercfg', 'dockerconfigjson', 'setcookie', 'keydata'],
]
/** Keys that are secret; other keys may be anything. */
const KEYS = [
  'api',
  'private',
  'secret',
  'access',
  'account',
  'encryption',
  'signing',
  'master',
  'ssh',
  'shared',
  'hmac',
  'auth',
  'nonce',
  'loggedin',
]
/** Plurals of those that also count and refer: what stands there decides. */
const SEVERAL: readonly string[] = ['secrets', 'tokens', ...KEYS.map((key) => `${key}keys`)]
/** Numbers of tokens, names of Secrets. */
const HARMLESS =
  /(?:public[-_. ]?key[-_. ]?data|(?:max|min|num|total|count|input|output|prompt|completion|context|new|stop)[-_. ]?tokens|(?:pull|external|sealed)[-_. ]?secrets)$/i
/** Too short to end other words: only as a word of their own, as in DB_PASS and dbPass. */
const SHORT = /(?:^|[^A-Za-z])(?:pass|pw|psw|psk|salt|PASS|PW|PSW|PSK|SALT)$|[a-z0-9](?:Pass|Pw|Psk|Salt)$/
/** A file called password.txt holds one. */
const ENDING = /\.(?:txt|env|conf|cfg|ini)$/i
/** Which of several it is: PASSWORD_1, DB_PASSWORD_OLD. */
const WHICH = String.raw`(?:[-_. ]\d{1,3}|(?<=pass(?:word|wd|phrase)?)\d{1,3}|[-_. ]?(?:old|new|previous|prev|current|backup|value))`
const WHICH_AT_END = new RegExp(`${WHICH}$`, 'i')
/** Names repeat themselves from object to object; so many are remembered. */
const MAX_REMEMBERED = 20_000

/** `several`: unless what stands there only counts or refers. */
export type Sensitivity = 'none' | 'one' | 'several'

/** Tells whether what goes by a name is secret. Names come from objects: a key of a map, the name of an environment variable, a flag. */
export class SensitiveNames {
  readonly #words: readonly string[]
  readonly #known = new Map<string, Sensitivity>()

  /** @param more further names, such as those of a profile's `scrubKeys`; of two letters and less only whole */
  constructor(more: readonly string[] = []) {
    this.#words = [...WORDS, ...KEYS.map((key) => `${key}key`), ...more.map(lettersOf).filter((word) => word !== '')]
  }

  has(name: string): boolean {
    return this.of(name) !== 'none'
  }

  of(name: string): Sensitivity {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const is = this.#judge(name)
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.set(name, is)
    return is
  }

  #judge(name: string): Sensitivity {
    const file = name.replace(ENDING, '')
    const whole = this.#judgeStem(file)
    return whole === 'none' ? this.#judgeStem(file.replace(WHICH_AT_END, '')) : whole
  }

  #judgeStem(stem: string): Sensitivity {
    if (HARMLESS.test(stem)) return 'none'
    if (SHORT.test(stem)) return 'one'
    const letters = lettersOf(stem)
    if (this.#words.some((word) => letters === word || (word.length > 2 && letters.endsWith(word)))) return 'one'
    return SEVERAL.some((word) => letters.endsWith(word)) ? 'several' : 'none'
  }
}

/** Words by which something is referred to; whoever asks has seen that the name is of several. */
const REFERENCE = ['name', 'namespace', 'kind', 'apiVersion', 'optional', 'secretName', 'defaultMode']

/** Whether a value under the name of several only counts them, switches them on, or says which there are. */
export function countsOrRefers(value: unknown): boolean {
  if (typeof value === 'string') return /^\d{1,9}$/.test(value)
  if (typeof value !== 'object' || value === null) return true
  if (!Array.isArray(value)) return false
  return value.every(
    (one: unknown) =>
      typeof one === 'object' && one !== null && Object.keys(one).every((key) => REFERENCE.includes(key)),
  )
}

const REFERENCES = new RegExp(
  String.raw`^(?:[\s,{}[\]]|-\s|["']?(?:${REFERENCE.join('|')})["']?[ \t]*:[ \t]*["']?[\w./-]*["']?(?=[\s,}\]]|$))*$`,
)
const MAX_REFERENCES = 4096

/** The same of a value as it stands in a text. */
export const textCountsOrRefers = (text: string): boolean =>
  text.length <= MAX_REFERENCES && (/^["']?(?:\d{1,9}|true|false|null)["']?,?$/.test(text) || REFERENCES.test(text))

/** Names that look like one that is secret. */
export const isHarmless = (name: string): boolean => HARMLESS.test(name)

/** Such names in a text, as the source of a pattern that ignores case: they end there, and what is before does not matter. @param onlyMore without those built in */
export function sourceOfNames(more: readonly string[] = [], onlyMore = false): string {
  const joint = '[-_. ]?'
  const own = more
    .map(lettersOf)
    .filter((word) => word !== '')
    .map((word) => (word.length > 2 ? '' : '(?<![a-z0-9])') + [...word].join(joint))
  if (onlyMore) return own.join('|')
  const words = [
    'pass(?:word|wd|phrase)?s?(?:[-_. ]?hash)?',
    ...[
      'pwds?',
      '(?<![a-z])(?:p(?:w|sk)|salt)',
      'logged_in_key',
      'secrets?',
      'tokens?',
      'credentials?',
      'auth(?:orization)?',
      'set-cookie',
      'sig',
    ],
    ...[`secret${joint}key${joint}base`, `(?:${KEYS.join('|')})${joint}keys?`, `key${joint}data`],
    ...[`connection${joint}string`, 'dockercfg', 'dockerconfigjson'],
    ...own,
  ]
  return `(?:${words.join('|')})${WHICH}?`
}

const lettersOf = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')
