import {
  ALLOW_FULL_RESOURCE_EXPORT,
  ALLOW_SECRET_EXTRACTION,
  type KollectAttribute,
  type KollectProfileSpec,
} from '#kinds'
import { Expressions } from './cel/expression.ts'
import { BudgetFault, ExtractionFault } from './fault.ts'
import { compileHelmPath, HELM_PREFIX } from './helm-release.ts'
import { compileJsonPath, type Read } from './json-path.ts'
import { compilePrune, faultOfPointer } from './prune.ts'
import type { ObjectRow } from './row.ts'
import { isFields, REDACTED, Scrubber } from './scrub.ts'

/** A KollectProfile, as far as it says how rows are made. */
export interface Profile {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> | undefined } | undefined
  readonly spec: ProfileSpec
}

export type ProfileSpec = Pick<KollectProfileSpec, 'targetGVK' | 'attributes' | 'export'>

/** Makes rows of objects. Never throws; objects do not influence each other. */
export interface Extractor {
  /** what is worth knowing although it is no fault, with the path of the field */
  readonly warnings: readonly ProfileFault[]
  row(object: unknown): Extracted
}

export type Extracted =
  | { readonly row: ObjectRow; readonly failure?: never }
  | { readonly failure: Failure; readonly row?: never }

/** Why an object has no row. The sentence holds no value of the object but its names. */
export interface Failure {
  /** the attribute that failed first; absent: the object itself */
  readonly attribute?: string
  readonly message: string
  /** it took too long: another time it may not */
  readonly isLate?: true
}

/** A mistake in a profile, with the path of its field. */
export interface ProfileFault {
  readonly path: string
  readonly message: string
}

const CEL_PREFIX = 'cel:'

/**
 * Compiles a profile once; the extractor then takes any number of objects, one at a time.
 * @param options.scrubKeys names that this process holds secret besides those of the profile
 * @returns every mistake at once
 */
export function compileProfile(
  profile: Profile,
  options: { readonly scrubKeys?: readonly string[] } = {},
):
  | { readonly extractor: Extractor; readonly faults?: never }
  | { readonly faults: readonly ProfileFault[]; readonly extractor?: never } {
  const compiler = new ProfileCompiler(profile, options.scrubKeys ?? [])
  const extractor = compiler.compile()
  return compiler.faults.length > 0 ? { faults: compiler.faults } : { extractor }
}

/** One attribute: gives its value, or undefined where nothing is there. */
interface Attribute {
  readonly name: string
  readonly isOptional: boolean
  readonly isList: boolean
  readonly isSecret: (value: unknown) => boolean
  readonly value: (object: ObjectInHand) => unknown
}

/** An object, and what is made of it only once. */
interface ObjectInHand {
  readonly object: Readonly<Record<string, unknown>>
  expressed?: unknown
}

class ProfileCompiler {
  readonly faults: ProfileFault[] = []
  readonly #warnings: ProfileFault[] = []
  readonly #profile: ProfileSpec
  readonly #scrubber: Scrubber
  readonly #expressions = new Expressions()
  readonly #isSecret: boolean
  readonly #showsData: boolean
  readonly #showsWhole: boolean

