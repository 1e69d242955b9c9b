import type { View } from '#path'
import { ExtractionFault } from './fault.ts'
import { countsOrRefers, SensitiveNames } from './sensitive-key.ts'
import { SHORTEST_TEXT, TextCleaner } from './sensitive-text.ts'
import { REDACTED_TEXT } from './text-value.ts'

/** What stands where a value was secret. */
export const REDACTED = Object.freeze({ redacted: true, reason: 'sensitive-key' })

/** Lists and objects in each other, and values of one object, at most. */
const MAX_DEPTH = 100
const MAX_VALUES = 500_000
/** Texts repeat themselves, in an object and from one to the next: so many of at most that length are remembered. */
const REMEMBERED = 4096
const MAX_REMEMBERED_TEXT = 128

export interface ScrubOptions {
  /** names that are secret besides the built-in ones */
  readonly scrubKeys?: readonly string[]
  /** `data` and `stringData` of the object itself are given, where it is a Secret */
  readonly showsSecretData?: boolean
}
/** A key of a map of that length may be a token; shorter ones hold what a text of two parts can. */
const LONG_KEY = 20
/** Members of a JSON Web Key that are not public. */
const PRIVATE_IN_JWK = /^(?:d|p|q|dp|dq|qi|k)$/

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
/** Of the annotations of a Secret those that name something; tools keep whole copies of it in others, packed and under names of their own. */
const MAX_PLAIN_ANNOTATION = 256
const PLAIN_ANNOTATION = /^(?:[\w+=]{0,32}(?:[\s./:,;@*()-]|$))*$/

type Fields = Readonly<Record<string, unknown>>
const NOTHING: Fields = {}

/**
 * Decides of every value of an object whether it is secret: by its key, by the name of the entry it stands in, by what it is.
 * Paths and expressions are walked over what this shows, so that their spelling cannot matter. One object at a time: `enter` it first.
 */
export class Scrubber {
  readonly #names: SensitiveNames
  readonly #cleaner: TextCleaner
  readonly #showsSecretData: boolean
  /** texts and what is left of them: one for each place, the last that came */
  readonly #texts: string[] = new Array<string>(REMEMBERED).fill('')
  readonly #clean: string[] = new Array<string>(REMEMBERED).fill('')
  /** maps whose values are shown by consent */
  readonly #open = new Set<unknown>()
  /** items of lists of Secrets, which need not say their kind */
  readonly #items = new Set<unknown>()
  #isSecret = false
  /** annotations of a Secret, where nobody consented, and of Secrets inside of other objects */
  readonly #hidden = new Set<unknown>()
  #isHelm = false
  #root: unknown
  #values = 0
  #nested = 0

  constructor({ scrubKeys, showsSecretData = false }: ScrubOptions = {}) {
    this.#names = new SensitiveNames(scrubKeys)
    this.#cleaner = new TextCleaner(scrubKeys)
    this.#showsSecretData = showsSecretData
  }

