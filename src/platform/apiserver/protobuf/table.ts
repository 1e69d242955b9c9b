/**
 * Messages of one package by name. A message is written as its fields, `number name: kind`, with kinds
 * `string`, `{string}` (a map by text), `Container[]`, `meta.ObjectMeta` (of another package), `inline Handler` (a
 * message of its own on the wire, but not in JSON). `!` keeps a zero: JSON shows it, where others are left out.
 */
export type Tables = Readonly<Record<string, string>>

const SCALARS = [
  'string',
  'bool',
  'int32',
  'int64',
  'double',
  'bytes',
  'time',
  'microtime',
  'quantity',
  'intOrString',
  'raw',
  'fields',
  'strings',
] as const

/**
 * How one value is written. `raw` is JSON in a RawExtension, `fields` JSON in a FieldsV1, `strings` a message that is
 * nothing but a list of texts.
 */
export type ScalarKind = (typeof SCALARS)[number]

export interface Field {
  readonly name: string
  readonly number: number
  readonly shape: 'one' | 'many' | 'map' | 'inline'
  readonly kind: ScalarKind | Message
  readonly keepsZero: boolean
}

/** A message with its fields by number and by name. */
export interface Message {
  readonly id: string
  /** in descending order of number, as the encoder writes from the end */
  readonly fields: readonly Field[]
  readonly byNumber: ReadonlyMap<number, Field>
  /** the fields of an inline message lead to that message */
  readonly byName: ReadonlyMap<string, Field>
  readonly inline: readonly Field[]
}

const FIELD = /^(\d+) ([A-Za-z0-9]+): (inline )?(\{)?([A-Za-z0-9.]+)(\[\]|\})?(!)?$/

const isScalar = (kind: string): kind is ScalarKind => (SCALARS as readonly string[]).includes(kind)

/** Reads tables when a message is first needed. Every message is read once. */
export class MessageCatalogue {
  readonly #packages: Readonly<Record<string, Tables>>
  readonly #read = new Map<string, Message>()

  constructor(packages: Readonly<Record<string, Tables>>) {
    this.#packages = packages
  }

  has(id: string): boolean {
    const [from = '', name = ''] = id.split('.')
    return this.#packages[from]?.[name] !== undefined
  }

  /** @throws Error for a message no table has: our own tables are wrong then. */
  get(id: string): Message {
    const known = this.#read.get(id)
    if (known) return known
    const [from = '', name = ''] = id.split('.')
    const text = this.#packages[from]?.[name]
    if (text === undefined) throw new Error(`no table for the message ${id}`)
    const fields: Field[] = []
    const byNumber = new Map<number, Field>()
    const byName = new Map<string, Field>()
    const inline: Field[] = []
    const message: Message = { id, fields, byNumber, byName, inline }
    // Known before its fields are read: a message may hold itself.
    this.#read.set(id, message)
    for (const part of text.trim().split(/,\s+/).filter(Boolean)) {
      const field = this.#field(from, part)
      fields.push(field)
      byNumber.set(field.number, field)
      if (field.shape === 'inline') inline.push(field)
      const isInline = field.shape === 'inline' && typeof field.kind === 'object'
      for (const name of isInline ? field.kind.byName.keys() : [field.name]) byName.set(name, field)
    }
    fields.sort((a, b) => b.number - a.number)
    return message
  }

  #field(from: string, text: string): Field {
    const match = FIELD.exec(text.trim())
    if (!match) throw new Error(`not a field of a message: ${text}`)
    const [, number = '', name = '', inline, brace, kind = '', end, bang] = match
    return {
      name,
      number: Number(number),
      shape: inline ? 'inline' : brace ? 'map' : end ? 'many' : 'one',
      kind: isScalar(kind) ? kind : this.get(kind.includes('.') ? kind : `${from}.${kind}`),
      keepsZero: bang !== undefined,
    }
  }
}
