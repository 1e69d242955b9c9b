import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { FleetError } from '#model'
import { type StructuralSchema, toStructural } from './crd-schema.ts'

/** One column of `kubectl get`. Priority 0 is always shown, above only with `-o wide`. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly description?: string
  readonly priority?: number
}

/** What is written once about a kind; everything else follows from it. */
export interface KindDefinition<Spec extends TSchema, Status extends TSchema> {
  readonly group: string
  /** the version objects are stored in, and the one that the code reads */
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  /** groups that `kubectl get` lists it with; default: clusterpulse */
  readonly categories?: readonly string[]
  /** default Namespaced */
  readonly scope?: Scope
  readonly description: string
  readonly columns: readonly Column[]
  readonly spec: Spec
  /** an object without a spec is one with an empty spec */
  readonly specOptional?: boolean
  /** fields of the spec that may be absent only where another field has this value */
  readonly requiredUnless?: RequiredUnless
  /** what a schema cannot say: called for objects that fit it */
  readonly rules?: (object: KindObject<Static<Spec>, Static<Status>>) => readonly Fault[]
  /** absent: objects of the kind have no status */
  readonly status?: Status
  /** versions that are served beside the stored one, newest first */
  readonly others?: readonly OtherVersion[]
  /** the shortest useful object, for the reference page */
  readonly example: Readonly<Record<string, unknown>>
}

/** Whether objects live in namespaces, or in the cluster as a whole. */
export type Scope = 'Namespaced' | 'Cluster'

/** A version of a kind beside the stored one. */
export interface OtherVersion {
  readonly version: string
  readonly columns: readonly Column[]
  readonly spec: TSchema
  readonly status?: TSchema
  /** absent: the versions differ by name only, so that any API server can turn one into the other */
  readonly conversion?: Conversion
}

/** Turns objects of a version into the stored one, and back. Pure; nothing is lost on the way there and back. */
export interface Conversion {
  toStored(object: Readonly<Record<string, unknown>>): Record<string, unknown>
  fromStored(object: Readonly<Record<string, unknown>>): Record<string, unknown>
}

/** A conversion, and between which versions of what. */
export interface VersionConverter extends Conversion {
  readonly group: string
  readonly plural: string
  readonly kind: string
  readonly version: string
}

/** A rule over fields: those of `required` must be there, unless `field` is `value`. */
export interface RequiredUnless {
  readonly field: string
  readonly value: string
  readonly required: readonly string[]
}

/** An object of a kind as the API server returns it. */
export interface KindObject<Spec, Status> {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
  }
  readonly spec: Spec
  readonly status?: Status
}

/** One thing wrong with an object: `path` as people write it (`spec.endpoint`), `message` without the path. */
export interface Fault {
  readonly path: string
  readonly message: string
}

/** An object does not fit its kind; `faults` names every place. */
export class InvalidObjectError extends FleetError {
  override readonly name = 'InvalidObjectError'
  readonly code = 'invalid_object'
  readonly retryable = false
  readonly faults: readonly Fault[]

  constructor(kind: string, faults: readonly Fault[]) {
    super(`this ${kind} cannot be used: ${faults.map(({ path, message }) => `${path} ${message}`).join('; ')}`)
    this.faults = faults
  }
}

/** A kind of hub object: its schema, and what follows from it. */
export interface Kind<Spec, Status> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  /** `group/version` */
  readonly apiVersion: string
  readonly definition: KindDefinition<TSchema, TSchema>
  /** The conversions of its other versions, for an API that runs them. */
  readonly converters: readonly VersionConverter[]
  /** Everything wrong with the spec of an object; [] when it can be used. */
  faults(object: unknown): readonly Fault[]
  /**
   * The object, typed, with the schema's defaults filled in.
   * @throws InvalidObjectError naming every fault
   */
  parse(object: unknown): KindObject<Spec, Status>
  /**
   * The CustomResourceDefinition as plain JSON.
   * @param options converts: the API server it is for runs `converters`; without, versions that need one are left out, as a
   *   server that does not convert would lose fields
   */
  crd(options?: { readonly converts?: boolean }): CustomResourceDefinition
}

/** apiextensions.k8s.io/v1, as far as we write it. */
export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1'
  readonly kind: 'CustomResourceDefinition'
  readonly metadata: { readonly name: string }
  readonly spec: Readonly<Record<string, unknown>>
}

