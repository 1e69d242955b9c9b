import type { AdmissionRequest, AdmissionRule, AdmittedObject, Mutation, NeededRight } from '../admission.ts'
import type { Fault } from '../kind.ts'
import { agentFaults } from './agent-fields.ts'
import { managedCluster } from './managed-cluster.ts'
import {
  ASKED_ANNOTATION,
  CERTIFICATES_ANNOTATION,
  CLUSTER_GROUP,
  CLUSTER_SET_LABEL,
  DEFAULT_CLUSTER_SET,
  REGISTER_GROUP,
} from './names.ts'

interface Taint {
  readonly key?: unknown
  readonly value?: unknown
  readonly effect?: unknown
  readonly timeAdded?: unknown
}

const specOf = (object: AdmittedObject | undefined): Readonly<Record<string, unknown>> =>
  typeof object?.spec === 'object' && object.spec !== null ? (object.spec as Record<string, unknown>) : {}
const setOf = (object: AdmittedObject | undefined): string => object?.metadata.labels?.[CLUSTER_SET_LABEL] ?? ''
/** What the hub writes there, and people decide by. */
const saysTheSame = (object: AdmittedObject | undefined, before: AdmittedObject | undefined): boolean =>
  [CERTIFICATES_ANNOTATION, ASKED_ANNOTATION].every(
    (annotation) =>
      (object?.metadata.annotations?.[annotation] ?? '') === (before?.metadata.annotations?.[annotation] ?? ''),
  )
const isAccepted = (object: AdmittedObject | undefined): boolean => specOf(object).hubAcceptsClient === true

const taintsOf = (object: AdmittedObject | undefined): readonly Taint[] => {
  const { taints } = specOf(object)
  return Array.isArray(taints) ? taints.filter((taint) => typeof taint === 'object' && taint !== null) : []
}

/** The same taint as it is stored. Two of one cluster may share a key, as long as they differ in effect or value. */
const storedTaint = (before: AdmittedObject | undefined, { key, effect, value = '' }: Taint): Taint | undefined =>
  taintsOf(before).find((taint) => taint.key === key && taint.effect === effect && (taint.value ?? '') === value)

const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
const isSame = (a: unknown, b: unknown): boolean => a === b || Date.parse(String(a)) === Date.parse(String(b))

/**
 * Since when a taint is there is the hub's to say: now for a new or changed one, what is stored for the others. Who sends a
 * time must send that one; who sends none need not know it.
 */
function timed(taint: Taint, at: number, { before, nowMs }: AdmissionRequest): Taint | Fault {
  const given = taint.timeAdded ?? undefined
  const known = storedTaint(before, taint)?.timeAdded ?? undefined
  if (before === undefined || given === undefined) return { ...taint, timeAdded: known ?? timestamp(nowMs) }
  if (known !== undefined && isSame(given, known)) return { ...taint, timeAdded: known }
  const path = `spec.taints[${at}].timeAdded`
  return known === undefined
    ? { path, message: 'is set by the hub: leave it out of a new or changed taint' }
    : { path, message: `is set by the hub: leave it out, or send ${JSON.stringify(known)}, which is stored` }
}

const isFault = (value: Taint | Fault): value is Fault => 'path' in value

function mutate(request: AdmissionRequest): Mutation {
  const { object } = request
  if (!object) return { faults: [] }
  const { taints } = specOf(object)
  const made = Array.isArray(taints) ? taintsOf(object).map((taint, at) => timed(taint, at, request)) : undefined
  const faults = made?.filter(isFault) ?? []
  if (faults.length > 0) return { faults }
  const labels = setOf(object)
    ? object.metadata.labels
    : { ...object.metadata.labels, [CLUSTER_SET_LABEL]: DEFAULT_CLUSTER_SET }
  return {
    object: {
      ...object,
      metadata: { ...object.metadata, ...(labels && { labels }) },
      ...(made && { spec: { ...specOf(object), taints: made } }),
    },
  }
}

const join = (name: string): NeededRight => ({
  verb: 'create',
  group: CLUSTER_GROUP,
  resource: 'managedclustersets',
  subresource: 'join',
  name,
  purpose: `move clusters into or out of the set "${name}"`,
})

function rights({ object, before, name }: AdmissionRequest): NeededRight[] {
  if (!object) return []
  const accept: NeededRight = {
    verb: 'update',
    group: REGISTER_GROUP,
    resource: 'managedclusters',
    subresource: 'accept',
    name,
    purpose:
      isAccepted(object) === isAccepted(before)
        ? 'say which of its certificates count, and who asks'
        : isAccepted(object)
          ? 'accept the cluster'
          : 'deny the cluster',
  }
  // Whoever writes that list undoes a revocation, or says who asks: members, and who asks to be one, may change the object all the same.
  const isDecided = isAccepted(object) !== isAccepted(before) || !saysTheSame(object, before)
  const sets = setOf(object) === setOf(before) ? [] : [setOf(before), setOf(object)].filter((set) => set !== '')
  return [...(isDecided ? [accept] : []), ...sets.map(join)]
}

const isNewlyAccepted = ({ object, before }: AdmissionRequest): boolean => isAccepted(object) && !isAccepted(before)

/** What ManagedClusters must be, who may accept them, who may put them into sets, and what agents may change. */
export const managedClusterAdmission: AdmissionRule = {
  name: 'managedclusters.admission.clusterpulse.io',
  group: CLUSTER_GROUP,
  versions: ['v1'],
  resources: ['managedclusters'],
  operations: ['CREATE', 'UPDATE'],
  namespaced: false,
  mutate,
  rights,
  reads: (request) =>
    isNewlyAccepted(request) ? [{ group: '', version: 'v1', plural: 'namespaces', name: request.name }] : [],
  faults: (request, [namespace]) => [
    ...managedCluster.faults(request.object),
    ...agentFaults(request),
    ...(isNewlyAccepted(request) && namespace?.metadata.deletionTimestamp
      ? [
          {
            path: 'spec.hubAcceptsClient',
            message: `must wait: the namespace ${JSON.stringify(request.name)} of a former member is still being removed`,
          },
        ]
      : []),
  ],
}
