import { type EventDeclaration, SinkError } from '../sink.ts'

/** Values of the Secret of a sink, as texts. */
export class SecretTexts {
  readonly #values: ReadonlyMap<string, string>
  readonly #isEmpty: boolean

  constructor({ credentials }: Pick<EventDeclaration, 'credentials'>) {
    // A file that became a Secret ends in a newline, which nobody means.
    const texts = Object.entries(credentials).map(
      ([key, bytes]) => [key, Buffer.from(bytes).toString().trim()] as const,
    )
    this.#isEmpty = texts.length === 0
    this.#values = new Map(texts.filter(([, text]) => text !== ''))
  }

  /** Whether there is no Secret, or none with a key. */
  get isEmpty(): boolean {
    return this.#isEmpty
  }

  get(key: string): string | undefined {
    return this.#values.get(key)
  }

  /** The same text without any of them, however a server came to say one. */
  hidden(text: string): string {
    let result = text
    for (const value of this.#values.values()) if (value.length >= 4) result = result.replaceAll(value, '…')
    return result
  }

  /** User and secret, of which there are both or none. @throws SinkError terminal, where there is one without the other */
  pair(secretKeys: readonly string[]): { readonly username: string; readonly password: string } | undefined {
    const username = this.get('username')
    const password = secretKeys.map((key) => this.get(key)).find((value) => value !== undefined)
    if (username !== undefined && password !== undefined) return { username, password }
    if (username === undefined && password === undefined) return undefined
    const missing = username === undefined ? 'username' : secretKeys.join(' or ')
    throw new SinkError('terminal', `the Secret of the sink has no ${missing}: user and password go together`)
  }
}
