import type { Fault } from './kind.ts'

/** Who asks, as a rule sees it. */
export interface AdmissionUser {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** Any object on its way into the API. */
export interface AdmittedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

export type AdmissionOperation = 'CREATE' | 'UPDATE' | 'DELETE'

/** One write, as admission.k8s.io/v1 describes it. Objects come in the version they are stored in. */
export interface AdmissionRequest {
  readonly operation: AdmissionOperation
  readonly user: AdmissionUser
  /** what shall be; undefined for DELETE */
  readonly object: AdmittedObject | undefined
  /** what is; undefined for CREATE */
  readonly before: AdmittedObject | undefined
  /** '' where the server has yet to make one */
  readonly name: string
  readonly namespace?: string
  readonly subresource?: string
  /** nothing will be written: the rule decides all the same */
  readonly dryRun: boolean
  readonly nowMs: number
}

/** Something the one who asks must be allowed to do, beside the write itself. */
export interface NeededRight {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  /** what it is needed for, as the end of "…: needed to " */
  readonly purpose: string
}

/** An object of the API that a rule looks at. */
export interface ObjectReference {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace?: string
  readonly name: string
}

/** All objects of a resource without namespaces that carry a label. */
export interface ObjectSelection {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly label: { readonly name: string; readonly value: string }
}

/** What a rule makes of an object: the object as it shall be, or what is wrong with it. */
export type Mutation = { readonly object: AdmittedObject } | { readonly faults: readonly Fault[] }

/**
 * A rule on writes of some resources. It asks nobody itself: it says which rights and objects decide, and decides by them, so
 * that the same rule runs inside the embedded API and as a webhook of a Kubernetes API server. Its functions are pure.
 */
export interface AdmissionRule {
  /** as a webhook is called: three labels at least, unique */
  readonly name: string
  readonly group: string
  /** versions it understands; the first is the stored one */
  readonly versions: readonly string[]
  /** plural, or plural/subresource */
  readonly resources: readonly string[]
  readonly operations: readonly AdmissionOperation[]
  /** whether objects of its resources live in namespaces */
  readonly namespaced: boolean
  /** Runs before the schema is checked; its result may be given to it again and stays the same then. */
  readonly mutate?: (request: AdmissionRequest) => Mutation
  /** What the one who asks must be allowed to do. Runs, as `reads` and `faults` do, on what `mutate` made. */
  readonly rights?: (request: AdmissionRequest) => readonly NeededRight[]
  /** Objects that `faults` looks at. */
  readonly reads?: (request: AdmissionRequest) => readonly ObjectReference[]
  /** Objects that `faults` counts. */
  readonly lists?: (request: AdmissionRequest) => readonly ObjectSelection[]
  /** Everything wrong with the write; [] where it may be. `found` has one entry for each of `reads`, `listed` for each of `lists`. */
  readonly faults?: (
    request: AdmissionRequest,
    found: readonly (AdmittedObject | undefined)[],
    listed: readonly (readonly AdmittedObject[])[],
  ) => readonly Fault[]
  /** CEL over the review: a Kubernetes API server asks about these writes alone. The rule says the same by itself. */
  readonly only?: { readonly name: string; readonly expression: string }
  /** where nobody answers a Kubernetes API server, the write goes on; default: it is refused */
  readonly isOptional?: boolean
}

/** Whether a rule is about this write. */
export const concerns = (
  rule: AdmissionRule,
  { group, plural }: { readonly group: string; readonly plural: string },
  { operation, subresource }: Pick<AdmissionRequest, 'operation' | 'subresource'>,
): boolean =>
  rule.group === group &&
  rule.operations.includes(operation) &&
  rule.resources.includes(subresource ? `${plural}/${subresource}` : plural)

/** As the embedded API says whose refusal it is; an API server of Kubernetes puts the name of the webhook there itself. */
export const deniedBy = (rule: AdmissionRule, why: string): string =>
  `admission rule "${rule.name}" denied the request: ${why}`

/** Why a write was refused, for people: every place. */
export const refusalOf = (faults: readonly Fault[]): string =>
  faults.map(({ path, message }) => `${path} ${message}`).join('; ')

/** Why a write was refused: who asks may not do what it needs. */
export function missingRight(user: AdmissionUser, right: NeededRight): string {
  const { verb, group, resource, subresource, namespace, name, purpose } = right
  const what = `${resource}${subresource ? `/${subresource}` : ''}${group ? `.${group}` : ''}`
  const which = `${name ? ` "${name}"` : ''}${namespace ? ` in the namespace "${namespace}"` : ''}`
  return `user "${user.name}" cannot ${verb} ${what}${which}: needed to ${purpose}`
}
