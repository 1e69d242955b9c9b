import type { KubeObject } from '#kube'
import { CLEANUP_PRIORITY } from './words.ts'

/** When an add-on or work is deleted with its cluster: 0 first, 100 last; without a priority, or with a wrong one, before all. */
export function cleanupPriority({ metadata: { annotations } }: KubeObject): number {
  const written = annotations?.[CLEANUP_PRIORITY]
  if (written === undefined || !/^\d{1,3}$/.test(written)) return -1
  const priority = Number(written)
  return priority <= 100 ? priority : -1
}

/** Those whose turn it is: of the lowest priority that is left. The others wait until they are gone. */
export function nextToDelete<T extends KubeObject>(objects: readonly T[]): readonly T[] {
  const first = Math.min(...objects.map(cleanupPriority))
  return objects.filter((object) => cleanupPriority(object) === first)
}
