import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { replaceFile } from '#runtime'
import { UnknownKeyError } from './errors.ts'
import type { KeyProvider } from './key-provider.ts'
import { KEY_BYTES, keyId, localKeys, parseKey } from './local-keys.ts'

export interface KeptKeysOptions {
  /** of the file; kept twice, so that no single harmed file takes everything with it */
  readonly path: string
  /** keys of a setting, the one in force first; with any of them no key is made */
  readonly given: readonly Buffer[]
  /** Called once, when a key was made because there was none. */
  readonly onMade?: (id: string) => void
  /** told of a copy that was harmed or gone, and is made anew from the other */
  readonly onHarmed?: (path: string) => void
}

/**
 * The keys that were given, and one that is kept in a file of mode 0600. Where there is neither, one is made when something is
 * sealed for the first time, and not before: what is already sealed with a key that is not at hand is refused first.
 */
export async function keptKeys({ path, given, onMade, onHarmed }: KeptKeysOptions): Promise<KeyProvider> {
  const paths = [path, `${path}.copy`]
  const texts = await Promise.all(paths.map((one) => readFile(one, 'utf8').catch(absentAsEmpty)))
  const kept = texts.map(readKey).filter((key) => key !== undefined)
  const [whole] = kept
  if (whole) {
    for (const [i, one] of paths.entries()) if (!readKey(texts[i] ?? '')) onHarmed?.(one)
    await keep(whole, texts)
  }
  const keys = [...given, ...kept]
  if (keys.length > 0) return localKeys(keys)

  const made = randomBytes(KEY_BYTES)
  const provider = localKeys([made])
  let keeping: Promise<void> | undefined
  return {
    id: provider.id,
    ids: () => (keeping ? [provider.id] : []),
    async wrap(dataKey) {
      keeping ??= keep(made, texts).then(() => onMade?.(provider.id))
      await keeping.catch((error: unknown) => {
        keeping = undefined
        throw error
      })
      return provider.wrap(dataKey)
    },
    async unwrap(wrapped, id) {
      if (!keeping) throw new UnknownKeyError(id, [])
      return provider.unwrap(wrapped, id)
    },
  }

  async function keep(key: Buffer, found: readonly string[]): Promise<void> {
    for (const [i, one] of paths.entries()) if (!readKey(found[i] ?? '')) await replaceFile(one, textOf(key))
  }
}

/** With its id, by which a harmed one is told from a whole one. */
const textOf = (key: Buffer): string => `${key.toString('base64')} ${keyId(key)}\n`

function readKey(text: string): Buffer | undefined {
  const [encoded = '', id] = text.trim().split(' ')
  const key = parseKey(encoded)
  return key && keyId(key) === id ? key : undefined
}

function absentAsEmpty(error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return ''
  throw error
}
