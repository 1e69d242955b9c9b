import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '#runtime'
import { AuthorityUnusableError } from './errors.ts'

/** A text as it is kept, with what tells it from an earlier one. */
export interface Kept {
  readonly text: string
  readonly version: string
}

/** Where a CA is kept: a folder here, a Secret elsewhere. What is written is whole or not there, and survives the end of the machine. */
export interface AuthorityStore {
  /**
   * @returns undefined where nothing was ever kept
   * @throws AuthorityUnusableError where something is there that is harmed; the error of the system where it may not be read
   */
  read(): Promise<Kept | undefined>
  /**
   * @param over the version that is replaced; undefined: nothing was there
   * @returns the new version
   * @throws AuthorityChangedError where another process wrote meanwhile
   */
  write(text: string, over: string | undefined): Promise<string>
  /**
   * Writes over what is harmed or gone, whatever is there.
   * @returns the new version
   */
  mend(text: string): Promise<string>
}

/** Protects what is written down: the CA's private key. Nothing but `open` of the same sealer reads what `seal` made. */
export interface Sealer {
  seal(plain: Uint8Array): Promise<Uint8Array>
  /** @throws where it was sealed by another key, or altered */
  open(sealed: Uint8Array): Promise<Uint8Array>
  /** Whether it is sealed by the key in force; what a former one sealed is sealed anew when it is opened. Absent: there is one key. */
  isCurrent?(sealed: Uint8Array): boolean
}

/** Kept twice: a single harmed file must not end every membership. */
const COPIES = ['authority.json', 'authority.copy.json']

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * Two files of mode 0600 in a folder that one process has at a time.
 * @param onHarmed told of a copy that was harmed or gone, and is made anew from the other
 */
export function folderStore(directory: string, onHarmed?: (path: string) => void): AuthorityStore {
  const paths = COPIES.map((name) => join(directory, name))
  const write = async (text: string): Promise<string> => {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    for (const path of paths) await replaceFile(path, `${text}\n${digest(text)}\n`)
    return digest(text)
  }
  return {
    async read() {
      const read = await Promise.all(paths.map((path) => textOf(path)))
      const texts = read.map((one) => (one instanceof Error ? '' : one))
      const whole = texts
        .map((text) => (text === undefined ? undefined : checked(text)))
        .find((text) => text !== undefined)
      if (whole !== undefined) {
        for (const [at, path] of paths.entries()) {
          if (checked(texts[at] ?? '') !== undefined) continue
          onHarmed?.(path)
          await replaceFile(path, `${whole}\n${digest(whole)}\n`)
        }
        return { text: whole, version: digest(whole) }
      }
      // Of a file that this user may not read nothing is known: it is no damage.
      for (const one of read) if (one instanceof Error) throw one
      if (texts.every((text) => text === undefined)) return undefined
      throw new AuthorityUnusableError(
        `the hub's CA in ${directory} is damaged: restore the folder from a backup, or move it away to begin anew, after which every member has to join again`,
      )
    },
    write,
    mend: write,
  }
}

/** @returns undefined where there is no such file */
async function textOf(path: string): Promise<string | Error | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : (error as Error)
  }
}

function checked(file: string): string | undefined {
  const [text = '', sum] = file.split('\n')
  return sum === digest(text) ? text : undefined
}
