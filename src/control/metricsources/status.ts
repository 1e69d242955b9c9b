import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { MetricSourceSpec, MetricSourceStatus } from '#kinds'
import type { Finding } from '#metricsource'
import { documentTime, minutes, type SourceId } from '#model'
import type { Collected } from './collected.ts'
import { fieldValidation } from './field-validation.ts'
import { findingText } from './finding-text.ts'
import { goDuration } from './go-duration.ts'

export interface StatusFacts {
  readonly generation: number | undefined
  readonly spec: MetricSourceSpec | undefined
  readonly stored: MetricSourceStatus | undefined
  /** of this generation */
  readonly findings: readonly Finding[]
  /** the generation in force; undefined: nothing is in force; generation undefined: not known */
  readonly inForce: { readonly generation: number | undefined } | undefined
  /** why the catalog did not take it */
  readonly storeTrouble: string | undefined
  /** undefined: state is still being loaded, and what is stored stays */
  readonly collected: Collected | undefined
  /** the source whose rows the type name means, where it is another one */
  readonly typeNameOf: { readonly typeName: string; readonly source: SourceId } | undefined
  /** ms since the Unix epoch */
  readonly now: number
}

const MAX_CLUSTERS = 50
const MAX_TEXT = 30_000
/** Counts and times are written no more often while nothing else changes. */
export const COUNTS_EVERY_MS = minutes(1)
/** Holds only while it is said. */
const NOTE = 'TypeNameTaken'

/** The status of a MetricSource: pure. */
export function sourceStatus(facts: StatusFacts): MetricSourceStatus {
  const { collected, spec, findings, stored } = facts
  return {
    phase: phaseOf(facts),
    message: messageOf(facts).slice(0, MAX_TEXT),
    ...(collected ? countsOf(collected) : keptCounts(stored)),
    fieldValidation: collected
      ? [...fieldValidation(spec, findings, collected.reports)]
      : (stored?.fieldValidation ?? [...fieldValidation(spec, findings, new Map())]),
    conditions: conditionsOf(facts) as NonNullable<MetricSourceStatus['conditions']>, // readonly
  }
}

/** Nobody who reads the one word shall take a source for well that a cluster refuses, or that reads nothing anywhere, or nothing yet. */
function phaseOf(facts: StatusFacts): NonNullable<MetricSourceStatus['phase']> {
  if (isUnusable(facts)) return 'Error'
  const said = saidBeforeLoading(facts)
  if (said) return said.phase
  const collected = collection(facts)
  if (!collected || collected.status === 'Unknown') return 'Pending'
  if (collected.status === 'True') return 'Active'
  return facts.collected?.clustersCollected === 0 ? 'Error' : 'Degraded'
}

const FIELDS = [
  'phase',
  'lastCollectionTime',
  'lastCollectionDuration',
  'resourcesCollected',
  'clustersCollected',
  'errorsLastRun',
  'message',
  'conditions',
  'fieldValidation',
  'clusters',
] as const satisfies readonly (keyof MetricSourceStatus)[]

/** What differs from the stored status, as a merge patch; undefined: nothing. */
export function statusPatch(
  stored: MetricSourceStatus | undefined,
  wanted: MetricSourceStatus,
): Readonly<Record<string, unknown>> | undefined {
  const moved = FIELDS.filter((field) => !isDeepStrictEqual(stored?.[field], wanted[field]))
  return moved.length > 0 ? Object.fromEntries(moved.map((field) => [field, wanted[field] ?? null])) : undefined
}

/** Whether the two say the same, but for counts and times. */
export function saysTheSame(stored: MetricSourceStatus | undefined, wanted: MetricSourceStatus): boolean {
  return stored !== undefined && isDeepStrictEqual(steady(stored), steady(wanted))
}

function steady({ phase, conditions = [], fieldValidation = [], clusters = [] }: MetricSourceStatus) {
  return {
    phase,
    conditions: conditions.map(({ type, status, reason, observedGeneration, message }) => ({
      ...{ type, status, reason, observedGeneration },
      ...((type === 'Valid' || type === NOTE || status === 'False') && { message: withoutNumbers(message) }),
    })),
    fields: fieldValidation.map(({ field, status }) => `${field} ${status}`),
    clusters: clusters.map(({ name, collected, reason, truncated = false }) => ({
      name,
      collected,
      reason,
      truncated,
    })),
  }
}

