import { isKubeError, type KubeClient, type Resource } from '#kube'
import type { Clock } from '#model'
import { pagesOf } from './pages.ts'
import { fields, text } from './read.ts'
import type { Read, ReadEvent } from './types.ts'

const MAX_RESTARTS = 3

/** What a read is made with. */
export interface Polling<T = unknown> {
  readonly kube: KubeClient
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random: () => number
  /** returns false when nobody wants more of it */
  readonly take: (event: ReadEvent<T>) => boolean
  /** a page was taken */
  readonly onPage?: () => void
}

/** A list that was read to its end, from which it can be followed. */
export interface ListEnd<T = unknown> {
  readonly resource: Resource<T>
  readonly namespace?: string
  readonly resourceVersion: string
}

/** One read of a cluster that serves it. */
export interface Listing<T = unknown> extends Polling<T> {
  readonly read: Read<T>
  readonly resource: Resource<T>
}

/** One list. It may expire between two pages (a slow cluster, a compacted store): then it begins anew, three times at most. */
export async function readList<T>(listing: Listing<T>, namespace?: string): Promise<readonly ListEnd<T>[]> {
  const { kube, read, resource, take, onPage } = listing
  const { attempts, labelSelector, pageSize, isIsolated } = read
  const place = namespace === undefined ? {} : { namespace }
  for (let restarts = 0; ; restarts++) {
    take({ type: 'reset', ...place })
    let resourceVersion = ''
    try {
      const options = { ...listing, attempts, labelSelector, pageSize, isIsolated, namespace }
      for await (const page of pagesOf(kube, resource, options)) {
        resourceVersion = page.resourceVersion
        let isWanted = true
        for (const after of page.items)
          if (wantsObject(listing, after)) isWanted = take({ type: 'changed', before: undefined, after })
        onPage?.()
        if (!isWanted) return []
      }
      return [{ resource, ...place, resourceVersion }]
    } catch (error) {
      if (!isKubeError(error, 'expired') || restarts >= MAX_RESTARTS) throw error
    }
  }
}

/** Whether the read is about the namespace of this object. */
export function wantsObject({ read, resource }: Pick<Listing, 'read' | 'resource'>, object: unknown): boolean {
  const { namespaces } = read
  if (!namespaces || namespaces.isAll || !resource.namespaced) return true
  return namespaces.wants(text(fields(fields(object).metadata).namespace))
}
