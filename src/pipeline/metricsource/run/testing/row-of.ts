import type { KubeObject } from '#kube'
import type { TableRow } from '#model'
import type { ResourceDescriptor } from '../../types.ts'

/** The row that a kind makes of one object. */
export function rowOf(kind: ResourceDescriptor, object: KubeObject, now = 0): TableRow {
  const builder = kind.collect(now, kind.target)
  builder.add(object)
  return builder.rows().row(0)
}
