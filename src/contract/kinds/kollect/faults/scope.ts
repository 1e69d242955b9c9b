import type { Fault } from '../../kind.ts'
import { intervalFaults } from './duration.ts'
import { FAMILIES } from './inventory.ts'
import { faultIf, type Json, listOf, recordOf, textOf } from './json.ts'
import { listFaults, nameFaults, nameProblem, namespaceProblem } from './names.ts'
import { kindFaults } from './profile.ts'

/** Everything wrong with the spec of a scope, of a namespace or of the cluster. */
export function scopeFaults(spec: Json): Fault[] {
  return [
    ...listOf(spec.allowedGVKs).flatMap((kind, at) => kindFaults(`spec.allowedGVKs[${at}]`, kind)),
    ...['allowedNamespaces', 'deniedNamespaces', 'allowedStaticRefNamespaces'].flatMap((field) =>
      listFaults(`spec.${field}`, spec[field], namespaceProblem),
    ),
    ...FAMILIES.flatMap((family) => listFaults(`spec.${family}`, spec[family], nameProblem)),
    ...intervalFaults('spec.minExportInterval', spec.minExportInterval),
  ]
}

const SINK_REFS = ['snapshotSinkRef', 'databaseSinkRef', 'eventSinkRef'] as const

/** Everything wrong with the spec of a connection test. */
export function connectionTestFaults(spec: Json): Fault[] {
  const sink = recordOf(spec.sinkRef)
  const named = SINK_REFS.filter((field) => textOf(sink[field]) !== undefined)
  return [
    ...faultIf(
      'spec.sinkRef',
      named.length !== 1 &&
        `names ${named.length === 0 ? 'no sink' : `${named.length} sinks`}: give exactly one of ${SINK_REFS.join(', ')}`,
    ),
    ...named.flatMap((field) => nameFaults(`spec.sinkRef.${field}`, sink[field])),
    ...nameFaults('spec.profileRef', spec.profileRef),
  ]
}
