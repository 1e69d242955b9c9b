import type { Fault } from '../../kind.ts'
import { DEFAULT_EXPORT_INTERVAL, MAX_SINK_REFS } from '../names.ts'
import { goDurationMs, intervalFaults } from './duration.ts'
import { faultIf, isRecord, type Json, listOf, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { listFaults, nameProblem, namespaceProblem } from './names.ts'
import { neededSelectorFaults, selectorFaults } from './selectors.ts'
import { profileRefFaults } from './target.ts'

export const FAMILIES = ['snapshotSinkRefs', 'databaseSinkRefs', 'eventSinkRefs'] as const
const REF_FIELDS = ['name', 'namespace', 'exportMinInterval', 'snapshotWindow', 'maxExportBytes']

/** Everything wrong with the spec of an inventory of a namespace. */
export function inventoryFaults(spec: Json, _: Json, known: KollectKnown): Fault[] {
  const { enabled, port } = recordOf(spec.httpEndpoint)
  return [
    ...commonFaults(spec, known, false),
    ...bytesFaults('spec.maxExportBytes', spec.maxExportBytes, known),
    ...faultIf(
      'spec.httpEndpoint',
      known.semantics === 'strict' &&
        (enabled === true || port !== undefined) &&
        'has no effect: the process says whether and where inventories are served. Leave it out',
    ),
  ]
}

/** Everything wrong with the spec of a roll-up. */
export function clusterInventoryFaults(spec: Json, _: Json, known: KollectKnown): Fault[] {
  const sinkNamespace = textOf(spec.sinkNamespace)
  return [
    ...profileRefFaults(spec.profileRef),
    ...neededSelectorFaults('spec.namespaceSelector', spec.namespaceSelector),
    ...selectorFaults('spec.targetSelector', spec.targetSelector),
    ...listFaults('spec.targetRefs', spec.targetRefs, nameProblem),
    ...listFaults('spec.namespaces', spec.namespaces, namespaceProblem),
    ...faultIf('spec.sinkNamespace', sinkNamespace !== undefined && namespaceProblem(sinkNamespace)),
    ...commonFaults(spec, known, true),
  ]
}

function commonFaults(spec: Json, known: KollectKnown, isCluster: boolean): Fault[] {
  const count = FAMILIES.reduce((sum, family) => sum + listOf(spec[family]).length, 0)
  return [
    ...FAMILIES.flatMap((family) => familyFaults(family, listOf(spec[family]), known, isCluster)),
    ...faultIf('spec', count > MAX_SINK_REFS && `names ${count} sinks: at most ${MAX_SINK_REFS}, over all families`),
    ...timeFaults('spec', statedTimes(spec), known),
  ]
}

/** The API server fills the default in: that nobody stated it, only its value tells. A scope raises it without a word. */
function statedTimes(spec: Json): Json {
  const { exportMinInterval, ...rest } = spec
  return exportMinInterval === DEFAULT_EXPORT_INTERVAL ? rest : spec
}

/** Both times of an inventory, a reference or a sink, and the floor below which no interval may lie. */
export function timeFaults(path: string, value: Json, { scopes = [] }: KollectKnown): Fault[] {
  const at = `${path}.exportMinInterval`
  const faults = [
    ...intervalFaults(at, value.exportMinInterval),
    ...intervalFaults(`${path}.snapshotWindow`, value.snapshotWindow),
  ]
  const stated = goDurationMs(textOf(value.exportMinInterval) ?? '')
  if (stated === undefined || faults.length > 0) return faults
  return scopes.flatMap((scope) => {
    const floor = textOf(recordOf(recordOf(scope).spec).minExportInterval) ?? '0'
    const name = textOf(recordOf(recordOf(scope).metadata).name) ?? ''
    const isBelow = stated < (goDurationMs(floor) ?? 0)
    return faultIf(
      at,
      isBelow && `is shorter than the scope ${shown(name)} allows: take a longer interval, or leave it out`,
    )
  })
}

function bytesFaults(path: string, value: unknown, { maxExportBytes }: KollectKnown): Fault[] {
  if (typeof value !== 'number') return []
  return faultIf(
    path,
    (!Number.isInteger(value) || value < 1 || value > maxExportBytes) &&
      `is ${value}: it must be a whole number of bytes from 1 to ${maxExportBytes}, the ceiling of the process`,
  )
}

function familyFaults(family: string, refs: readonly unknown[], known: KollectKnown, isCluster: boolean): Fault[] {
  const seen = new Map<string, number>()
  return refs.flatMap((ref, at) => {
    const path = `spec.${family}[${at}]`
    const name = typeof ref === 'string' ? ref : textOf(recordOf(ref).name)
    const first = name === undefined ? undefined : seen.get(name)
    if (name !== undefined && first === undefined) seen.set(name, at)
    const place = typeof ref === 'string' ? path : `${path}.name`
    const again =
      name !== undefined &&
      first !== undefined &&
      `is ${shown(name)} again, as spec.${family}[${first}]: name each sink once`
    return [...refFaults(path, ref, known, isCluster), ...faultIf(place, again)]
  })
}

function refFaults(path: string, ref: unknown, known: KollectKnown, isCluster: boolean): Fault[] {
  if (typeof ref === 'string') return faultIf(path, nameProblem(ref))
  if (!isRecord(ref)) return [{ path, message: 'must be the name of a sink, or an object with `name`' }]
  const { name, namespace, maxExportBytes } = ref
  const unknown = Object.keys(ref).filter((field) => !REF_FIELDS.includes(field))
  return [
    ...(typeof name === 'string'
      ? faultIf(`${path}.name`, nameProblem(name))
      : [{ path: `${path}.name`, message: name === undefined ? 'is missing: name the sink' : 'must be a text' }]),
    ...unknown.map((field) => ({
      path: `${path}.${field}`,
      message: `is unknown: a reference has ${REF_FIELDS.join(', ')}`,
    })),
    ...mistyped(path, ref),
    ...namespaceFaults(`${path}.namespace`, namespace, isCluster),
    ...timeFaults(path, ref, known),
    ...bytesFaults(`${path}.maxExportBytes`, maxExportBytes, known),
  ]
}

/** Fields of a reference of the wrong type: the schema says nothing of them. */
const mistyped = (path: string, ref: Json): Fault[] => [
  ...['namespace', 'exportMinInterval', 'snapshotWindow'].flatMap((field) =>
    faultIf(`${path}.${field}`, ref[field] !== undefined && typeof ref[field] !== 'string' && 'must be a text'),
  ),
  ...faultIf(
    `${path}.maxExportBytes`,
    ref.maxExportBytes !== undefined && typeof ref.maxExportBytes !== 'number' && 'must be a whole number of bytes',
  ),
]

function namespaceFaults(path: string, value: unknown, isCluster: boolean): Fault[] {
  const namespace = textOf(value)
  if (namespace === undefined) return []
  if (isCluster) return faultIf(path, namespaceProblem(namespace))
  return [
    {
      path,
      message:
        'must be left out: sinks of an inventory are in its own namespace. A KollectClusterInventory names others',
    },
  ]
}
