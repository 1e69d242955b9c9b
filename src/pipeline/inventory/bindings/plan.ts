import {
  goDurationMs,
  type KollectDatabaseSinkSpec,
  type KollectEventSinkSpec,
  type KollectSnapshotSinkSpec,
  type SinkRef,
} from '#kinds'
import { minutes, seconds } from '#model'
import type { SinkErrorClass, SinkFamily, SinkObject } from '#sinks'
import type { Pace } from '../schedule.ts'
import type { SinkPlace } from '../sink-place.ts'

/** The spec of a sink of any family. */
export type AnySinkSpec = KollectDatabaseSinkSpec | KollectSnapshotSinkSpec | KollectEventSinkSpec

/** A sink that can be written to. */
export interface ReadySink {
  readonly object: SinkObject
  /** of what it is and under which identity it is written: of another one nothing is known */
  readonly identity: string
}

/** Why nothing can be written to a sink. */
export interface Blocked {
  readonly reason: string
  /** a sentence with what to do */
  readonly message: string
  readonly errorClass: SinkErrorClass
}

/** What came of looking for a sink. */
export type FoundSink =
  | { readonly kind: 'ready'; readonly spec: AnySinkSpec; readonly sink: ReadySink }
  | { readonly kind: 'blocked'; readonly spec?: AnySinkSpec; readonly blocked: Blocked }

/** One binding of an inventory to a sink. */
export interface BindingPlan {
  /** `family/name` */
  readonly name: string
  readonly family: SinkFamily
  /** of the sink */
  readonly namespace: string
  readonly sinkName: string
  readonly pace: Pace
  readonly maxPartBytes: number
  /** what becomes of what was written when the inventory goes */
  readonly deletionPolicy: 'Delete' | 'Retain'
  readonly target: { readonly kind: 'ready'; readonly sink: ReadySink } | ({ readonly kind: 'blocked' } & Blocked)
}

/** The references of an inventory, by family in this order. */
export const REF_FIELDS = [
  ['snapshot', 'snapshotSinkRefs'],
  ['database', 'databaseSinkRefs'],
  ['event', 'eventSinkRefs'],
] as const

/** The parts of an inventory that say where its rows go. */
export interface Destinations {
  readonly snapshotSinkRefs?: readonly (string | SinkRef)[]
  readonly databaseSinkRefs?: readonly (string | SinkRef)[]
  readonly eventSinkRefs?: readonly (string | SinkRef)[]
  readonly exportMinInterval?: string
  readonly snapshotWindow?: string
  readonly maxExportBytes?: number
}

/** The parts of a scope that bound where rows go. */
export interface SinkCeiling {
  readonly name: string
  readonly minExportInterval?: string
  readonly snapshotSinkRefs?: readonly string[]
  readonly databaseSinkRefs?: readonly string[]
  readonly eventSinkRefs?: readonly string[]
  /** of cluster scopes */
  readonly allowedStaticRefNamespaces?: readonly string[]
}

export interface PlanFacts {
  readonly spec: Destinations
  /** namespace of sinks that are named without one */
  readonly namespace: string
  readonly ceilings: readonly SinkCeiling[]
  /** ceiling of the process for one part, bytes */
  readonly maxExportBytes: number
  readonly find: (family: SinkFamily, namespace: string, name: string) => FoundSink
}

const DEFAULT_INTERVAL_MS = seconds(30)
const SNAPSHOT_WINDOW_MS = seconds(60)
/** Databases are told that their writer lives at most this often. */
const HEARTBEAT_FLOOR_MS = seconds(30)
/** Tables note that their writer lives; other sinks are only asked whether somebody else wrote there. */
const LOOK_MS = { snapshot: minutes(5), event: seconds(60) } as const

