import { type Environment, Optional } from '@marcbachmann/cel-js'
import { define } from './define.ts'
import { bounded } from './texts.ts'

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

/** A named format: what is wrong with a text; nothing where it fits. */
class Format {
  readonly #name: string
  readonly faults: (text: string) => readonly string[]

  constructor(name: string, faults: (text: string) => readonly string[]) {
    this.#name = name
    this.faults = faults
  }

  toJSON(): string {
    return this.#name
  }
}

const fits = (isFit: boolean, rule: string): readonly string[] => (isFit ? [] : [rule])
const label = (text: string) =>
  fits(
    text.length <= 63 && LABEL.test(text),
    'must be a DNS label: at most 63 of a-z, 0-9 and "-", beginning and ending with a letter or digit',
  )
const subdomain = (text: string) =>
  fits(
    text.length <= 253 && SUBDOMAIN.test(text),
    'must be a DNS name: labels of a-z, 0-9 and "-" with dots between, at most 253 letters',
  )
const label1035 = (text: string) =>
  fits(
    text.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(text),
    'must be a DNS label that begins with a letter, at most 63 letters',
  )
/** A name that is a prefix of generated ones may end with a dash. */
const prefix = (rule: (text: string) => readonly string[]) => (text: string) => rule(text.replace(/-$/, 'a'))

function qualifiedName(text: string): readonly string[] {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) return ['must be a name with at most one prefix before "/"']
  const before = parts.length === 2 ? subdomain(parts[0] ?? '') : []
  return [
    ...before,
    ...fits(
      name.length <= 63 && QUALIFIED.test(name),
      'must be a name of at most 63 letters, digits, "-", "_" and "."',
    ),
  ]
}

const formats: Readonly<Record<string, (text: string) => readonly string[]>> = {
  dns1123Label: label,
  dns1123Subdomain: subdomain,
  dns1035Label: label1035,
  dns1123LabelPrefix: prefix(label),
  dns1123SubdomainPrefix: prefix(subdomain),
  dns1035LabelPrefix: prefix(label1035),
  qualifiedName,
  labelValue: (text) =>
    fits(
      text === '' || (text.length <= 63 && QUALIFIED.test(text)),
      'must be empty or at most 63 letters, digits, "-", "_" and "."',
    ),
  uri: (text) => fits(URL.canParse(text) || /^\/\S*$/.test(text), 'must be an address'),
  uuid: (text) => fits(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text), 'must be a UUID'),
  byte: (text) => fits(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text), 'must be base64'),
  date: (text) =>
    fits(/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)), 'must be a date, such as 2026-01-31'),
  datetime: (text) =>
    fits(
      /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}/.test(text) && !Number.isNaN(Date.parse(text)),
      'must be a time of RFC 3339',
    ),
}

class FormatNamespace {}

/** @see Kubernetes API reference, "CEL", format library; and `format` of CEL's own texts */
export function registerFormats(cel: Environment): void {
  cel.registerType('kubernetes.NamedFormat', Format)
  cel.registerType('FormatNamespace', FormatNamespace)
  cel.registerConstant('format', 'FormatNamespace', new FormatNamespace())
  for (const [name, faults] of Object.entries(formats)) {
    const made = new Format(name, faults)
    define(cel, `FormatNamespace.${name}(): kubernetes.NamedFormat`, () => made)
  }
  define(cel, 'FormatNamespace.named(string): optional<kubernetes.NamedFormat>', (_: unknown, name: string) =>
    optional(Object.hasOwn(formats, name) ? new Format(name, formats[name] ?? label) : undefined),
  )
  define(cel, 'kubernetes.NamedFormat.validate(string): optional<list<string>>', (format: Format, text: string) => {
    const faults = format.faults(text)
    return optional(faults.length === 0 ? undefined : faults)
  })
  define(cel, 'string.format(list): string', formatted)
}

const optional = (value: unknown): unknown => (value === undefined ? Optional.none() : Optional.of(value))

/** %s, %d, %f with a precision, %e, %x, %X, %o, %b and %%. @throws for any other, and where the values do not fit */
function formatted(pattern: string, values: readonly unknown[]): string {
  let next = 0
  const text = pattern.replace(/%(?:\.(\d{1,2}))?(.|$)/gs, (_, precision: string | undefined, verb: string) => {
    if (verb === '%') return '%'
    if (next >= values.length) throw new Error('format(): there are fewer values than places')
    return written(values[next++], verb, Number(precision ?? 6))
  })
  bounded(text.length)
  return text
}

function written(value: unknown, verb: string, precision: number): string {
  if (verb === 's') return textOf(value)
  const isNumber = typeof value === 'bigint' || typeof value === 'number'
  if (verb === 'd' && typeof value === 'bigint') return String(value)
  if (verb === 'f' && isNumber) return Number(value).toFixed(precision)
  if (verb === 'e' && isNumber)
    return Number(value)
      .toExponential(precision)
      .replace(/e([+-])(\d)$/, 'e$10$2')
  const radix = { x: 16, X: 16, o: 8, b: 2 }[verb]
  if (radix !== undefined && typeof value === 'bigint')
    return verb === 'X' ? value.toString(16).toUpperCase() : value.toString(radix)
  if ((verb === 'x' || verb === 'X') && typeof value === 'string') return Buffer.from(value).toString('hex')
  throw new Error(`format(): %${verb} does not fit its value`)
}

function textOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`
  if (value instanceof Date) return value.toISOString().replace('.000Z', 'Z')
  if (typeof value !== 'object') return String(value)
  const json: unknown = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : undefined
  if (typeof json === 'string') return json
  // Durations and unsigned numbers.
  if (Object.getPrototypeOf(value) !== Object.prototype) return String(value)
  return `{${Object.entries(value)
    .map(([key, one]) => `${key}: ${textOf(one)}`)
    .join(', ')}}`
}
