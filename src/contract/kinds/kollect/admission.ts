import { sameJson } from '#model'
import type { AdmissionRequest, AdmissionRule, AdmittedObject } from '../admission.ts'
import type { Kind } from '../kind.ts'
import { refusedKollectKinds } from './cluster-sinks.ts'
import { kollectConnectionTest } from './connection-test.ts'
import { kollectDatabaseSink } from './database-sink.ts'
import { kollectEventSink } from './event-sink.ts'
import { type KollectKnown, kollectFaults } from './faults/index.ts'
import { kollectClusterInventory, kollectInventory } from './inventory.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { kollectProfile } from './profile.ts'
import { kollectClusterScope, kollectScope } from './scope.ts'
import { kollectSnapshotSink } from './snapshot-sink.ts'
import { kollectClusterTarget, kollectTarget } from './target.ts'

const namespaced: readonly Kind<unknown, unknown>[] = [
  kollectProfile,
  kollectTarget,
  kollectInventory,
  kollectSnapshotSink,
  kollectDatabaseSink,
  kollectEventSink,
  kollectScope,
  kollectConnectionTest,
]
const ofCluster: readonly Kind<unknown, unknown>[] = [
  kollectClusterTarget,
  kollectClusterInventory,
  kollectClusterScope,
  ...refusedKollectKinds,
]

/** What a spec is judged by. */
const judged = (object: AdmittedObject) => ({
  spec: object.spec ?? null,
  annotations: object.metadata.annotations ?? null,
})

/** Labels and finalizers may change whatever is in force by now: what was admitted is not judged again for them. */
const isAsBefore = ({ object, before }: AdmissionRequest): boolean =>
  object !== undefined && before !== undefined && sameJson(judged(object), judged(before))

const ruleOf = (name: string, kinds: readonly Kind<unknown, unknown>[], known: KollectKnown): AdmissionRule => ({
  name: `${name}.admission.clusterpulse.io`,
  group: KOLLECT_GROUP,
  versions: [KOLLECT_VERSION],
  resources: kinds.map(({ plural }) => plural),
  operations: ['CREATE', 'UPDATE'],
  namespaced: kinds === namespaced,
  faults: (request) =>
    request.object === undefined || isAsBefore(request)
      ? []
      : kollectFaults(request.object.kind, request.object, known),
})

/** The rules on writes of inventory's kinds: `kollectFaults`, asked of each. */
export const kollectAdmission = (known: KollectKnown): readonly AdmissionRule[] => [
  ruleOf('inventory', namespaced, known),
  ruleOf('cluster-inventory', ofCluster, known),
]
