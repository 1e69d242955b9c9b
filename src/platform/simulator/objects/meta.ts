import type { ManagedFieldsEntry } from '#apiserver'

const text = Buffer.alloc(20)
text.write('Z', 19)

/** RFC 3339 in whole seconds, as Kubernetes writes times. One flat text, no part of a longer one that lives with it. */
export function timestamp(ms: number): string {
  text.write(new Date(ms).toISOString(), 0, 19, 'latin1')
  return text.toString('latin1')
}

/** One statement in a status, as nodes, pods and deployments have it. `changedAt`: ms, or already as text. */
export function condition(
  type: string,
  status: boolean | 'Unknown',
  changedAt: number | string,
  extra: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    ...extra,
    type,
    status: conditionStatus(status),
    lastTransitionTime: typeof changedAt === 'string' ? changedAt : timestamp(changedAt),
  }
}

const conditionStatus = (status: boolean | 'Unknown') => (status === 'Unknown' ? status : status ? 'True' : 'False')

/** Builds FieldsV1 from dotted paths: `spec.template` → `{"f:spec":{"f:template":{}}}`. A part with a brace is a list key. Frozen, as many objects share it. */
export function fieldsOf(paths: readonly string[]): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  for (const path of paths) {
    let at = root
    for (const part of path.split('>')) {
      const key = part.startsWith('k:') || part.startsWith('v:') || part === '.' ? part : `f:${part}`
      at[key] ??= {}
      at = at[key] as Record<string, unknown>
    }
  }
  return Object.freeze(root)
}

/** `fields` may be shared between objects: nobody writes into it. */
export function managedBy(
  manager: string,
  apiVersion: string,
  fields: Record<string, unknown>,
  time: number,
  subresource?: 'status',
): ManagedFieldsEntry {
  const entry: ManagedFieldsEntry = {
    apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
    manager,
    operation: 'Update',
    time: timestamp(time),
  }
  return subresource ? { ...entry, subresource } : entry
}
