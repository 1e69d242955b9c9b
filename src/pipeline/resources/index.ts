/**
 * Kinds of rows that are compiled in: one file each, and a line in the list. Collection, roles, wire, state, access, API, CSV,
 * search, page and command line are made of the descriptors; a MetricSource compiles to the same at run time (#metricsource).
 */
import type { ResourceDescriptor } from '#metricsource'
import { persistentVolumeClaims } from './persistent-volume-claims.ts'
import { pods } from './pods.ts'
import { services } from './services.ts'
import { workloads } from './workloads.ts'

/** Adding a kind is one line here. */
export const resources: readonly ResourceDescriptor[] = [pods, workloads, persistentVolumeClaims, services]

/** What a policy, an address or a command names: `services`, or `core/services` where a MetricSource has the plain name. */
export function resourceNamed(name: string): ResourceDescriptor | undefined {
  const plain = name.startsWith('core/') ? name.slice('core/'.length) : name
  return resources.find(({ typeName }) => typeName === plain)
}

/** What is compiled in under this id; undefined: nothing. */
export const resourceOf = (id: string): ResourceDescriptor | undefined => resources.find((one) => one.id === id)
