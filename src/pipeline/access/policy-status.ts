import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { MonitorAccessPolicyStatus } from '#kinds'
import { stateOf } from './survey.ts'
import type { Finding, PolicyDocument } from './types.ts'

/** What decisions are made from, and the generation of the object that said it. */
export interface InForce {
  readonly document: PolicyDocument
  /** undefined: of an API that does not count them */
  readonly generation: number | undefined
  /** of the object */
  readonly uid: string | undefined
  /** the revision before was lost, so that the faulty one denies all that it could mean */
  readonly isClosed?: boolean
}

export interface StatusFacts {
  readonly generation: number | undefined
  readonly stored: MonitorAccessPolicyStatus | undefined
  /** of this generation */
  readonly findings: readonly Finding[]
  readonly inForce: InForce | undefined
  /** why the store did not take what should be in force */
  readonly storeTrouble?: string | undefined
  /** ms since the Unix epoch */
  readonly now: number
}

const MAX_WARNINGS = 100
const MAX_TEXT = 4_000
/** The state says it better. */
const SAID_BY_STATE = 'validity_expired'

/** The status of a policy: pure. */
export function policyStatus(facts: StatusFacts): MonitorAccessPolicyStatus {
  const { generation, findings, inForce } = facts
  const document = inForce?.document
  const warnings = findings.filter(({ severity, code }) => severity === 'warning' && code !== SAID_BY_STATE).map(textOf)
  return {
    ...overall(facts),
    ...(document && {
      compiledAt: document.compiled_at,
      hash: document.hash,
      affectedUsers: new Set(document.users).size,
      affectedGroups: new Set(document.groups).size,
      affectedServiceAccounts: new Set(document.service_accounts).size,
      customResourceTypes: document.custom_resource_types?.length ?? 0,
    }),
    ...(warnings.length > 0 && { customResourceWarnings: shortened(warnings) }),
    ...(generation !== undefined && { observedGeneration: generation }),
    ...(inForce?.generation !== undefined && { generationInForce: inForce.generation }),
    conditions: conditionsOf(facts, warnings.length) as NonNullable<MonitorAccessPolicyStatus['conditions']>, // readonly
  }
}

/** The note beside the policy in the store, in the documented words. */
export function storedStatus(status: MonitorAccessPolicyStatus): Readonly<Record<string, unknown>> {
  const { state, message, compiledAt, hash, conditions = [] } = status
  const { affectedUsers, affectedGroups, affectedServiceAccounts, customResourceTypes } = status
  const fault = conditions.find(({ type, status: is }) => type === 'Ready' && is === 'False')
  return {
    state,
    message,
    compiledAt,
    hash,
    affectedUsers,
    affectedGroups,
    affectedServiceAccounts,
    customResourceTypes,
    ...(state === 'Error' && fault && { error_at: fault.lastTransitionTime }),
  }
}

const OURS = [
  'state',
  'message',
  'compiledAt',
  'hash',
  'affectedUsers',
  'affectedGroups',
  'affectedServiceAccounts',
  'customResourceTypes',
  'customResourceWarnings',
  'observedGeneration',
  'generationInForce',
  'conditions',
] as const satisfies readonly (keyof MonitorAccessPolicyStatus)[]

/** What differs from the stored status, as a merge patch; undefined: nothing. */
export function statusPatch(
  stored: MonitorAccessPolicyStatus | undefined,
  wanted: MonitorAccessPolicyStatus,
): Readonly<Record<string, unknown>> | undefined {
  const moved = OURS.filter((field) => !isDeepStrictEqual(stored?.[field], wanted[field]))
  if (moved.length === 0) return undefined
  return Object.fromEntries(moved.map((field) => [field, wanted[field] ?? null]))
}

function overall(facts: StatusFacts): Pick<MonitorAccessPolicyStatus, 'state' | 'message'> & { state: string } {
  const { inForce, storeTrouble, now } = facts
  const errors = errorsOf(facts)
  if (errors.length > 0) {
    const first = textOf(errors[0] as Finding).slice(0, MAX_TEXT) // there is one
    const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
    return { state: 'Error', message: `${insteadOf(facts)} ${first}${more}` }
  }
  if (storeTrouble !== undefined) {
    return {
      state: 'Error',
      message: `The policy could not be stored; ${stays(inForce)} until it can: ${storeTrouble}`.slice(0, MAX_TEXT),
    }
  }
  if (!inForce) return { state: 'Pending', message: 'Policy is not stored yet' }
  return stateOf({ key: '', document: inForce.document, faults: [] }, now)
}

function insteadOf({ generation, inForce }: StatusFacts): string {
  const revision = generation === undefined ? 'This revision' : `Revision ${generation}`
  if (inForce?.isClosed) {
    return `${revision} has faults and the one before is lost; until it is corrected it denies all that it could mean.`
  }
  return `${revision} has faults; ${stays(inForce)}.`
}

const stays = (inForce: InForce | undefined): string =>
  !inForce
    ? 'nothing is in force'
    : `${inForce.generation === undefined ? 'the one before' : `revision ${inForce.generation}`} stays in force`

function conditionsOf(facts: StatusFacts, warnings: number): readonly Condition[] {
  const { generation, stored, inForce, now } = facts
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  const said: readonly (readonly [type: string, said: Said])[] = [
    ['Ready', readiness(facts)],
    ['Valid', validity(facts, warnings)],
    ['Active', activity(inForce, now)],
  ]
  return said.reduce<readonly Condition[]>(
    (conditions, [type, [status, reason, message]]) =>
      setCondition(conditions, { type, status, reason, message: message.slice(0, MAX_TEXT), ...observed }, now),
    stored?.conditions ?? [],
  )
}

type Said = readonly [status: Condition['status'], reason: string, message: string]

function readiness(facts: StatusFacts): Said {
  const { inForce, storeTrouble } = facts
  if (errorsOf(facts).length > 0) return ['False', 'InvalidSpec', insteadOf(facts)]
  if (storeTrouble !== undefined) {
    return ['False', 'StoreUnavailable', `The store did not take it; ${stays(inForce)}: ${storeTrouble}`]
  }
  return inForce ? ['True', 'InForce', 'Decisions use this revision'] : ['False', 'Pending', 'It is not stored yet']
}

function validity(facts: StatusFacts, warnings: number): Said {
  const errors = errorsOf(facts)
  if (errors.length > 0) return ['False', 'InvalidSpec', errors.slice(0, 5).map(textOf).join('; ')]
  if (warnings === 0) return ['True', 'Compiled', 'The spec has no faults']
  return ['True', 'CompiledWithWarnings', `${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`]
}

function activity(inForce: InForce | undefined, now: number): Said {
  if (!inForce) return ['False', 'NotInForce', 'No revision is in force']
  const { state, message } = stateOf({ key: '', document: inForce.document, faults: [] }, now)
  if (state === 'Active') return ['True', 'Active', message]
  if (state === 'Expired') return ['False', 'Expired', message]
  if (state === 'Inactive') return ['False', message.includes('disabled') ? 'Disabled' : 'NotYetValid', message]
  return ['Unknown', 'Faulty', message]
}

const errorsOf = ({ findings }: StatusFacts) => findings.filter(({ severity }) => severity === 'error')
const textOf = ({ path, message }: Finding) => (path ? `${path}: ${message}` : message)

function shortened(warnings: readonly string[]): string[] {
  const shown = warnings.slice(0, MAX_WARNINGS).map((warning) => warning.slice(0, MAX_TEXT))
  return warnings.length > MAX_WARNINGS ? [...shown, `and ${warnings.length - MAX_WARNINGS} more`] : shown
}
