import type { Value } from './set-contents.ts'

/** Where the documents of a replicated set lie. */
export interface SetLayout {
  /** what they are, for sentences: `access policies` */
  readonly what: string
  /** key of the set that lists their names */
  readonly members: string
  /** keys of ours: the number of the generation, and its seal (`seal.ts`) */
  readonly generation: string
  readonly seal: string
  /** where changes are announced */
  readonly channel: string
  readonly documentKey: (name: string) => string
  /** the field with the document, where its key is a hash */
  readonly field?: string
  /** reads the document called `name`, in Lua, such as `redis.pcall('GET', name)` */
  readonly script: string
}

/** The text of a document at its key. */
export const textAt = (value: Value | undefined, field = ''): string => String(value?.entries.get(field) ?? '')