const withoutNumbers = (text: string) => text.replace(/\d+/g, '#')

const isUnusable = (facts: StatusFacts) => errorsOf(facts).length > 0 || facts.storeTrouble !== undefined
const errorsOf = ({ findings }: StatusFacts) => findings.filter(({ severity }) => severity === 'error')
const warningsOf = ({ findings }: StatusFacts) => findings.filter(({ severity }) => severity === 'warning')

function countsOf(collected: Collected): MetricSourceStatus {
  const { newestAt, durationMs, resources, clustersCollected, errors, clusters } = collected
  return {
    ...(newestAt !== null && {
      lastCollectionTime: documentTime(newestAt),
      lastCollectionDuration: goDuration(durationMs),
    }),
    resourcesCollected: resources,
    clustersCollected,
    errorsLastRun: errors,
    clusters: clusters.slice(0, MAX_CLUSTERS),
  }
}

function keptCounts(stored: MetricSourceStatus | undefined): MetricSourceStatus {
  const { phase: _, message: __, conditions: ___, fieldValidation: ____, ...counts } = stored ?? {}
  return counts
}

function messageOf(facts: StatusFacts): string {
  const [first, ...more] = errorsOf(facts)
  if (first) {
    const others = more.length > 0 ? ` (and ${more.length} more)` : ''
    return `${findingText(first)}${others}; ${stays(facts)}`
  }
  if (facts.storeTrouble !== undefined) return `Not stored; ${stays(facts)} until it is: ${facts.storeTrouble}`
  const said = saidBeforeLoading(facts)
  if (said) return said.message
  const warnings = warningsOf(facts)
  return [
    collectionMessage(facts),
    ...(facts.typeNameOf ? [takenMessage(facts.typeNameOf)] : []),
    ...(warnings[0] ? [`${counted(warnings.length, 'warning')}: ${findingText(warnings[0])}`] : []),
  ].join('; ')
}

/**
 * What was said of this very generation before the process that says it began: it holds until more is known, or every start of
 * the hub would call a source unknown that is well. Not of faults: they may be mended.
 */
function saidBeforeLoading({ collected, stored, generation }: StatusFacts) {
  if (collected || stored?.phase === undefined || stored.message === undefined) return undefined
  const ready = (stored.conditions as readonly Condition[] | undefined)?.find(({ type }) => type === 'Ready')
  const mayBeMended = ready?.reason === 'InvalidSpec' || ready?.reason === 'StoreUnavailable'
  if (!ready || mayBeMended || ready.observedGeneration !== generation) return undefined
  return { message: stored.message, phase: stored.phase, ready }
}

function collectionMessage({ collected, spec }: StatusFacts): string {
  if (!collected) return 'Waiting for the state of the clusters'
  const { clustersKnown, clusters, clustersAbsent, clustersCollected, clustersAway, errors, truncated } = collected
  if (clustersKnown === 0) return 'No cluster is connected yet'
  if (clusters.length === 0) return 'Waiting for the first collection'
  if (clustersAbsent === clusters.length) return `No cluster serves ${kindOf(spec)}`
  const first = clusters[0]
  const cut = truncated > 0 ? `; ${counted(truncated, 'cluster')} with more objects than maxResources` : ''
  if (clustersAway.length > 0 && errors === 0) {
    const served = clusters.length - clustersAbsent
    return `Collected from ${clustersCollected} of ${counted(served, 'cluster')}; ${awayText(collected)}${cut}`
  }
  if (errors === 0) return `Collection successful${cut}`
  return `Collected with ${counted(errors, 'error')}, first on ${first?.name}: ${first?.message ?? first?.reason}${cut}`
}

const kindOf = (spec: MetricSourceSpec | undefined) => `${spec?.source?.kind} of ${spec?.source?.apiVersion}`

function stays({ inForce }: StatusFacts): string {
  if (!inForce) return 'nothing is in force'
  const { generation } = inForce
  return `${generation === undefined ? 'the revision before' : `revision ${generation}`} stays in force`
}

const takenMessage = ({ typeName, source }: NonNullable<StatusFacts['typeNameOf']>) =>
  `the type name ${typeName} means the rows of ${source}: give this source another spec.rbac.resourceTypeName`