/** Makes a kind from its definition. The schema is compiled when it is first asked, once: most processes ask few kinds. */
export function defineKind<Spec extends TSchema, Status extends TSchema>(
  definition: KindDefinition<Spec, Status>,
): Kind<Static<Spec>, Static<Status>> {
  const apiVersion = `${definition.group}/${definition.version}`
  const compile = () => Compile(definition.spec)
  let compiled: ReturnType<typeof compile> | undefined
  const compiledSpec = () => {
    compiled ??= compile()
    return compiled
  }

  const specOf = (object: unknown): unknown =>
    isRecord(object) ? (object.spec ?? (definition.specOptional ? {} : undefined)) : undefined
  const faults = (object: unknown): readonly Fault[] => {
    const value = specOf(object)
    if (value === undefined) return [{ path: 'spec', message: 'is missing' }]
    const missing = missingIn(value, definition.requiredUnless)
    const spec = compiledSpec()
    if (!spec.Check(value)) return [...describe(spec.Errors(value), definition.spec), ...missing]
    if (missing.length > 0 || !definition.rules) return missing
    return definition.rules({ ...(object as KindObject<Static<Spec>, Static<Status>>), spec: value as Static<Spec> })
  }
  return {
    group: definition.group,
    version: definition.version,
    kind: definition.kind,
    plural: definition.plural,
    apiVersion,
    definition: definition as unknown as KindDefinition<TSchema, TSchema>, // its rules take its own objects only
    converters: (definition.others ?? []).flatMap(({ version, conversion }) =>
      conversion
        ? [{ group: definition.group, plural: definition.plural, kind: definition.kind, version, ...conversion }]
        : [],
    ),
    faults,
    parse(object) {
      const found = faults(object)
      if (found.length > 0) throw new InvalidObjectError(definition.kind, found)
      const whole = object as KindObject<Static<Spec>, Static<Status>>
      // The server fills defaults in too; an object that was stored before the default existed has none.
      return { ...whole, spec: compiledSpec().Default(structuredClone(specOf(whole))) as Static<Spec> }
    },
    crd: ({ converts = false } = {}) => crdOf(definition, converts),
  }
}

function missingIn(value: unknown, rule: RequiredUnless | undefined): Fault[] {
  if (!rule || !isRecord(value) || value[rule.field] === rule.value) return []
  return rule.required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ path: `spec.${name}`, message: 'is missing' }))
}

/** The same rule as an API server may hold it: validations only, as structural schemas demand of branches. */
function branchesOf({ field, value, required }: RequiredUnless): Pick<StructuralSchema, 'anyOf'> {
  return {
    anyOf: [{ required: [...required] }, { required: [field], properties: { [field]: { enum: [value] } } }],
  }
}

type Parts = Pick<KindDefinition<TSchema, TSchema>, 'version' | 'columns' | 'spec' | 'status'>
type Shape = Omit<KindDefinition<TSchema, TSchema>, 'rules'>

function crdOf(definition: Shape, converts: boolean): CustomResourceDefinition {
  const { group, kind, plural, singular, shortNames, categories = ['clusterpulse'], scope = 'Namespaced' } = definition
  const others = (definition.others ?? []).filter(({ conversion }) => converts || !conversion)
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
        ...(categories.length > 0 && { categories: [...categories] }),
      },
      versions: [
        versionOf(definition, definition, true),
        ...others.map((other) => versionOf(definition, other, false)),
      ],
    },
  }
}

function versionOf(definition: Shape, { version, columns, spec, status }: Parts, storage: boolean): object {
  const { description, requiredUnless, specOptional } = definition
  const schema: StructuralSchema = {
    type: 'object',
    description,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: { ...toStructural(spec, '.spec'), ...(requiredUnless && branchesOf(requiredUnless)) },
      ...(status && { status: toStructural(status, '.status') }),
    },
    ...(specOptional ? {} : { required: ['spec'] }),
  }
  return {
    name: version,
    served: true,
    storage,
    ...(status && { subresources: { status: {} } }),
    ...(columns.length > 0 && { additionalPrinterColumns: columns.map((column) => ({ ...column })) }),
    schema: { openAPIV3Schema: schema },
  }
}

interface SchemaError {
  readonly keyword: string
  readonly instancePath: string
  readonly schemaPath: string
  readonly message: string
  readonly params: object
}

/** Turns the validator's errors into one sentence per place, in the order of the places. */
function describe(errors: readonly SchemaError[], schema: TSchema): Fault[] {
  const byPath = new Map<string, string>()
  for (const error of errors) {
    if (error.keyword === 'const') continue // part of a union, whose own error follows
    const path = pathOf(error.instancePath)
    if (error.keyword === 'required') {
      const { requiredProperties } = error.params as { requiredProperties: readonly string[] }
      for (const name of requiredProperties) byPath.set(`${path}.${name}`, 'is missing')
    } else if (!byPath.has(path)) {
      byPath.set(path, sentence(error, at(schema, error.schemaPath)))
    }
  }
  return [...byPath].map(([path, message]) => ({ path, message }))
}

const pathOf = (pointer: string) =>
  `spec${pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? `[${part}]` : `.${part}`))
    .join('')}`

function at(schema: TSchema, pointer: string): Readonly<Record<string, unknown>> {
  let node: unknown = schema
  for (const part of pointer.split('/').slice(1)) node = isRecord(node) ? node[part] : undefined
  return isRecord(node) ? node : {}
}

function sentence(error: SchemaError, schema: Readonly<Record<string, unknown>>): string {
  if (typeof schema.faultMessage === 'string' && error.keyword !== 'type') return schema.faultMessage
  if (error.keyword === 'anyOf' && Array.isArray(schema.anyOf))
    return oneOf(schema.anyOf.map((branch) => (isRecord(branch) ? branch.const : undefined)))
  if (error.keyword === 'enum' && Array.isArray(schema.enum)) return oneOf(schema.enum)
  return error.message
}

const oneOf = (values: readonly unknown[]): string =>
  `must be one of ${values.map((value) => JSON.stringify(value)).join(', ')}`

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
