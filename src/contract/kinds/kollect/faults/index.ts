import type { StructuralSchema } from '../../crd-schema.ts'
import type { Fault, Kind } from '../../kind.ts'
import { REFUSED_KINDS } from '../cluster-sinks.ts'
import { kollectConnectionTest } from '../connection-test.ts'
import { kollectDatabaseSink } from '../database-sink.ts'
import { kollectEventSink } from '../event-sink.ts'
import { kollectClusterInventory, kollectInventory } from '../inventory.ts'
import { KOLLECT_API_VERSION } from '../names.ts'
import { kollectProfile } from '../profile.ts'
import { kollectClusterScope, kollectScope } from '../scope.ts'
import { kollectSnapshotSink } from '../snapshot-sink.ts'
import { kollectClusterTarget, kollectTarget } from '../target.ts'
import { databaseSinkFaults } from './database-sink.ts'
import { eventSinkFaults } from './event-sink.ts'
import { clusterInventoryFaults, inventoryFaults } from './inventory.ts'
import { type Json, recordOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { profileFaults } from './profile.ts'
import { connectionTestFaults, scopeFaults } from './scope.ts'
import { snapshotSinkFaults } from './snapshot-sink.ts'
import { clusterTargetFaults, targetFaults } from './target.ts'
import { unknownFields } from './unknown-fields.ts'

export { goDurationMs } from './duration.ts'
export type { KollectKnown, KollectSemantics } from './known.ts'

interface Rule {
  readonly kind: Kind<unknown, unknown>
  readonly faults: (spec: Json, metadata: Json, known: KollectKnown) => readonly Fault[]
}

const rules = new Map<string, Rule>(
  [
    { kind: kollectProfile, faults: profileFaults },
    { kind: kollectTarget, faults: targetFaults },
    { kind: kollectInventory, faults: inventoryFaults },
    { kind: kollectSnapshotSink, faults: snapshotSinkFaults },
    { kind: kollectDatabaseSink, faults: databaseSinkFaults },
    { kind: kollectEventSink, faults: eventSinkFaults },
    { kind: kollectScope, faults: scopeFaults },
    { kind: kollectConnectionTest, faults: connectionTestFaults },
    { kind: kollectClusterTarget, faults: clusterTargetFaults },
    { kind: kollectClusterInventory, faults: clusterInventoryFaults },
    { kind: kollectClusterScope, faults: scopeFaults },
  ].map((rule) => [rule.kind.definition.kind, rule]),
)

const OF_CLUSTER =
  'is of the cluster, and the agent has rights in namespaces only (TENANT_MODE): write a KollectTarget, KollectInventory or KollectScope in each namespace, or have it collected by an agent of the cluster'

const schemas = new Map<string, StructuralSchema>()

function schemaOf({ kind }: Rule): StructuralSchema {
  const name = kind.definition.kind
  const known = schemas.get(name)
  if (known) return known
  const [version] = kind.crd().spec.versions as readonly { schema: { openAPIV3Schema: StructuralSchema } }[]
  const schema = version?.schema.openAPIV3Schema.properties?.spec ?? {}
  schemas.set(name, schema)
  return schema
}

/**
 * Everything wrong with an object of inventory, by its schema and beyond it, each with its path; [] where it can be used. The
 * same at admission, in a reconciler and in `validate`. Never throws, whatever the object is. What is being deleted has no
 * faults: nobody may keep it from going.
 * @param kind of `kollect.dev/v1alpha1`
 */
export function kollectFaults(kind: string, object: unknown, known: KollectKnown): readonly Fault[] {
  const { metadata, spec } = recordOf(object)
  const meta = recordOf(metadata)
  if (typeof meta.deletionTimestamp === 'string') return []
  const refused = REFUSED_KINDS.get(kind)
  if (refused) return [{ path: 'kind', message: refused }]
  const rule = rules.get(kind)
  if (!rule)
    return [{ path: 'kind', message: `is ${JSON.stringify(kind)}, which ${KOLLECT_API_VERSION} does not have` }]
  if (known.tenantMode && rule.kind.definition.scope === 'Cluster') return [{ path: 'kind', message: OF_CLUSTER }]
  const ofSchema = rule.kind.faults(object)
  const said = new Set(ofSchema.map(({ path }) => path))
  const more = [...unknownFields(schemaOf(rule), spec, 'spec'), ...rule.faults(recordOf(spec), meta, known)]
  return [...ofSchema, ...more.filter(({ path }) => !said.has(path))]
}