/** Where the rows of an inventory go, how often, and which of that is not allowed or not possible. */
export function planBindings(facts: PlanFacts): readonly BindingPlan[] {
  return REF_FIELDS.flatMap(([family, field]) =>
    (facts.spec[field] ?? []).map((ref) => planOf(facts, family, typeof ref === 'string' ? { name: ref } : ref)),
  )
}

function planOf(facts: PlanFacts, family: SinkFamily, ref: SinkRef): BindingPlan {
  const { spec, ceilings, maxExportBytes, find } = facts
  const namespace = ref.namespace ?? facts.namespace
  const denied = denialOf(ceilings, { family, namespace, name: ref.name })
  const found = find(family, namespace, ref.name)
  const blocked = denied ?? (found.kind === 'blocked' ? found.blocked : undefined)
  return {
    name: `${family}/${ref.name}`,
    family,
    namespace,
    sinkName: ref.name,
    pace: paceOf(family, ref, found.spec, spec, ceilings),
    maxPartBytes: Math.min(ref.maxExportBytes ?? spec.maxExportBytes ?? maxExportBytes, maxExportBytes),
    deletionPolicy: policyOf(family, found.spec),
    target:
      blocked || found.kind === 'blocked'
        ? { kind: 'blocked', ...(blocked as Blocked) } // one of both is there
        : { kind: 'ready', sink: found.sink },
  }
}

/** Every scope must allow it. Denials name the offender and the scope, never what would be allowed. */
export function denialOf(
  ceilings: readonly SinkCeiling[],
  { family, namespace, name }: SinkPlace,
): Blocked | undefined {
  for (const scope of ceilings) {
    const namespaces = scope.allowedStaticRefNamespaces ?? []
    if (namespaces.length > 0 && !namespaces.includes(namespace))
      return {
        reason: 'SinkNamespaceDenied',
        message: `the scope ${scope.name} does not allow sinks of the namespace ${namespace}: use another sink, or have the scope changed`,
        errorClass: 'terminal',
      }
    const names = scope[`${family}SinkRefs`] ?? []
    if (names.length > 0 && !names.includes(name))
      return {
        reason: 'ScopeSinkDenied',
        message: `the scope ${scope.name} does not allow the sink ${name}: use another sink, or have the scope changed`,
        errorClass: 'terminal',
      }
  }
  return undefined
}

/**
 * The first that says something counts: the reference, the sink, the inventory. Scopes raise the interval, also one of zero, and the
 * window of what is written as a whole.
 */
function paceOf(
  family: SinkFamily,
  ref: SinkRef,
  sink: AnySinkSpec | undefined,
  spec: Destinations,
  ceilings: readonly SinkCeiling[],
): Pace {
  const first = (field: 'exportMinInterval' | 'snapshotWindow') =>
    msOf(ref[field]) ?? msOf(sink?.[field]) ?? msOf(spec[field])
  const floorMs = Math.max(0, ...ceilings.map(({ minExportInterval }) => msOf(minExportInterval) ?? 0))
  const intervalMs = Math.max(first('exportMinInterval') ?? DEFAULT_INTERVAL_MS, floorMs)
  const isSnapshot = family === 'snapshot'
  const windowMs = Math.max(first('snapshotWindow') ?? (isSnapshot ? SNAPSHOT_WINDOW_MS : 0), isSnapshot ? floorMs : 0)
  if (family !== 'database') return { windowMs, heartbeatMs: LOOK_MS[family] }
  return { windowMs, heartbeatMs: intervalMs > 0 ? Math.max(intervalMs, HEARTBEAT_FLOOR_MS) : undefined }
}

const msOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : goDurationMs(text))

function policyOf(family: SinkFamily, sink: AnySinkSpec | undefined): 'Delete' | 'Retain' {
  if (sink?.deletionPolicy) return sink.deletionPolicy
  if (family === 'database') return 'Delete'
  return family === 'snapshot' && (sink?.type === 'git' || sink?.type === 'gitlab') ? 'Delete' : 'Retain'
}
