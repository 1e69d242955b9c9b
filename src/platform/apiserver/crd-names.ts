import type { CrdSpec } from './crd.ts'
import type { ApiObject } from './types.ts'

type Names = Partial<CrdSpec['names']>

interface Condition {
  readonly type: string
  readonly status: string
}

interface CrdStatus {
  readonly conditions?: readonly Condition[]
  readonly acceptedNames?: Names
}

const statusOf = (definition: ApiObject | undefined): CrdStatus => (definition?.status ?? {}) as CrdStatus
const specOf = (definition: ApiObject): CrdSpec => definition.spec as CrdSpec

const isTrue = (definition: ApiObject | undefined, type: string): boolean =>
  statusOf(definition).conditions?.some((each) => each.type === type && each.status === 'True') === true

/** Whether a definition's kind is served. */
export const isEstablished = (definition: ApiObject): boolean => isTrue(definition, 'Established')

/** Whether a definition waits for names that another one of its group has. */
export const waitsForNames = (definition: ApiObject): boolean =>
  statusOf(definition).conditions?.some((each) => each.type === 'NamesAccepted' && each.status === 'False') === true

/**
 * A definition that says which of its names another one of its group has already: it is established when that one goes.
 * One that was established stays so, under its former names.
 * @param before the definition as it is stored
 * @see KEP "CustomResourceDefinition naming", as kube-apiserver's naming controller words it
 */
export function acceptNames(
  definition: ApiObject,
  before: ApiObject | undefined,
  all: readonly ApiObject[],
  nowMs: number,
): ApiObject {
  const spec = specOf(definition)
  const others = all.filter(
    (other) => other.metadata.name !== definition.metadata.name && specOf(other)?.group === spec?.group,
  )
  const used = others.map((other) => statusOf(other).acceptedNames ?? {})
  const resources = new Set(used.flatMap(({ plural, singular, shortNames = [] }) => [plural, singular, ...shortNames]))
  const kinds = new Set(used.flatMap(({ kind, listKind }) => [kind, listKind]))
  const { names } = spec ?? {}
  const former = statusOf(before).acceptedNames ?? {}
  const accepted: Record<string, unknown> = { ...names }
  let conflict: { reason: string; name: string } | undefined
  for (const [field, reason, taken] of [
    ['plural', 'PluralConflict', resources],
    ['singular', 'SingularConflict', resources],
    ['shortNames', 'ShortNamesConflict', resources],
    ['kind', 'KindConflict', kinds],
    ['listKind', 'ListKindConflict', kinds],
  ] as const) {
    const name = [names?.[field] ?? []].flat().find((one) => taken.has(one) && ![former[field]].flat().includes(one))
    if (name === undefined) continue
    conflict = { reason, name }
    if (former[field] === undefined) delete accepted[field]
    else accepted[field] = former[field]
  }
  if (!conflict) return definition
  const lastTransitionTime = new Date(nowMs).toISOString().replace(/\.\d+Z$/, 'Z')
  const message = `${JSON.stringify(conflict.name)} is already in use`
  const conditions = [
    { type: 'NamesAccepted', status: 'False', lastTransitionTime, reason: conflict.reason, message },
    (isTrue(before, 'Established') && statusOf(before).conditions?.find(({ type }) => type === 'Established')) || {
      type: 'Established',
      status: 'False',
      lastTransitionTime,
      reason: 'NotAccepted',
      message: 'not all names are accepted',
    },
  ]
  return { ...definition, status: { ...(definition.status as object), conditions, acceptedNames: accepted } }
}
