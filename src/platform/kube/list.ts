import { createHash } from 'node:crypto'
import { acceptFor, decodeList, listSink } from './decode.ts'
import { describeCall, isKubeError, KubeError } from './errors.ts'
import { AnswerTooLargeError } from './http.ts'
import { collectionPath, query } from './paths.ts'
import type { Call, Transport } from './transport.ts'
import type { ListOptions, Page, Resource } from './types.ts'

const PAGE_SIZE = 500
/** A server that forgets its versions faster than we can page is asked no more than this often. */
const MAX_RESTARTS = 3
/** Far beyond any cluster: a list without end must not fill our memory, nor keep us for ever. */
const MAX_OBJECTS = 5_000_000
const MAX_WHOLE = 500_000
const MAX_PAGES = 10_000
/** A selector that matches little may leave a page without objects, and the next as well: so many in a row are no list. */
const MAX_EMPTY_PAGES = 100

/**
 * Pages of one consistent version. A page too large for us is asked for again in smaller ones.
 * @throws KubeError `expired` where the version is gone and pages were given out already, `protocol` for a list that goes
 *   round in circles or has no end.
 */
export async function* listPages<T>(
  transport: Transport,
  resource: Resource<T>,
  options: ListOptions = {},
): AsyncGenerator<Page<T>, void, undefined> {
  const { pageSize = PAGE_SIZE } = options
  let smaller = 1
  let next = options.continue ?? ''
  const progress = new Progress(next)
  for (;;) {
    const limit = Math.max(1, Math.floor((typeof pageSize === 'number' ? pageSize : await pageSize()) / smaller))
    const call: Call = {
      method: 'GET',
      path: collectionPath(resource, options.namespace) + listQuery(options, limit, next),
      accept: acceptFor(resource),
      signal: options.signal,
      ...(options.isolated && { isolated: true }),
      ...(options.maxPageBytes !== undefined && { maxBytes: options.maxPageBytes }),
    }
    let page: ReturnType<typeof decodeList<T>>
    try {
      page = await transport.call({ ...call, sinkFor: listSink(resource, call) }, (answer) =>
        decodeList(resource, call, answer),
      )
    } catch (error) {
      if (!(error instanceof AnswerTooLargeError) || limit <= 1) throw error
      smaller *= 8
      continue
    }
    const { items, resourceVersion, remaining } = page
    const fault = progress.faultOf(items.length, page.next)
    if (fault !== undefined) throw endless(call, fault)
    next = page.next
    // Who says the size of each page knows of what came since.
    if (typeof pageSize !== 'number') smaller = Math.max(1, smaller / 2)
    yield { items, resourceVersion, next, ...(remaining === undefined ? {} : { remaining }) }
    if (next === '') return
  }
}

/** Tells a long list from one that never ends. */
class Progress {
  /** tokens of the pages asked for so far, as digests: a server may make them as long as it likes */
  readonly #asked = new Set<string>()
  #objects = 0
  #empty = 0

  constructor(first: string) {
    this.#asked.add(digestOf(first))
  }

  /** @returns why the list has no end; undefined where it goes on, or ends here */
  faultOf(objects: number, next: string): string | undefined {
    this.#objects += objects
    this.#empty = objects > 0 ? 0 : this.#empty + 1
    if (this.#objects > MAX_OBJECTS) return `more than ${MAX_OBJECTS} objects`
    if (next === '') return undefined
    if (this.#empty >= MAX_EMPTY_PAGES) return `${MAX_EMPTY_PAGES} pages in a row hold no object`
    const pages = this.#asked.size
    if (pages >= MAX_PAGES) return `more than ${MAX_PAGES} pages`
    this.#asked.add(digestOf(next))
    return this.#asked.size === pages ? 'the same page comes again and again' : undefined
  }
}

const digestOf = (token: string) => createHash('sha1').update(token).digest('base64')

function endless(call: Pick<Call, 'method' | 'path'>, what: string): KubeError {
  const why = `the list has no end: ${what}; check the address and what stands between`
  return new KubeError('protocol', `${describeCall(call.method, call.path)}: ${why}`)
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
        if (items.length > MAX_WHOLE) {
          const path = collectionPath(resource, options.namespace)
          throw endless({ method: 'GET', path }, `more than ${MAX_WHOLE} objects`)
        }
        resourceVersion ??= page.resourceVersion
      }
      return { items, resourceVersion: resourceVersion ?? '' }
    } catch (error) {
      if (!isKubeError(error, 'expired') || restarts >= MAX_RESTARTS) throw error
    }
  }
}