  /** Begins an object. @param isSecret it is a Secret, whatever it says itself: items of lists do not say their kind */
  enter(root: unknown, isSecret: boolean): void {
    const { kind, data, stringData, metadata } = isFields(root) ? root : NOTHING
    this.#root = root
    this.#isSecret = isSecret || kind === 'Secret'
    // Helm can keep its releases in ConfigMaps, with all values that were given.
    const labels = isFields(metadata) ? metadata.labels : undefined
    this.#isHelm = !this.#isSecret && isFields(labels) && labels.owner === 'helm'
    this.#hideAnnotations(root, !this.#showsSecretData)
    this.#values = 0
    if (this.#open.size > 0) this.#open.clear()
    if (this.#items.size > 0) this.#items.clear()
    if (this.#isSecret && this.#showsSecretData) for (const map of [data, stringData]) this.show(map)
  }

  /** Another shape of the same object comes, of which parts were left out: what it is has been decided. @param isWhole consent for single values does not count */
  continueWith(root: unknown, isWhole = false): void {
    this.#root = root
    this.#hideAnnotations(root, isWhole || !this.#showsSecretData)
  }

  #hideAnnotations(root: unknown, isHidden: boolean): void {
    if (this.#hidden.size > 0) this.#hidden.clear()
    if (this.#isSecret && isHidden && isFields(root)) this.#hide(root.metadata)
  }

  #hide(metadata: unknown): void {
    if (isFields(metadata) && metadata.annotations !== undefined) this.#hidden.add(metadata.annotations)
  }

  /** Shows what stands in this map, and in maps below it, by consent. */
  show(map: unknown): void {
    if (typeof map !== 'object' || map === null || this.#open.has(map)) return
    this.#open.add(map)
    for (const value of Object.values(map)) this.show(value)
  }

  /** Whether a value that goes by this name is secret. */
  isSensitive(name: string, value: unknown): boolean {
    const sensitivity = this.#names.of(name)
    return sensitivity === 'one' || (sensitivity === 'several' && !countsOrRefers(value))
  }

  /** What is shown of a value; undefined where it is as if nothing were there. */
  readonly view: View = (parent, key, value) => {
    if (value === null || value === undefined) return value
    if (typeof key === 'number') return typeof value === 'string' ? this.#element(parent, key, value) : value
    const map = parent as Fields
    if (key === 'data' || key === 'stringData') {
      if (this.#holdsSecrets(map)) return this.#open.has(value) ? value : undefined
    }
    if (key === 'items' && map.kind === 'SecretList')
      for (const item of Object.values(value as Fields)) this.#items.add(item)
    if (key === 'metadata' && map !== this.#root && this.#holdsSecrets(map)) this.#hide(value)
    if (this.#hidden.size > 0 && this.#hidden.has(parent)) {
      // It is the Secret once more, whatever its text looks like.
      if (key === LAST_APPLIED) return undefined
      if (!isPlainAnnotation(value)) return REDACTED_TEXT
    }
    if (this.#open.size > 0 && this.#open.has(parent)) return value
    if (value !== '' && this.#isSecretEntry(map, key, value)) return REDACTED
    return typeof value === 'string' ? this.#text(value) : value
  }

  /** A value that `view` showed, with all that is in it; what holds no secret is returned itself. */
  deep(value: unknown): unknown {
    return this.#deep(value, 0)
  }

  /** A text or value that was made, such as the result of an expression. */
  made(value: unknown): unknown {
    return this.deep(typeof value === 'string' ? this.#text(value) : value)
  }

  #holdsSecrets(map: Fields): boolean {
    if (map === this.#root) return this.#isSecret
    return map.kind === 'Secret' || (this.#items.size > 0 && this.#items.has(map))
  }

  #isSecretEntry(map: Fields, key: string, value: unknown): boolean {
    if (this.isSensitive(key, value)) return true
    if (key === 'release') return this.#isHelm && map === (this.#root as Fields).data ? true : isPackedRelease(value)
    if (isEntryValue(key)) return this.#isNamedSecret(map.name) || this.#isNamedSecret(map.key)
    if (key === 'valueFrom') return isFields(value) && Object.hasOwn(value, 'secretKeyRef')
    if (key === 'tls') return isFields(value) && Object.hasOwn(value, 'key')
    return key.length < 3 && typeof map.kty === 'string' && PRIVATE_IN_JWK.test(key)
  }

  #isNamedSecret(name: unknown): boolean {
    return typeof name === 'string' && (this.#names.has(name) || /^cookie$/i.test(name))
  }

  /** Of a command line: what follows a flag such as --password. */
  #element(list: object, index: number, value: string): string {
    const before: unknown = (list as readonly unknown[])[index - 1]
    const isValue = typeof before === 'string' && before.startsWith('-') && !value.startsWith('--')
    return isValue && this.#names.has(before) ? REDACTED_TEXT : this.#text(value)
  }

  #text(text: string): string {
    if (text.length < SHORTEST_TEXT) return text
    if (text.length > MAX_REMEMBERED_TEXT) return this.#cleaner.clean(text, this.#document, this.#nested)
    const at = placeOf(text)
    if (this.#texts[at] === text) return this.#clean[at] ?? text
    const clean = this.#cleaner.clean(text, this.#document, this.#nested)
    this.#texts[at] = text
    this.#clean[at] = clean
    return clean
  }

  readonly #document = (value: object): unknown => {
    this.#nested++
    try {
      return this.#deep(value, 0)
    } finally {
      this.#nested--
    }
  }

  #deep(value: unknown, depth: number): unknown {
    if (typeof value !== 'object' || value === null) return scalar(value)
    if (value === REDACTED) return value
    if (depth >= MAX_DEPTH) throw new ExtractionFault(`the value is nested more than ${MAX_DEPTH} deep`)
    return Array.isArray(value) ? this.#list(value, depth) : this.#map(value as Fields, depth)
  }

  #list(list: readonly unknown[], depth: number): unknown {
    this.#count(list.length)
    let copy: unknown[] | undefined
    for (let i = 0; i < list.length; i++) {
      const before = list[i]
      const after = this.#deep(this.view(list, i, before), depth + 1) ?? null
      if (after === before) continue
      copy ??= [...list]
      copy[i] = after
    }
    return copy ?? list
  }

  #map(map: Fields, depth: number): unknown {
    let changes: Map<string, unknown> | undefined
    let names: Map<string, string> | undefined
    let count = 0
    for (const key in map) {
      count++
      if (key.length >= LONG_KEY || /[@=:\s]/.test(key)) {
        const name = this.#text(key)
        if (name !== key) names = (names ?? new Map<string, string>()).set(key, name)
      }
      const before = map[key]
      const after = this.#deep(this.view(map, key, before), depth + 1)
      if (after === before) continue
      changes ??= new Map()
      changes.set(key, after)
    }
    this.#count(count)
    if (!changes && !names) return map
    const entries = Object.entries(map).map(
      ([key, value]) => [names?.get(key) ?? key, changes?.has(key) ? changes.get(key) : value] as const,
    )
    // Not by assignment: a key may be called __proto__.
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined))
  }

  #count(values: number): void {
    this.#values += values
    if (this.#values > MAX_VALUES) throw new ExtractionFault(`the value holds more than ${MAX_VALUES} values`)
  }
}

/** Where entries of lists have what goes by their name. */
const isEntryValue = (key: string): boolean =>
  key === 'value' || ((key[0] === 'd' || key[0] === 'v' || key[0] === 's') && ENTRY_VALUE.test(key))
const ENTRY_VALUE = /^(?:values|(?:default|string)_?values?|defaults?)$/i

/** What Helm keeps, packed once or twice; it says so by its label, but a copy need not. */
const isPackedRelease = (value: unknown): boolean => typeof value === 'string' && /^(?:H4sI|SDRzS)/.test(value)

function isPlainAnnotation(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MAX_PLAIN_ANNOTATION && PLAIN_ANNOTATION.test(value)
}

/** Where a text is remembered: by its length and some of its letters. */
function placeOf(text: string): number {
  const { length } = text
  const letters = (text.charCodeAt(0) << 10) ^ (text.charCodeAt(length - 1) << 5) ^ (text.charCodeAt(length - 2) << 2)
  return (letters ^ (text.charCodeAt(length >> 1) << 7) ^ length) & (REMEMBERED - 1)
}

/** @throws ExtractionFault for what JSON cannot express */
function scalar(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new ExtractionFault(`the value is ${value}, which JSON cannot express`)
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol')
    throw new ExtractionFault(`the value is a ${typeof value}, which JSON cannot express`)
  return value
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