  constructor({ metadata, spec }: Profile, scrubKeys: readonly string[]) {
    const { group = '', kind } = spec.targetGVK
    this.#profile = spec
    this.#isSecret = group === '' && kind === 'Secret'
    this.#showsData = metadata?.annotations?.[ALLOW_SECRET_EXTRACTION] === 'true'
    this.#showsWhole = metadata?.annotations?.[ALLOW_FULL_RESOURCE_EXPORT] === 'true'
    this.#scrubber = new Scrubber({
      scrubKeys: [...scrubKeys, ...(spec.export?.prune?.scrubKeys ?? [])],
      showsSecretData: this.#showsData,
    })
  }

  compile(): Extractor {
    const attributes = (this.#profile.attributes ?? []).map((attribute, i) =>
      this.#attribute(attribute, `spec.attributes[${i}].path`),
    )
    const embedded = this.#profile.export?.mode === 'Resource' ? [this.#embedded()] : []
    const { group = '', version, kind } = this.#profile.targetGVK
    const identity = { ...(group !== '' && { group }), version, kind }
    return new RowMaker([...attributes, ...embedded], this.#scrubber, identity, this.#isSecret, this.#warnings)
  }

  #attribute({ name, path, type, optional = false }: KollectAttribute, at: string): Attribute {
    return {
      name,
      isOptional: optional,
      isList: type === 'list' || type === 'array',
      isSecret: (value) => this.#scrubber.isSensitive(name, value),
      value: path.startsWith(CEL_PREFIX) ? this.#expression(path, at) : this.#path(path, at),
    }
  }

  #expression(path: string, at: string): Attribute['value'] {
    const compiled = this.#expressions.compile(path.slice(CEL_PREFIX.length))
    if (typeof compiled === 'string') {
      this.faults.push({ path: at, message: compiled })
      return () => undefined
    }
    const { view } = this.#scrubber
    const whole = (value: unknown) => this.#scrubber.deep(value)
    return (hand) => {
      hand.expressed ??= this.#expressions.project(hand.object, view, whole)
      return this.#scrubber.made(compiled.evaluate(hand.expressed))
    }
  }

  #path(path: string, at: string): Attribute['value'] {
    const isHelm = path.startsWith(HELM_PREFIX)
    const compiled = isHelm ? compileHelmPath(path, this.#scrubber, this.#showsData) : compileJsonPath(path)
    if (compiled.read === undefined) {
      this.faults.push({ path: at, message: compiled.fault })
      return () => undefined
    }
    if (compiled.warning !== undefined) this.#warnings.push({ path: at, message: compiled.warning })
    if (!isHelm && this.#isSecret && !this.#showsData && ['data', 'stringData'].includes(compiled.keys[0] ?? '')) {
      const message = `the values of Secrets stay in their cluster: annotate the profile with ${ALLOW_SECRET_EXTRACTION}: "true" if they may leave it`
      this.faults.push({ path: at, message })
    }
    return this.#reader(compiled.read)
  }

  #reader(read: Read): Attribute['value'] {
    const { view } = this.#scrubber
    return ({ object }) => this.#scrubber.deep(read(object, view))
  }

  #embedded(): Attribute {
    const { as = 'resource', ...embed } = this.#profile.export ?? {}
    if (this.#isSecret && !this.#showsWhole) {
      const message = `Secrets are not exported whole: annotate the profile with ${ALLOW_FULL_RESOURCE_EXPORT}: "true" to export them without their values`
      this.faults.push({ path: 'spec.export.mode', message })
    }
    for (const [i, pointer] of (embed.prune?.jsonPointers ?? []).entries()) {
      const message = faultOfPointer(pointer)
      if (message !== undefined) this.faults.push({ path: `spec.export.prune.jsonPointers[${i}]`, message })
    }
    const prune = compilePrune(embed)
    const { group = '', version, kind } = this.#profile.targetGVK
    // Items of a list do not say what they are.
    const typed = { apiVersion: group === '' ? version : `${group}/${version}`, kind }
    const value = ({ object }: ObjectInHand) => {
      const left = prune.known({ ...typed, ...object })
      // Values of Secrets are not exported with the whole, whatever is consented to for single ones.
      const safe = this.#isSecret ? { ...left, data: undefined, stringData: undefined } : left
      this.#scrubber.continueWith(safe, true)
      try {
        return prune.named(this.#scrubber.deep(safe) as Readonly<Record<string, unknown>>)
      } finally {
        this.#scrubber.continueWith(object)
      }
    }
    return { name: as, isOptional: false, isList: false, isSecret: () => false, value }
  }
}

/** All attributes of one object, ms: others wait meanwhile. */
const MAX_OBJECT_MS = 500

class RowMaker implements Extractor {
  readonly warnings: readonly ProfileFault[]
  readonly #attributes: readonly Attribute[]
  readonly #scrubber: Scrubber
  readonly #identity: Pick<ObjectRow, 'group' | 'version' | 'kind'>
  readonly #isSecret: boolean

  constructor(
    attributes: readonly Attribute[],
    scrubber: Scrubber,
    identity: Pick<ObjectRow, 'group' | 'version' | 'kind'>,
    isSecret: boolean,
    warnings: readonly ProfileFault[],
  ) {
    this.#attributes = attributes
    this.#scrubber = scrubber
    this.#identity = identity
    this.#isSecret = isSecret
    this.warnings = warnings
  }

  row(object: unknown): Extracted {
    if (!isFields(object) || !isFields(object.metadata))
      return { failure: { message: 'it is no object: it has no metadata' } }
    const { namespace = '', name, uid } = object.metadata
    if (typeof name !== 'string' || name === '') return { failure: { message: 'it has no metadata.name' } }
    if (typeof uid !== 'string' || uid === '')
      return { failure: { message: 'it has no metadata.uid: it was not read from a cluster' } }
    this.#scrubber.enter(object, this.#isSecret)
    const hand: ObjectInHand = { object }
    const attributes: Record<string, unknown> = {}
    const began = performance.now()
    for (const [i, attribute] of this.#attributes.entries()) {
      // One alone is bounded by itself.
      if (i > 0 && performance.now() - began > MAX_OBJECT_MS)
        return {
          failure: {
            message: `its attributes take more than ${MAX_OBJECT_MS} ms together: take fewer, or cheaper ones; it is looked at again within ten minutes`,
            isLate: true,
          },
        }
      const fault = this.#put(attribute, hand, attributes)
      if (fault) return { failure: { attribute: attribute.name, ...fault } }
    }
    return { row: { namespace: String(namespace), name, ...this.#identity, uid, attributes } }
  }

  /** @returns why the object fails */
  #put(
    { name, isOptional, isList, isSecret, value: read }: Attribute,
    hand: ObjectInHand,
    into: Record<string, unknown>,
  ): Pick<Failure, 'message' | 'isLate'> | undefined {
    let value: unknown
    try {
      value = read(hand) ?? null
    } catch (error) {
      // A slow moment of the machine must not take a value away.
      if (error instanceof BudgetFault && error.isLate) return { message: error.message, isLate: true }
      if (isOptional) return undefined
      // Other errors are ours or of a library, and may quote what they stumbled over.
      return { message: error instanceof ExtractionFault ? error.message : 'its value cannot be read' }
    }
    if (value === null && isOptional) return undefined
    const shown = value === null ? null : isSecret(value) ? REDACTED : isList && !Array.isArray(value) ? [value] : value
    if (name === '__proto__') Object.defineProperty(into, name, { value: shown, enumerable: true, configurable: true })
    else into[name] = shown
    return undefined
  }
}