type Said = Pick<Condition, 'status' | 'reason' | 'message'>

function conditionsOf(facts: StatusFacts): readonly Condition[] {
  const { generation, stored, typeNameOf, now } = facts
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  const collected = collection(facts)
  const said: readonly (readonly [type: string, said: Said])[] = [
    ['Ready', readiness(facts, collected)],
    ['Valid', validity(facts)],
    ...(collected ? [['Collected', collected] as const] : []),
    ...(typeNameOf
      ? [[NOTE, { status: 'True', reason: 'DuplicateTypeName', message: takenMessage(typeNameOf) }] as const]
      : []),
  ]
  const kept = ((stored?.conditions ?? []) as readonly Condition[]).filter(({ type }) => type !== NOTE || typeNameOf)
  return said.reduce<readonly Condition[]>(
    (conditions, [type, { status, reason, message }]) =>
      setCondition(conditions, { type, status, reason, message: message.slice(0, MAX_TEXT), ...observed }, now),
    kept,
  )
}

/** Works as declared: in force, and read from at least one cluster. */
function readiness(facts: StatusFacts, collected: Said | undefined): Said {
  if (errorsOf(facts).length > 0) return { status: 'False', reason: 'InvalidSpec', message: messageOf(facts) }
  if (facts.storeTrouble !== undefined) {
    return { status: 'False', reason: 'StoreUnavailable', message: messageOf(facts) }
  }
  const said = saidBeforeLoading(facts)
  if (said) return said.ready
  if (!facts.collected || !collected || collected.status === 'Unknown') {
    return { status: 'Unknown', reason: 'Pending', message: collected?.message ?? collectionMessage(facts) }
  }
  const { resources, clustersCollected } = facts.collected
  if (clustersCollected === 0) return { ...collected, status: 'False' }
  const message = `Collected ${counted(resources, 'resource')} from ${counted(clustersCollected, 'cluster')}`
  const reason = collected.status === 'True' ? 'CollectionSuccessful' : 'CollectedWithErrors'
  return { status: 'True', reason, message }
}

function validity(facts: StatusFacts): Said {
  const errors = errorsOf(facts)
  const warnings = warningsOf(facts)
  const message = [...errors, ...warnings].map(findingText).join('; ')
  if (errors.length > 0) return { status: 'False', reason: 'InvalidSpec', message }
  if (warnings.length > 0) return { status: 'True', reason: 'CompiledWithWarnings', message }
  return { status: 'True', reason: 'Compiled', message: 'The spec has no faults' }
}

/** Every cluster that serves the kind was read; undefined while that is not known yet. */
function collection(facts: StatusFacts): Said | undefined {
  const { collected, inForce } = facts
  if (!collected) return undefined
  const message = collectionMessage(facts)
  if (collected.clusters.length === 0) return { status: 'Unknown', reason: 'Pending', message }
  if (inForce && !collected.isOfThisDefinition) {
    return { status: 'Unknown', reason: 'Pending', message: 'No cluster was read by this revision yet' }
  }
  if (collected.clustersAbsent === collected.clusters.length) return { status: 'False', reason: 'KindAbsent', message }
  if (collected.clustersCollected === 0 && collected.clustersAway.length > 0 && collected.errors === 0) {
    return { status: 'False', reason: 'CollectionFailed', message: failures(collected) }
  }
  if (collected.errors > 0) {
    const reason = collected.clustersCollected === 0 ? 'CollectionFailed' : 'PartlyCollected'
    return { status: 'False', reason, message: failures(collected) }
  }
  if (collected.clustersAway.length > 0) return { status: 'True', reason: 'ReachableRead', message }
  return { status: 'True', reason: 'AllRead', message: 'Every cluster that serves the kind was read' }
}

function awayText({ clustersAway }: Collected): string {
  const more = clustersAway.length - NAMED
  return `not reached: ${clustersAway.slice(0, NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** How many failing clusters a condition names. */
const NAMED = 10

function failures({ clusters }: Collected): string {
  const failing = clusters.filter(({ errors = 0 }) => errors > 0)
  const named = failing.slice(0, NAMED).map(({ name, reason, message }) => `${name}: ${message || reason}`)
  return [...named, ...(failing.length > NAMED ? [`and ${failing.length - NAMED} more clusters`] : [])].join('; ')
}

const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`
