/** Names end in one of these, letters and digits only, whatever stands between them. @see Kollect's scrubber, and what it lets pass */
const WORDS: readonly string[] = [
  ...['password', 'passwords', 'passwd', 'passphrase', 'requirepass', 'pwd', 'secret', 'clientsecret', 'token', 'auth'],
  ...['authorization', 'credential', 'credentials', 'apikey', 'privatekey', 'secretkey', 'accesskey', 'accountkey'],
  ...[
    'encryptionkey',
    'signingkey',
    'masterkey',
    'sshkey',
    'sharedkey',
    'connectionstring',
    'secretkeyref',
    'secretref',
  ],
  ...['dockercfg', 'dockerconfigjson', 'setcookie'],
]
/** Too short to end other words: only as a word of their own, as in DB_PASS and dbPass. */
const SHORT = /(?:^|[^A-Za-z])(?:pass|pw|psw|PASS|PW|PSW)$|[a-z0-9](?:Pass|Pw)$/
/** A file called password.txt holds one. */
const ENDING = /\.(?:txt|env|conf|cfg|ini)$/i
/** Names repeat themselves from object to object; so many are remembered. */
const MAX_REMEMBERED = 20_000

/** Tells whether what goes by a name is secret. Names come from objects: a key of a map, the name of an environment variable, a flag. */
export class SensitiveNames {
  readonly #words: readonly string[]
  readonly #known = new Map<string, boolean>()

  /** @param more further names, such as those of a profile's `scrubKeys`; of two letters and less only whole */
  constructor(more: readonly string[] = []) {
    this.#words = [...WORDS, ...more.map(lettersOf).filter((word) => word !== '')]
  }

  has(name: string): boolean {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const is = this.#judge(name)
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.set(name, is)
    return is
  }

  #judge(name: string): boolean {
    const stem = name.replace(ENDING, '')
    const letters = lettersOf(stem)
    if (SHORT.test(stem)) return true
    return this.#words.some((word) => letters === word || (word.length > 2 && letters.endsWith(word)))
  }
}

const lettersOf = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')
