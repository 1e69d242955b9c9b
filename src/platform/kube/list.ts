import { acceptFor, decodeList } from './decode.ts'
import { isKubeError } from './errors.ts'
import { AnswerTooLargeError } from './http.ts'
import { collectionPath, query } from './paths.ts'
import type { Call, Transport } from './transport.ts'
import type { ListOptions, Page, Resource } from './types.ts'

const PAGE_SIZE = 500
/** A server that forgets its versions faster than we can page is asked no more than this often. */
const MAX_RESTARTS = 3

/**
 * Pages of one consistent version. A page too large for us is asked for again in smaller ones.
 * @throws KubeError `expired` where the version is gone and pages were given out already.
 */
export async function* listPages<T>(
  transport: Transport,
  resource: Resource<T>,
  options: ListOptions = {},
): AsyncGenerator<Page<T>, void, undefined> {
  let limit = options.pageSize ?? PAGE_SIZE
  let next = ''
  for (;;) {
    const call: Call = {
      method: 'GET',
      path: collectionPath(resource, options.namespace) + listQuery(options, limit, next),
      accept: acceptFor(resource),
      signal: options.signal,
    }
    let page: ReturnType<typeof decodeList<T>>
    try {
      page = await transport.call(call, (answer) => decodeList(resource, call, answer))
    } catch (error) {
      if (!(error instanceof AnswerTooLargeError) || limit <= 1) throw error
      limit = Math.max(1, Math.floor(limit / 8))
      continue
    }
    next = page.next
    const { items, resourceVersion, remaining } = page
    yield { items, resourceVersion, ...(remaining === undefined ? {} : { remaining }) }
    if (next === '') return
  }
}

function listQuery(options: ListOptions, limit: number, next: string): string {
  const { labelSelector, fieldSelector } = options
  return query({ labelSelector, fieldSelector, limit, continue: next })
}

/** The whole list at one version; starts again where the version expires in between. */
export async function listWhole<T>(
  transport: Transport,
  resource: Resource<T>,
  options: ListOptions = {},
): Promise<{ items: T[]; resourceVersion: string }> {
  for (let restarts = 0; ; restarts++) {
    try {
      const items: T[] = []
      let resourceVersion: string | undefined
      for await (const page of listPages(transport, resource, options)) {
        for (const item of page.items) items.push(item)
        resourceVersion ??= page.resourceVersion
      }
      return { items, resourceVersion: resourceVersion ?? '' }
    } catch (error) {
      if (!isKubeError(error, 'expired') || restarts >= MAX_RESTARTS) throw error
    }
  }
}
